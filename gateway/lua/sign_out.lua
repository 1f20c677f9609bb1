-- Begins a new sign-in generation of a player, and drops every refresh token.
--
-- KEYS  1 the player (hash: name, created, generation)   2 the player's refresh tokens
-- ARGV  1 the generation of the token that asks; for a player whose profile is gone
-- Returns the new generation.

local player, tokens = KEYS[1], KEYS[2]
local generation = math.max(tonumber(ARGV[1]), tonumber(redis.call("HGET", player, "generation")) or 0) + 1

if redis.call("EXISTS", player) == 1 then
  redis.call("HSET", player, "generation", string.format("%d", generation))
end
redis.call("DEL", tokens)
return generation
