-- Takes results out of those that are handed out, and remembers them for as long as a late wake-up might put them there again.
-- KEYS  1 results (sorted set: match id → ms from which on it may be handed out)   2 acknowledged (sorted set: match id → ms)
-- ARGV  1 how long they are remembered, in ms   2… match ids
-- Returns how many were there.
local remember, gone, first = tonumber(ARGV[1]), 0, 2

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - remember)
for i = first, #ARGV do
  local there = redis.call('ZREM', KEYS[1], ARGV[i])
  if there == 1 then
    redis.call('ZADD', KEYS[2], now, ARGV[i])
  end
  gone = gone + there
end
redis.call('PEXPIRE', KEYS[2], remember)
return gone
