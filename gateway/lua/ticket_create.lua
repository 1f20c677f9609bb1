-- Makes a ticket, unless one of its players has a live one of this game.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 the ticket's id   2 digest of its wish   3 digest of all that is asked   4 what is asked, packed   5 fewest seats   6 most seats
--       7 rating   8 ms until bots are taken, or -1   9 how long a ticket may go unseen, in ms   10 ms until it is looked at next
--       11… the players
-- Returns {MADE, id}; or {SAME, id} or {OTHER, id} of the live ticket, which asks for the same or for something else; or {STALE, id} of a
-- live ticket that has gone unseen for too long, and is to be ended first.

local base = KEYS[1]
local id, wish, asked, request = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local min, max, rating, bots, unseen, first = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local ticket, live = base .. ":ticket:" .. id, base .. ":players"
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if redis.call("EXISTS", ticket) == 1 then
  return {"MADE", id}
end
for i = 11, #ARGV do
  local other = redis.call("HGET", live, ARGV[i])
  if other then
    local status, seen, wished = unpack(redis.call("HMGET", base .. ":ticket:" .. other, "status", "seen", "asked"))
    if status == "WAITING" and now - seen > unseen then
      return {"STALE", other}
    elseif status then
      return {wished == asked and "SAME" or "OTHER", other}
    end
  end
end
local players = {}
for i = 11, #ARGV do
  redis.call("HSET", live, ARGV[i], id)
  players[#players + 1] = ARGV[i]
end
redis.call("HSET", ticket, "status", "WAITING", "version", "1", "wish", wish, "asked", asked, "request", request,
  "players", table.concat(players, " "), "size", #players, "min", min, "max", max, "rating", rating,
  "created", string.format("%d", now), "seen", string.format("%d", now), "bots", string.format("%d", bots < 0 and -1 or now + bots))
redis.call("ZADD", base .. ":queue:" .. wish, rating, id)
redis.call("ZADD", base .. ":due", now + first, id)
return {"MADE", id}
