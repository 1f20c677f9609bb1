-- Has a player's turns told nowhere any more.
--
-- KEYS  1 the player (hash; see webhook_set.lua)   2 notices (hash; see webhook_tell.lua)
-- ARGV  1 the secret with which it was set, or "" for any
-- Returns 1 if it did, 0 when it is set otherwise, or not.

local player, notices = KEYS[1], KEYS[2]
local secret = ARGV[1]
local there = redis.call("HGET", player, "webhook_secret")

if secret ~= "" and there ~= secret then
  return 0
end
redis.call("HDEL", player, "webhook_url", "webhook_secret", "webhook_created", "webhook_told", "webhook_failing", "webhook_failed",
  "webhook_reason", "webhook_disabled")
redis.call("DEL", notices)
return there and 1 or 0
