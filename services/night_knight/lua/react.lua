-- Orders a reaction: one call decides its verdict, its rank and its pillow, appends the event and rings (NK-10 to NK-13, NK-19 by arrival).
-- KEYS  1 match (hash)   2 events (stream)   3 answers (hash)   4 bell (sharded channel)   5 round (hash)
-- ARGV  1 the round   2 the seat   3 the action, as React.Action numbers it   4 the event, but for verdict, rank and evidence
--       5 the reaction's random mark   6 the move for the record   7 the answer's field, or ""   8 the answer's fingerprint
-- Returns {1, version, n, time in ms, the entry}, also when this very reaction was ordered before; or {0, reason} and nothing changed.
local number, seat, action, event = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local mark, act, field, fingerprint = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local TOUCH, PASS = 4, 5
local GRANTED, TOO_LATE, TOUCHED, PASSED = 1, 2, 3, 4

local round = redis.call('HMGET', KEYS[5], 'number', 'pillows', 'waiting', 'began', 'count', 'sealed', 'seat:' .. seat)
if round[1] ~= number then
  return {0, 'ROUND_OVER'}
end
if round[7] then
  local version, n = round[7]:match('^(%d+)-(%d+)')
  local made = redis.call('XRANGE', KEYS[2], version .. '-' .. n, version .. '-' .. n)[1]
  if made and made[2][4] == mark then
    return {1, tonumber(version), tonumber(n), tonumber(made[2][2]), made[2][6]}
  end
  return {0, 'ALREADY_REACTED'}
end
local pillows, waiting, sealed = tonumber(round[2]), tonumber(round[3]), round[6] == '1'
local rank = tonumber(round[5]) + 1

local verdict, rule
if sealed then
  verdict, rule = TOO_LATE, 'NK-13'
elseif action == PASS then
  verdict, rule = PASSED, 'NK-13'
elseif pillows == 0 then
  verdict, rule = TOO_LATE, 'NK-12'
elseif action == TOUCH then
  verdict, rule = TOUCHED, 'NK-11'
else
  verdict, rule = GRANTED, 'NK-10'
  pillows = pillows - 1
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local received = now - tonumber(round[4])

-- What the event still lacks, as protobuf writes it: a second Event.reacted, which readers merge with the first.
local function varint(value)
  local bytes = ''
  while value > 127 do
    bytes = bytes .. string.char(128 + value % 128)
    value = math.floor(value / 128)
  end
  return bytes .. string.char(value)
end
local function bytes(tag, value)
  return string.char(tag) .. varint(#value) .. value
end
local evidence = '\8' .. varint(received) .. bytes(0x2a, rule)
event = event .. bytes(0x2a, '\32' .. varint(verdict) .. '\40' .. varint(rank) .. bytes(0x32, evidence))

-- The entry as `sessions.Entry` has it, in MessagePack: public, no private, the move, not final.
local function binary(value)
  return '\196' .. string.char(#value) .. value
end
local entry = '\148' .. binary(event) .. '\128' .. binary(act) .. '\194'

local match = redis.call('HMGET', KEYS[1], 'version', 'last')
local version, last = match[1], tonumber(match[2])
local n = last + 1
redis.call('XADD', KEYS[2], version .. '-' .. n, 'time', now, 'mark', mark, 'entry', entry)
redis.call('HSET', KEYS[1], 'last', n, 'mark', mark)
local over = sealed or pillows == 0 or waiting == 1
redis.call('HSET', KEYS[5], 'pillows', pillows, 'waiting', waiting - 1, 'count', rank, 'sealed', over and 1 or 0,
  'seat:' .. seat, version .. '-' .. n, 'reaction:' .. rank, received .. ' ' .. act)
if field ~= '' then
  redis.call('HSET', KEYS[3], field, version .. ' ' .. n .. ' ' .. n .. ' ' .. fingerprint)
end
local head = version .. '-' .. last .. ' ' .. version .. ' ' .. n .. ' ' .. now .. '\n' .. mark
redis.call('SPUBLISH', KEYS[4], head .. struct.pack('>I4', #entry) .. entry)
return {1, tonumber(version), n, now, entry}
