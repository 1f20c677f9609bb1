-- Buys a new refresh token with an old one, which stays good for a little while: its client may have lost the answer.
--
-- KEYS  1 the player (hash: name, created, generation, seen)   2 the player's refresh tokens (sorted set: hash of the token, expiry in ms)
-- ARGV  1 SHA-256 of the old token   2 SHA-256 of the new one   3 lifetime of the new one in ms   4 grace of the old one in ms
--       5 most tokens a player
-- Returns {name, created in ms, generation}, or nil when the old token is unknown, expired or dropped.

local player, tokens = KEYS[1], KEYS[2]
local old, new = ARGV[1], ARGV[2]
local lifetime, grace, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local expiry = tonumber(redis.call("ZSCORE", tokens, old))
if not expiry or expiry <= now or redis.call("EXISTS", player) == 0 then
  return nil
end
redis.call("HSET", player, "seen", string.format("%d", now))
redis.call("ZREMRANGEBYSCORE", tokens, "-inf", now)
redis.call("ZADD", tokens, "LT", now + grace, old)
redis.call("ZADD", tokens, now + lifetime, new)
redis.call("ZREMRANGEBYRANK", tokens, 0, -(most + 1))
redis.call("PEXPIRE", player, lifetime)
redis.call("PEXPIRE", tokens, lifetime)
return redis.call("HMGET", player, "name", "created", "generation")
