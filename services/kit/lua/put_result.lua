-- Puts a match's result among those that are handed out, unless it is there or was acknowledged a moment ago; drops what nobody wants.
-- KEYS  1 results (sorted set: match id → ms from which on it may be handed out)   2 acknowledged (sorted set: match id → ms)
-- ARGV  1 match id   2 how long a result is kept, in ms
-- Returns 1 if it was put there, else 0.
local id, keep = ARGV[1], tonumber(ARGV[2])

if redis.call('ZSCORE', KEYS[2], id) then
  return 0
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - keep)
local put = redis.call('ZADD', KEYS[1], 'NX', now, id)
redis.call('PEXPIRE', KEYS[1], keep)
return put
