-- Sets where a player's turns are told, and forgets how it went before.
--
-- KEYS  1 the player (hash: …, webhook_url, webhook_secret, webhook_created, webhook_told, webhook_failing, webhook_failed, webhook_reason,
--       webhook_disabled; times in ms)
-- ARGV  1 the URL   2 the secret
-- Returns when it was set, in ms; nil when there is no such player.

local player = KEYS[1]
local url, secret = ARGV[1], ARGV[2]
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if redis.call("EXISTS", player) == 0 then
  return nil
end
redis.call("HSET", player, "webhook_url", url, "webhook_secret", secret, "webhook_created", now)
redis.call("HDEL", player, "webhook_told", "webhook_failing", "webhook_failed", "webhook_reason", "webhook_disabled")
return now
