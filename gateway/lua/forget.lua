-- Removes all that is known of a player.
--
-- KEYS  1 the player (hash: name, created, generation)   2 the player's refresh tokens   3 the player's matches   4 those that may
--       still be going
-- ARGV  1 the generation of the token that asks; for a player whose profile is gone
-- Returns the generation from which on a token of this player would count.

local player, tokens, matches, live = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation = math.max(tonumber(ARGV[1]), tonumber(redis.call("HGET", player, "generation")) or 0) + 1

redis.call("DEL", player, tokens, matches, live)
return generation
