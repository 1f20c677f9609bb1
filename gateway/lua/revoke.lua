-- Raises the lowest sign-in generation of a player that still counts; never lowers it.
--
-- KEYS  1 the player's revocation (string: a generation)
-- ARGV  1 the generation   2 how long to remember it, in ms: as long as an older access token could live
-- Returns 1.

local revocation = KEYS[1]
local generation, lifetime = tonumber(ARGV[1]), tonumber(ARGV[2])

if (tonumber(redis.call("GET", revocation)) or 0) <= generation then
  redis.call("SET", revocation, string.format("%d", generation), "PX", lifetime)
end
return 1
