-- Ends a claim of a notice: it is done with, or due again later; nothing, if it was scheduled meanwhile.
--
-- KEYS  1 due (sorted set: "player match", when in ms)
-- ARGV  1 "player match"   2 the score that the claim gave   3 in how many ms it is due again, or "" for never
-- Returns 1 if it did, else 0.

local due = KEYS[1]
local notice, claimed, again = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if tonumber(redis.call("ZSCORE", due, notice)) ~= claimed then
  return 0
end
if again == "" then
  redis.call("ZREM", due, notice)
else
  redis.call("ZADD", due, now + tonumber(again), notice)
end
return 1
