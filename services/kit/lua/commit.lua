-- Commits the next version of a match: state, events, answer, expiry and bell in one step. Creating is committing version 1 on version 0.
-- KEYS  1 match (hash)   2 events (stream)   3 answers (hash)   4 bell (sharded channel)
-- ARGV  1 the version that the caller judged   2 the commit's random mark   3 expiry in ms
--       4 meta, or "" to keep it   5 table   6 state
--       7 the answer's field, or ""   8 the answer
--       9… the events, at least one
-- Returns {1, time of the commit in ms}, also when this very commit was made before; or {0, current version} and nothing changed.
local judged, mark, expiry = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local meta, board, state = ARGV[4], ARGV[5], ARGV[6]
local field, answer = ARGV[7], ARGV[8]
local version = judged + 1

local match = redis.call('HMGET', KEYS[1], 'version', 'mark', 'time', 'last')
local current = tonumber(match[1] or 0)
if current == version and match[2] == mark then
  return {1, tonumber(match[3])}
end
if current ~= judged then
  return {0, current}
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- What watchers get: where this follows on, then each event behind its length.
local bell = {judged .. '-' .. (match[4] or 0) .. ' ' .. version .. ' ' .. now .. '\n' .. mark}
for i = 9, #ARGV do
  redis.call('XADD', KEYS[2], version .. '-' .. (i - 9), 'time', now, 'mark', mark, 'entry', ARGV[i])
  bell[#bell + 1] = struct.pack('>I4', #ARGV[i]) .. ARGV[i]
end
if meta ~= '' then
  redis.call('HSET', KEYS[1], 'meta', meta)
end
redis.call('HSET', KEYS[1], 'version', version, 'last', #ARGV - 9, 'mark', mark, 'time', now, 'table', board, 'state', state)
if field ~= '' then
  redis.call('HSET', KEYS[3], field, answer)
end
for i = 1, 3 do
  redis.call('PEXPIRE', KEYS[i], expiry)
end
redis.call('SPUBLISH', KEYS[4], table.concat(bell))
return {1, now}
