-- Claims guests who have not been seen for long, for the length of a lease.
--
-- KEYS  1 guests (sorted set: player, when last seen in ms)
-- ARGV  1 for how long not, in ms   2 lease in ms   3 at most so many
-- Returns {since when they were not seen in ms, the score that the claim gave them, then the players}.

local guests = KEYS[1]
local unseen, lease, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call("TIME")
local since = time[1] * 1000 + math.floor(time[2] / 1000) - unseen

local players = redis.call("ZRANGE", guests, "-inf", since, "BYSCORE", "LIMIT", 0, most)
for _, player in ipairs(players) do
  redis.call("ZADD", guests, since + lease, player)
end
return {since, since + lease, unpack(players)}
