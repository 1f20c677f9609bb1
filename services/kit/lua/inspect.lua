-- Tells how much is stored of a match.
-- KEYS  1 match (hash)   2 events (stream)   3 answers (hash)   4 present (sorted set: "seat replica" → when its lease ends, ms)   5 round (hash)
-- Returns {time of the first event in ms, time of the last, how many events, how many answers, memory in bytes, when the match expires in ms,
-- {"seat replica", when its lease ends in ms, …}}; {} when there is no match.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {}
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local bytes = 0
for _, key in ipairs(KEYS) do
  bytes = bytes + (redis.call('MEMORY', 'USAGE', key) or 0)
end
local first, last = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1], redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
return {
  tonumber(first and first[2][2] or now),
  tonumber(last and last[2][2] or now),
  redis.call('XLEN', KEYS[2]),
  redis.call('HLEN', KEYS[3]),
  bytes,
  redis.call('PEXPIRETIME', KEYS[1]),
  redis.call('ZRANGE', KEYS[4], '(' .. now, '+inf', 'BYSCORE', 'WITHSCORES'),
}
