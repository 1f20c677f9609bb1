-- Puts a match among those that are handed out, also where it is held: whoever holds it was told of it as it was before. Drops what nobody wants.
-- KEYS  1 turns (sorted set: match id → ms from which on it may be handed out)
-- ARGV  1 match id   2 how long it is kept, in ms
-- Returns how many there are.
local id, keep = ARGV[1], tonumber(ARGV[2])

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - keep)
-- Half a millisecond early, which no claim's score is: so whoever holds it does not take it out.
redis.call('ZADD', KEYS[1], now - 0.5, id)
redis.call('PEXPIRE', KEYS[1], keep)
return redis.call('ZCARD', KEYS[1])
