-- Ends a claim of a guest: who is forgotten is removed, who is not is claimed again later; nothing, if they were seen meanwhile.
--
-- KEYS  1 guests (sorted set: player, when last seen in ms)
-- ARGV  1 the player   2 the score that the claim gave   3 in how many ms it may be claimed again at the earliest, or "" for never
-- Returns 1 if it did, else 0.

local guests = KEYS[1]
local player, claimed, again = ARGV[1], tonumber(ARGV[2]), ARGV[3]

if tonumber(redis.call("ZSCORE", guests, player)) ~= claimed then
  return 0
end
if again == "" then
  redis.call("ZREM", guests, player)
else
  redis.call("ZADD", guests, claimed + tonumber(again), player)
end
return 1
