-- Puts a match into a player's index and among those that may still be going, once; the oldest beyond a bound drop out.
--
-- KEYS  1 the player's matches (sorted set: match id, when it was made in ms)   2 those that may still be going (the same)
-- ARGV  1 the match's id   2 most matches   3 how long to keep the index, in ms
-- Returns 1.

local match, most, lifetime = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

for _, matches in ipairs(KEYS) do
  redis.call("ZADD", matches, "NX", now, match)
  redis.call("ZREMRANGEBYRANK", matches, 0, -(most + 1))
  redis.call("PEXPIRE", matches, lifetime)
end
return 1
