-- Gives a token back to the bucket that it was taken from. Run twice it gives two, which is all the harm that a repeat does.
--
-- KEYS  1 the bucket (string: when it is full again, in µs)
-- ARGV  1 in how many µs a token comes back
-- Returns nothing.

local bucket = KEYS[1]
local interval = tonumber(ARGV[1])
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

local full = tonumber(redis.call("GET", bucket) or now) - interval
if full <= now then
  redis.call("DEL", bucket)
  return
end
redis.call("SET", bucket, string.format("%.0f", full), "PX", math.ceil((full - now) / 1000))
