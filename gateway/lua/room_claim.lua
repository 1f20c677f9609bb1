-- Claims rooms whose start should long have come to an end, for the length of a lease.
--
-- KEYS  1 starting rooms (sorted set: code, when to look, in ms)
-- ARGV  1 lease in ms   2 at most so many
-- Returns {the score that the claim gave them, then their codes}.

local starting = KEYS[1]
local lease, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local codes = redis.call("ZRANGE", starting, "-inf", now, "BYSCORE", "LIMIT", 0, most)
for _, code in ipairs(codes) do
  redis.call("ZADD", starting, now + lease, code)
end
return {now + lease, unpack(codes)}
