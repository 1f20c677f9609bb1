-- Reads a match and, for a retry, the answer that the first try got.
-- KEYS  1 match (hash)   2 answers (hash)
-- ARGV  1 the answer's field, or "" for none
-- Returns {now in ms, answer or false, version or false, last, mark, meta, table, state}.
local field = ARGV[1]

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local answer = field ~= '' and redis.call('HGET', KEYS[2], field)
local match = redis.call('HMGET', KEYS[1], 'version', 'last', 'mark', 'meta', 'table', 'state')
return {now, answer, unpack(match)}
