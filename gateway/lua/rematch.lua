-- Claims the rematch of a match; whoever claims it again gets the id that the first one minted.
--
-- KEYS  1 the rematch (string: a match id)
-- ARGV  1 an id freshly minted   2 how long to remember it, in ms
-- Returns the rematch's id.

local rematch = KEYS[1]
local id, lifetime = ARGV[1], tonumber(ARGV[2])

redis.call("SET", rematch, id, "NX", "PX", lifetime)
return redis.call("GET", rematch)
