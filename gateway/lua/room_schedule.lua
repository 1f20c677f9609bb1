-- Notes that a room is about to start, so that whoever claims it lets a gateway look whether its match is there.
--
-- KEYS  1 starting rooms (sorted set: code, when to look, in ms)
-- ARGV  1 the room's code   2 in how many ms to look
-- Returns when that is, in ms: by then the start must be written.

local starting = KEYS[1]
local code, lease = ARGV[1], tonumber(ARGV[2])
local time = redis.call("TIME")
local due = time[1] * 1000 + math.floor(time[2] / 1000) + lease

-- Half a millisecond more, which no claim's score is: whoever claimed the room before sees that it was scheduled again, and leaves it.
redis.call("ZADD", starting, due + 0.5, code)
return due
