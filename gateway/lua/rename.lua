-- Changes a player's name.
--
-- KEYS  1 the player (hash: name, created, generation)
-- ARGV  1 the new name; empty: unchanged
-- Returns {name, created in ms, generation}, or nil when there is no such player.

local player = KEYS[1]
local name = ARGV[1]

if redis.call("EXISTS", player) == 0 then
  return nil
end
if name ~= "" then
  redis.call("HSET", player, "name", name)
end
return redis.call("HMGET", player, "name", "created", "generation")
