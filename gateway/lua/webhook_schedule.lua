-- Schedules a notice to be sent, also where it is claimed or was to be sent later.
--
-- KEYS  1 due (sorted set: "player match", when in ms)
-- ARGV  1 "player match"   2 how long the set is kept, in ms
-- Returns when it is due, in ms.

local due = KEYS[1]
local notice, keep = ARGV[1], tonumber(ARGV[2])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Half a millisecond early, which no claim's score is: whoever has claimed it then leaves it.
redis.call("ZADD", due, now - 0.5, notice)
redis.call("PEXPIRE", due, keep)
return now
