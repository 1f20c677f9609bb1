-- Claims the wake-ups that are due, for the length of a lease, and keeps the clock of service: a pause in which no replica called this is credited.
-- KEYS  1 deadlines (sorted set: match id → ms)   2 clock (hash: seen, credit, both ms)
-- ARGV  1 lease in ms   2 longest pause that is no outage, in ms   3 at most so many
-- Returns {now in ms, credit so far, credited just now, when the next wake-up is due or -1, lease's end, then for each match claimed: its id, 1 if
-- it was scheduled since it was last claimed or settled, else 0}.
local lease, outage, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local seen = tonumber(redis.call('HGET', KEYS[2], 'seen') or now)
local credited = now - seen > outage and now - seen or 0
local credit = redis.call('HINCRBY', KEYS[2], 'credit', credited)
redis.call('HSET', KEYS[2], 'seen', math.max(now, seen))

local due = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
for i = 1, #due, 2 do
  redis.call('ZADD', KEYS[1], now + lease, due[i])
  due[i + 1] = due[i + 1] % 1 > 0 and 1 or 0
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {now, credit, credited, math.ceil(first[2] or -1), now + lease, unpack(due)}
