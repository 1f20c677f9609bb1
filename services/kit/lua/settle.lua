-- Ends a claim: sets the match's next wake-up, or removes it, unless it was scheduled again meanwhile.
-- KEYS  1 deadlines (sorted set: match id → ms)
-- ARGV  1 match id   2 the score that the claim gave it   3 the next wake-up in ms, or "" for none
-- Returns 1 if it did, 0 if it left it.
local id, claimed, due = ARGV[1], tonumber(ARGV[2]), ARGV[3]

if tonumber(redis.call('ZSCORE', KEYS[1], id) or -1) ~= claimed then
  return 0
end
if due == '' then
  redis.call('ZREM', KEYS[1], id)
else
  redis.call('ZADD', KEYS[1], due, id)
end
return 1
