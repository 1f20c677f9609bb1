-- Reads a ticket. When one of its players does, it has been looked at.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 the ticket's id   2 the player who looks; empty: nobody does   3 how long a ticket may go unseen, in ms
-- Returns {now in ms, 1 if it has gone unseen for too long and is to be ended, else 0, its fields and values…}; or nil when there is none, or
-- it is not that player's.

local base = KEYS[1]
local id, player, unseen = ARGV[1], ARGV[2], tonumber(ARGV[3])
local ticket = base .. ":ticket:" .. id
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local status, seen, players = unpack(redis.call("HMGET", ticket, "status", "seen", "players"))
if not status or (player ~= "" and not string.find(" " .. players .. " ", " " .. player .. " ", 1, true)) then
  return nil
end
local stale = status == "WAITING" and now - seen > unseen
if player ~= "" and status == "WAITING" and not stale then
  redis.call("HSET", ticket, "seen", string.format("%d", now))
end
return {now, stale and 1 or 0, unpack(redis.call("HGETALL", ticket))}
