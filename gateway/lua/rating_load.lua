-- Reads players' ratings in a game.
--
-- KEYS  1 ratings (hash: player, mu, sigma and number of matches)
-- ARGV  1… players
-- Returns the rating of each, nil where there is none.

local ratings = KEYS[1]

if #ARGV == 0 then
  return {}
end
return redis.call("HMGET", ratings, unpack(ARGV))
