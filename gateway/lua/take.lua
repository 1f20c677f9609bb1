-- Takes a token out of a bucket, if there is one. The bucket is kept as the time at which it will be full again (the generic cell rate
-- algorithm), and is forgotten when it is. Run twice it takes two, which is all the harm that a repeat does.
--
-- KEYS  1 the bucket (string: when it is full again, in µs)
-- ARGV  1 in how many µs a token comes back   2 how many tokens a full bucket holds
-- Returns 0, or in how many ms there is a token.

local bucket = KEYS[1]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

local full = math.max(now, tonumber(redis.call("GET", bucket) or now)) + interval
local early = full - interval * burst - now
if early > 0 then
  return math.ceil(early / 1000)
end
redis.call("SET", bucket, string.format("%.0f", full), "PX", math.ceil((full - now) / 1000))
return 0
