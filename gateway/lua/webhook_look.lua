-- Looks up what is to be sent to a player of a match.
--
-- KEYS  1 the player (hash; see webhook_set.lua)   2 notices (hash; see webhook_tell.lua)
-- ARGV  1 match id
-- Returns {now in ms, URL, secret, version, kind, when the player's clock runs out in ms or "-", how often it was tried, since when in ms,
-- body}; nil when there is nothing to send, or nowhere.

local player, notices = KEYS[1], KEYS[2]
local hook = redis.call("HMGET", player, "webhook_url", "webhook_secret", "webhook_disabled")
local there = redis.call("HGET", notices, ARGV[1])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if not hook[1] or hook[3] or not there then
  return nil
end
local version, kind, clock, open, tries, since, body = there:match("^(%d+) (%l+) (%S+) (%d) (%d+) (%d+)\n(.*)$")
if open == "0" then
  return nil
end
return {now, hook[1], hook[2], tonumber(version), kind, clock, tonumber(tries), tonumber(since), body}
