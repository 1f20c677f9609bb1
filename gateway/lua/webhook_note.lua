-- Notes what became of a notice that was sent, and how the player's webhook does.
--
-- KEYS  1 the player (hash; see webhook_set.lua)   2 notices (hash; see webhook_tell.lua)
-- ARGV  1 match id   2 the notice's version   3 the secret with which it was signed   4 how often it was tried by now
--       5 why it was not taken, "" when it was, "-" when it was not sent   6 1 when it is sent no more, else 0
--       7 after how many ms in which nothing was taken the webhook is disabled
-- Returns 1 if this has disabled it, else 0.

local player, notices = KEYS[1], KEYS[2]
local match, version, secret, tries, reason, over, patience = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local there = redis.call("HGET", notices, match)
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if there and there:match("^%d+") == version then
  local head, open, tail = there:match("^(%d+ %l+ %S+) (%d) %d+( .*)$")
  redis.call("HSET", notices, match, string.format("%s %s %s", head, over == "1" and "0" or open, tries) .. tail)
end
if redis.call("HGET", player, "webhook_secret") ~= secret or reason == "-" then
  return 0
end
if reason == "" then
  redis.call("HSET", player, "webhook_told", now)
  redis.call("HDEL", player, "webhook_failing", "webhook_failed", "webhook_reason")
  return 0
end
redis.call("HSETNX", player, "webhook_failing", now)
redis.call("HSET", player, "webhook_failed", now, "webhook_reason", reason)
if now - redis.call("HGET", player, "webhook_failing") < patience then
  return 0
end
redis.call("HSET", player, "webhook_disabled", 1)
redis.call("DEL", notices)
return 1
