-- Schedules a wake-up for a match, before the commit that needs it; never later than one already there.
-- KEYS  1 deadlines (sorted set: match id → ms)   2 clock (hash)
-- ARGV  1 match id   2 delay in ms
-- Returns {now in ms, credit in ms so far}.
local id, delay = ARGV[1], tonumber(ARGV[2])

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local due = now + delay
local there = tonumber(redis.call('ZSCORE', KEYS[1], id) or math.huge)
-- An earlier one stays, but moves by a millisecond: whoever claimed it sees that it was scheduled again and leaves it.
redis.call('ZADD', KEYS[1], math.min(due, there - 1), id)
return {now, tonumber(redis.call('HGET', KEYS[2], 'credit') or 0)}
