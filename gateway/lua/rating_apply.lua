-- Counts a match: writes its players' new ratings, unless the match has been counted, or one of the ratings has changed since it was read.
--
-- KEYS  1 ratings (hash: player, mu, sigma and number of matches)   2 leaderboard (sorted set: player, score)
--       3 that the match has been counted (string: the attempt that did it)
-- ARGV  1 the attempt, a word that no other has   2 how long to remember that the match has been counted, in ms
--       3… of each player: id, rating as it was read or empty, new rating, new score
-- Returns 1 when this attempt counted it, also when it is asked again; 0 when another did before; -1 when a rating has changed.

local ratings, board, counted = KEYS[1], KEYS[2], KEYS[3]
local attempt, lifetime, first = ARGV[1], tonumber(ARGV[2]), 3

local by = redis.call("GET", counted)
if by then
  return by == attempt and 1 or 0
end
for i = first, #ARGV, 4 do
  if (redis.call("HGET", ratings, ARGV[i]) or "") ~= ARGV[i + 1] then
    return -1
  end
end
redis.call("SET", counted, attempt, "PX", lifetime)
for i = first, #ARGV, 4 do
  redis.call("HSET", ratings, ARGV[i], ARGV[i + 2])
  redis.call("ZADD", board, ARGV[i + 3], ARGV[i])
end
return 1
