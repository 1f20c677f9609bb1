-- Takes keys of one slot as they stand at one moment.
--
-- KEYS  1… the keys
-- Returns {now in ms, then for each key: what DUMP gives or nil, when it expires in ms or -1}.

local time = redis.call("TIME")
local taken = {time[1] * 1000 + math.floor(time[2] / 1000)}

for _, key in ipairs(KEYS) do
  taken[#taken + 1] = redis.call("DUMP", key)
  taken[#taken + 1] = redis.call("PEXPIRETIME", key)
end
return taken
