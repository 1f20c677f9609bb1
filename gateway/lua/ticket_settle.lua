-- Tells the tickets of a match that was being made what became of it. The first to say so is believed.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 the match's id   2 MATCHED or FAILED   3 the reason of a failure   4 its detail   5 how long an ended ticket is kept, in ms
-- Returns {1 if this was the first, else 0, then of each ticket its id, its players, how long it waited in ms, what it asked for…}; or nil
-- when all of it is forgotten.

local base = KEYS[1]
local match, outcome, reason, detail, kept = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local group, live = base .. ":match:" .. match, base .. ":players"
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local tickets = redis.call("HGET", group, "tickets")
if not tickets then
  return nil
end
local first = redis.call("ZREM", base .. ":forming", match)
local answer = {first}
for id in string.gmatch(tickets, "%S+") do
  local ticket = base .. ":ticket:" .. id
  local players, created, request = unpack(redis.call("HMGET", ticket, "players", "created", "request"))
  if players then
    if first == 1 then
      redis.call("HSET", ticket, "status", outcome, "reason", reason, "detail", detail)
      redis.call("HINCRBY", ticket, "version", 1)
      for player in string.gmatch(players, "%S+") do
        if redis.call("HGET", live, player) == id then
          redis.call("HDEL", live, player)
        end
      end
      redis.call("PEXPIRE", ticket, kept)
    end
    answer[#answer + 1] = id
    answer[#answer + 1] = players
    answer[#answer + 1] = now - created
    answer[#answer + 1] = request
  end
end
redis.call("PEXPIRE", group, kept)
return answer
