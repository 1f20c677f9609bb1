-- Reads a match and, for a retry, the answer that the first try got; of a match in real time its round too.
-- KEYS  1 match (hash)   2 answers (hash)   3 present (sorted set: "seat replica" → when its lease ends, ms)   4 round (hash), in real time only
-- ARGV  1 the answer's field, or "" for none
-- Returns {now in ms, answer or false, {field, value, …} of the round, who is present as present.lua keeps it where somebody is connected,
-- version or false, last, mark, meta, table, state, connected, acted, watched}.
local field = ARGV[1]

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local answer = field ~= '' and redis.call('HGET', KEYS[2], field)
local match = redis.call('HMGET', KEYS[1], 'version', 'last', 'mark', 'meta', 'table', 'state', 'connected', 'acted', 'watched')
local present = (match[7] or '') ~= '' and redis.call('ZRANGE', KEYS[3], '(' .. now, '+inf', 'BYSCORE') or {}
local round = KEYS[4] and redis.call('HGETALL', KEYS[4]) or {}
return {now, answer, round, present, unpack(match, 1, 9)}
