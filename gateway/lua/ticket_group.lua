-- Reads who is to play a match that is being made, and takes it up for the length of a lease.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 the match's id   2 lease in ms
-- Returns {how many bots, how often it was taken up, what the first ticket asked for, then of each ticket its id and its players…}; or nil
-- when it is being made no more.

local base = KEYS[1]
local match, lease = ARGV[1], tonumber(ARGV[2])
local group, forming = base .. ":match:" .. match, base .. ":forming"
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local tickets, bots = unpack(redis.call("HMGET", group, "tickets", "bots"))
if not tickets or not redis.call("ZSCORE", forming, match) then
  return nil
end
redis.call("ZADD", forming, now + lease, match)
local answer = {tonumber(bots), redis.call("HINCRBY", group, "tries", 1), false}
for id in string.gmatch(tickets, "%S+") do
  local request, players = unpack(redis.call("HMGET", base .. ":ticket:" .. id, "request", "players"))
  answer[3] = answer[3] or request
  answer[#answer + 1] = id
  answer[#answer + 1] = players
end
return answer
