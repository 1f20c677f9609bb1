-- Claims what is due, for the length of a lease: waiting tickets to be looked at, and matches that somebody began to make and did not finish.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 lease in ms   2 at most so many of each
-- Returns {now in ms, when the next is due in ms or -1, how many tickets wait, {ids of tickets}, {ids of matches}}.

local base = KEYS[1]
local lease, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local claimed, next = {}, -1
for _, due in ipairs({base .. ":due", base .. ":forming"}) do
  local ids = redis.call("ZRANGE", due, "-inf", now, "BYSCORE", "LIMIT", 0, most)
  for _, id in ipairs(ids) do
    redis.call("ZADD", due, now + lease, id)
  end
  local first = tonumber(redis.call("ZRANGE", due, 0, 0, "WITHSCORES")[2])
  if first and (next < 0 or first < next) then
    next = first
  end
  claimed[#claimed + 1] = ids
end
return {now, next, redis.call("ZCARD", base .. ":due"), claimed[1], claimed[2]}
