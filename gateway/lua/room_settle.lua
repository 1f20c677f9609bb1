-- Ends the claim of a room that is not starting any more, unless it was scheduled again meanwhile.
--
-- KEYS  1 starting rooms (sorted set: code, when to look, in ms)
-- ARGV  1 the room's code   2 the score that the claim gave it
-- Returns 1 when it is removed, 0 when it is left.

local starting = KEYS[1]
local code, claimed = ARGV[1], tonumber(ARGV[2])

if tonumber(redis.call("ZSCORE", starting, code) or -1) ~= claimed then
  return 0
end
return redis.call("ZREM", starting, code)
