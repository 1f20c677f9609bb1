-- Claims a request under its Idempotency-Key; whoever claims it again gets what the first one stored.
--
-- KEYS  1 the request (hash: fingerprint, id, answer)
-- ARGV  1 fingerprint of the body   2 an id freshly minted for what the request may create   3 how long to remember it, in ms
-- Returns {fingerprint, id, answer or nil} of the first claim.

local request = KEYS[1]
local fingerprint, id, lifetime = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call("EXISTS", request) == 0 then
  redis.call("HSET", request, "fingerprint", fingerprint, "id", id)
  redis.call("PEXPIRE", request, lifetime)
end
return redis.call("HMGET", request, "fingerprint", "id", "answer")
