-- Raises the lowest sign-in generation of a player that still counts; never lowers it, and never remembers it for less than before.
--
-- KEYS  1 the player's revocation (string: a generation)
-- ARGV  1 the generation   2 how long to remember it, in ms: as long as an older access token could live
-- Returns 1.

local revocation = KEYS[1]
local generation, lifetime = tonumber(ARGV[1]), tonumber(ARGV[2])

generation = math.max(generation, tonumber(redis.call("GET", revocation)) or 0)
lifetime = math.max(lifetime, redis.call("PTTL", revocation))
redis.call("SET", revocation, string.format("%d", generation), "PX", lifetime)
return 1
