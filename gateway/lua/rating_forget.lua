-- Removes a player's rating in a game, and the place in its leaderboard.
--
-- KEYS  1 ratings (hash: player, mu, sigma and number of matches)   2 leaderboard (sorted set: player, score)
-- ARGV  1 player
-- Returns 1 when there was one, else 0.

local ratings, board = KEYS[1], KEYS[2]
local player = ARGV[1]

redis.call("ZREM", board, player)
return redis.call("HDEL", ratings, player)
