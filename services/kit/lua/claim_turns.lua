-- Hands out matches that nobody holds, those first that were put there first: each to nobody else for the length of a lease.
-- KEYS  1 turns (sorted set: match id → ms from which on it may be handed out)
-- ARGV  1 at most so many   2 lease in ms
-- Returns {the score that the claim gave them, then their ids}. Should the answer be lost, they come again after the lease.
local most, lease = tonumber(ARGV[1]), tonumber(ARGV[2])

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local due = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
for _, id in ipairs(due) do
  redis.call('ZADD', KEYS[1], now + lease, id)
end
return {now + lease, unpack(due)}
