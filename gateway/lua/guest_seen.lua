-- Notes that a guest was seen now.
--
-- KEYS  1 guests (sorted set: player, when last seen in ms)
-- ARGV  1 the player   2 how long the set is kept without anybody in it being seen, in ms
-- Returns 1.

local guests = KEYS[1]
local player, lifetime = ARGV[1], tonumber(ARGV[2])
local time = redis.call("TIME")

redis.call("ZADD", guests, "GT", time[1] * 1000 + math.floor(time[2] / 1000), player)
redis.call("PEXPIRE", guests, lifetime)
return 1
