-- Removes all that is known of a player.
--
-- KEYS  1 the player (hash: name, created, generation, seen)   2 the player's refresh tokens   3 the player's matches   4 those that may
--       still be going
-- ARGV  1 the generation of the token that asks; for a player whose profile is gone   2 since when the player must not have been seen,
--       in ms, or "" if that does not matter
-- Returns the generation from which on a token of this player would count; -1 when the player has been seen since, and nothing changed.

local player, tokens, matches, live = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local unseen = tonumber(ARGV[2])
local stored = redis.call("HMGET", player, "generation", "seen")
local generation = math.max(tonumber(ARGV[1]), tonumber(stored[1]) or 0) + 1

if unseen and (tonumber(stored[2]) or 0) > unseen then
  return -1
end
redis.call("DEL", player, tokens, matches, live)
return generation
