-- Schedules a wake-up for a match, before the commit that needs it; never later than one already there.
-- KEYS  1 deadlines (sorted set: match id → ms)   2 clock (hash: seen, credit, both ms)
-- ARGV  1 match id   2 delay in ms   3 longest pause that is no outage, in ms   4 an earlier deadline that the match keeps, in ms, or ""
-- Returns {now in ms, credit in ms so far, a pause that the next claim will credit included}.
local id, delay, outage, kept = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]) or math.huge

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local there = tonumber(redis.call('ZSCORE', KEYS[1], id) or math.huge)
local service = redis.call('HMGET', KEYS[2], 'seen', 'credit')
local pause = now - tonumber(service[1] or now)

-- Half a millisecond early, which no claim's score is. By this whoever claimed the match before sees that it was scheduled again and leaves
-- it, and whoever claims it next sees that a commit may be still to come.
redis.call('ZADD', KEYS[1], math.ceil(math.min(now + delay, kept, there)) - 0.5, id)
return {now, tonumber(service[2] or 0) + (pause > outage and pause or 0)}
