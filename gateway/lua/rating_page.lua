-- Reads a part of a leaderboard: from the top, or from behind a place that may be nobody's any more. Players of equal score stand in the
-- order of their ids, the greatest first.
--
-- KEYS  1 ratings (hash: player, mu, sigma and number of matches)   2 leaderboard (sorted set: player, score)
-- ARGV  1 most places   2 the score behind which to begin; empty: at the top   3 the player of that place
-- Returns {rank, player, score, rating} of each, best first; equal scores share a rank.

local ratings, board = KEYS[1], KEYS[2]
local most, score, player = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

local from = 0
if score then
  -- Among those of this score, the first behind the player.
  from = redis.call("ZCOUNT", board, "(" .. ARGV[2], "+inf")
  local to = from + redis.call("ZCOUNT", board, ARGV[2], ARGV[2])
  while from < to do
    local middle = math.floor((from + to) / 2)
    if redis.call("ZRANGE", board, middle, middle, "REV")[1] < player then
      to = middle
    else
      from = middle + 1
    end
  end
end
local places = redis.call("ZRANGE", board, from, from + most - 1, "REV", "WITHSCORES")
local page, rank, last = {}, 0, nil
for i = 1, #places, 2 do
  local id, points = places[i], places[i + 1]
  if i == 1 then
    rank = redis.call("ZCOUNT", board, "(" .. points, "+inf") + 1
  elseif points ~= last then
    rank = from + (i + 1) / 2
  end
  last = points
  page[#page + 1] = { rank, id, points, redis.call("HGET", ratings, id) }
end
return page
