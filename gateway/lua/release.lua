-- Gives up the claim of a request that was refused and created nothing, so that its key may come with a better body.
--
-- KEYS  1 the request (hash: fingerprint, id, answer)
-- ARGV  1 the id that the claim gave
-- Returns 1 when it is given up, 0 when it is another's by now, or answered.

local request = KEYS[1]
local id = ARGV[1]

if redis.call("HGET", request, "id") ~= id or redis.call("HEXISTS", request, "answer") == 1 then
  return 0
end
return redis.call("DEL", request)
