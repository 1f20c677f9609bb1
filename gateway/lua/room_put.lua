-- Writes a room if it is still the one that was judged. Done once, it may be repeated: what was written says how often the room has changed.
--
-- KEYS  1 the room (string: a document)
-- ARGV  1 the document that was judged; empty: there was none   2 the new document; empty: the room ends
--       3 how long to keep it, in ms   4 the last moment at which to write it, in ms; 0: any
-- Returns {1 when it is written, else 0; the document that is there now, empty without one; when it expires, in ms, or now without one}.

local room = KEYS[1]
local judged, new, lifetime, latest = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call("GET", room) or ""
if stored ~= new and (stored ~= judged or (latest > 0 and now > latest)) then
  return {0, stored, stored == "" and now or redis.call("PEXPIRETIME", room)}
end
if new == "" then
  redis.call("DEL", room)
  return {1, new, now}
end
redis.call("SET", room, new, "PXAT", string.format("%d", now + lifetime))
return {1, new, now + lifetime}
