-- Stores the answer to a claimed request; the first one stays.
--
-- KEYS  1 the request (hash: fingerprint, id, answer)
-- ARGV  1 the id that the claim gave   2 the answer
-- Returns the answer that is stored, or nil when the claim is another's by now, or forgotten.

local request = KEYS[1]
local id, answer = ARGV[1], ARGV[2]

if redis.call("HGET", request, "id") ~= id then
  return nil
end
redis.call("HSETNX", request, "answer", answer)
return redis.call("HGET", request, "answer")
