-- Claims notices that are due, for the length of a lease.
--
-- KEYS  1 due (sorted set: "player match", when in ms)
-- ARGV  1 lease in ms   2 at most so many
-- Returns {the score that the claim gave them, then they}.

local due = KEYS[1]
local lease, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local notices = redis.call("ZRANGE", due, "-inf", now, "BYSCORE", "LIMIT", 0, most)
for _, notice in ipairs(notices) do
  redis.call("ZADD", due, now + lease, notice)
end
return {now + lease, unpack(notices)}
