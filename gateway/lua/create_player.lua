-- Makes a player where there is none of that id, and adds a refresh token.
--
-- KEYS  1 the player (hash: name, created, generation, seen)   2 the player's refresh tokens (sorted set: hash of the token, expiry in ms)
-- ARGV  1 name   2 SHA-256 of the new refresh token   3 its lifetime in ms   4 most tokens a player
-- Returns {name, created in ms, generation}, those of the player that was there first.

local player, tokens = KEYS[1], KEYS[2]
local name, token, lifetime, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if redis.call("EXISTS", player) == 0 then
  redis.call("HSET", player, "name", name, "created", string.format("%d", now), "generation", "0")
end
redis.call("HSET", player, "seen", string.format("%d", now))
redis.call("ZADD", tokens, now + lifetime, token)
redis.call("ZREMRANGEBYRANK", tokens, 0, -(most + 1))
redis.call("PEXPIRE", player, lifetime)
redis.call("PEXPIRE", tokens, lifetime)
return redis.call("HMGET", player, "name", "created", "generation")
