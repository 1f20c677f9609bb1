-- Commits the next version of a match: state, events, answer, expiry and bell in one step. Creating is committing version 1 on version 0.
-- KEYS  1 match (hash)   2 events (stream)   3 answers (hash)   4 bell (sharded channel)   5 round (hash)
-- ARGV  1 the version that the caller judged   2 the commit's random mark   3 expiry in ms   4 the last ms at which it may be made, or ""
--       5 meta, or "" to keep it   6 table   7 state
--       8 the answer's field, or ""   9 the answer
--       10 how many reactions of the round the caller judged   11 the round: "" to leave it, "seal", "end", or "number pillows waiting cap until" to open one,
--       `cap` and `until` in ms or "-"
--       12 the seats that are connected, as the caller judged it, or "-" if that does not matter   13 those from now on, or "-" to leave them
--       14 when a player acted last, in ms, or "" if none did now   15… the events, at least one
-- Returns {1, time of the commit in ms, the event that it follows}, also when this very commit was made before; {0, current version, ""} when
-- another, or a reaction, came first or is pending in a round that this would close, or {-1, now, ""} when it is too late: then nothing changed.
local judged, mark, expiry, latest = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local meta, board, state = ARGV[5], ARGV[6], ARGV[7]
local field, answer, reactions, round = ARGV[8], ARGV[9], tonumber(ARGV[10]), ARGV[11]
local seen, connected, acted, first = ARGV[12], ARGV[13], ARGV[14], 15
local version = judged + 1

local match = redis.call('HMGET', KEYS[1], 'version', 'last', 'connected')
local current = tonumber(match[1] or 0)
if current ~= judged then
  -- A first try whose answer was lost may have made it, and others went on from there.
  local made = redis.call('XRANGE', KEYS[2], version .. '-0', version .. '-0')[1]
  if made and made[2][4] == mark then
    local before = redis.call('XREVRANGE', KEYS[2], '(' .. version .. '-0', '-', 'COUNT', 1)[1]
    return {1, tonumber(made[2][2]), before and before[1] or '0-0'}
  end
  return {0, current, ''}
end
local taken = redis.call('HMGET', KEYS[5], 'count', 'due')
if tonumber(taken[1] or 0) ~= reactions or taken[2] and round ~= '' or seen ~= '-' and seen ~= (match[3] or '') then
  return {0, current, ''}
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if latest and now > latest then
  return {-1, now, ''}
end

-- What watchers get: where this follows on, then each event behind its length.
local follows = judged .. '-' .. (match[2] or 0)
local bell = {follows .. ' ' .. version .. ' 0 ' .. now .. '\n' .. mark}
for i = first, #ARGV do
  redis.call('XADD', KEYS[2], version .. '-' .. (i - first), 'time', now, 'mark', mark, 'entry', ARGV[i])
  bell[#bell + 1] = struct.pack('>I4', #ARGV[i]) .. ARGV[i]
end
if meta ~= '' then
  redis.call('HSET', KEYS[1], 'meta', meta)
end
redis.call('HSET', KEYS[1], 'version', version, 'last', #ARGV - first, 'mark', mark, 'table', board, 'state', state)
if connected ~= '-' then
  redis.call('HSET', KEYS[1], 'connected', connected)
end
if acted ~= '' then
  redis.call('HSET', KEYS[1], 'acted', acted)
end
if field ~= '' then
  redis.call('HSET', KEYS[3], field, answer)
end
if round == 'end' then
  redis.call('DEL', KEYS[5])
elseif round == 'seal' then
  redis.call('HSET', KEYS[5], 'sealed', 1)
elseif round ~= '' then
  local number, pillows, waiting, cap, until_ms = round:match('(%d+) (%d+) (%d+) (%S+) (%S+)')
  redis.call('DEL', KEYS[5])
  redis.call('HSET', KEYS[5], 'number', number, 'pillows', pillows, 'waiting', waiting, 'cap', cap, 'until', until_ms,
    'began', now, 'count', 0, 'sealed', 0)
end
for _, i in ipairs({1, 2, 3, 5}) do
  redis.call('PEXPIRE', KEYS[i], expiry)
end
redis.call('SPUBLISH', KEYS[4], table.concat(bell))
return {1, now, follows}
