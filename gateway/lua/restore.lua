-- Puts keys of one slot back, as dump.lua took them, over what is there.
--
-- KEYS  1… the keys
-- ARGV  for each key: what DUMP gave, when it expires in ms or -1
-- Returns now in ms; what has expired by then is not put back.

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

for i, key in ipairs(KEYS) do
  local dump, expiry = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  if expiry < 0 or expiry > now then
    redis.call("RESTORE", key, math.max(expiry, 0), dump, "REPLACE", "ABSTTL")
  end
end
return now
