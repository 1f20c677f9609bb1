-- Ends a ticket that waits: cancels it, or lets it expire if it has gone unseen for too long. One that is forming, or over, stays as it is.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 the ticket's id   2 CANCELLED or EXPIRED   3 how long a ticket may go unseen, in ms   4 how long an ended one is kept, in ms
-- Returns 1 when this ended it, else 0.

local base = KEYS[1]
local id, outcome, unseen, kept = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ticket, live = base .. ":ticket:" .. id, base .. ":players"
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local status, seen, players, wish = unpack(redis.call("HMGET", ticket, "status", "seen", "players", "wish"))
if status ~= "WAITING" or (outcome == "EXPIRED" and now - seen <= unseen) then
  return 0
end
redis.call("HSET", ticket, "status", outcome)
redis.call("HINCRBY", ticket, "version", 1)
for player in string.gmatch(players, "%S+") do
  if redis.call("HGET", live, player) == id then
    redis.call("HDEL", live, player)
  end
end
redis.call("ZREM", base .. ":queue:" .. wish, id)
redis.call("ZREM", base .. ":due", id)
redis.call("PEXPIRE", ticket, kept)
return 1
