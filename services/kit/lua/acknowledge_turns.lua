-- Takes matches out of those that are handed out, unless they were put there again since they were claimed.
-- KEYS  1 turns (sorted set: match id → ms from which on it may be handed out)
-- ARGV  1 the score that the claim gave them   2… match ids
-- Returns how many it took out.
local claimed, gone, first = tonumber(ARGV[1]), 0, 2

for i = first, #ARGV do
  if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or -1) == claimed then
    gone = gone + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return gone
