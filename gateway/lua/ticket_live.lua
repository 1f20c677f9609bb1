-- Finds the live ticket of a player in a game.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 the player
-- Returns its id, or nil.

return redis.call("HGET", KEYS[1] .. ":players", ARGV[1])
