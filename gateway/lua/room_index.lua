-- Notes a room that a player is about to be in; of more than so many, those that they came to first drop out.
--
-- KEYS  1 the player's rooms (sorted set: code, when they came in ms)
-- ARGV  1 the room's code   2 most rooms   3 how long to keep the index, in ms
-- Returns 1.

local rooms = KEYS[1]
local code, most, lifetime = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call("ZADD", rooms, "NX", now, code)
redis.call("ZREMRANGEBYRANK", rooms, 0, -(most + 1))
redis.call("PEXPIRE", rooms, lifetime)
return 1
