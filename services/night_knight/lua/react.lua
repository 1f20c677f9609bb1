-- Orders reactions: one call decides verdict, rank and pillow of all whose time has come, appends their events and rings once (NK-10 to NK-13).
-- By arrival that is at once. Compensated (NK-19) a reaction's adjusted time is its receive time less its round trip, at most the cap; it is
-- pending until nothing that could precede it can still come, or everybody has reacted, or the round is sealed.
-- KEYS  1 match (hash)   2 events (stream)   3 answers (hash)   4 bell (sharded channel)   5 round (hash)
-- ARGV  1 the version judged   2 the round   3 the number of the last event that the caller knows   4 this call's random mark
--       then 7 for each reaction, or none to decide what is due: the seat, the action as React.Action numbers it, the round trip in ms, the
--       Reaction but for what is decided here, the RecordedMove but for that Reaction, the answer's field or "", the answer's fingerprint
-- Returns {0}, and nothing changed, when the match is at another version or round. Else {1, now in ms, whether the round is sealed, when the next
-- pending one is to be decided in ms or -1, for each reaction the number of its event, or -1 pending, -2 its request was answered before,
-- -3 its seat has reacted, and for each event after the one known: its number, time in ms, mark, entry}. The same again for the same mark.
local judged, number, known, mark, first, size = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], 5, 7
local TOUCH, PASS = 4, 5
local GRANTED, TOO_LATE, TOUCHED, PASSED = 1, 2, 3, 4
local PENDING, ANSWERED, REACTED = -1, -2, -3

local match = redis.call('HMGET', KEYS[1], 'version', 'last')
local names, answers = {'number', 'pillows', 'waiting', 'began', 'count', 'sealed', 'cap', 'until', 'pending'}, {}
local fixed = #names
for i = first, #ARGV, size do
  names[#names + 1] = 'seat:' .. ARGV[i]
  answers[#answers + 1] = ARGV[i + 5]
end
local round = redis.call('HMGET', KEYS[5], unpack(names))
if match[1] ~= judged or round[1] ~= number then
  return {0}
end
answers = #answers > 0 and redis.call('HMGET', KEYS[3], unpack(answers)) or answers
local last, pillows, waiting, began, count = tonumber(match[2]), tonumber(round[2]), tonumber(round[3]), tonumber(round[4]), tonumber(round[5])
local sealed, cap, until_ms = round[6] == '1', tonumber(round[7] or ''), tonumber(round[8] or '')
local pending = round[9] and cmsgpack.unpack(round[9]) or {}
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local received = math.max(0, now - began)

-- Takes in what is new. A seat's field says by which call it came, and where its event is once it is decided.
local set, statuses, mine, took = {}, {}, {}, {}
for i = first, #ARGV, size do
  local at = (i - first) / size + 1
  local seat, key, there = ARGV[i], mark .. at .. ' ', round[fixed + at]
  if there and there:sub(1, #key) == key then
    statuses[at] = tonumber(there:match('^' .. judged .. '%-(%d+)$', #key + 1) or PENDING)
  elseif answers[at] then
    statuses[at] = ANSWERED
  elseif there or took[seat] then
    statuses[at] = REACTED
  else
    local trip = tonumber(ARGV[i + 2])
    local given = cap and math.min(trip, cap) or 0
    statuses[at], took[seat], mine[key] = PENDING, true, at
    waiting = waiting - 1
    pending[#pending + 1] = {received - given, count + #pending, seat, tonumber(ARGV[i + 1]), received, trip, given, ARGV[i + 3], ARGV[i + 4], key}
    set[#set + 1], set[#set + 2] = 'seat:' .. seat, key
  end
end
table.sort(pending, function(one, other)
  return one[1] < other[1] or one[1] == other[1] and one[2] < other[2]
end)

-- What a Reaction still lacks, as protobuf writes it: no field that is 0.
local function varint(value)
  local bytes = ''
  while value > 127 do
    bytes = bytes .. string.char(128 + value % 128)
    value = math.floor(value / 128)
  end
  return bytes .. string.char(value)
end
local function field(tag, value)
  return value == 0 and '' or string.char(tag) .. varint(value)
end
local function bytes(tag, value)
  return string.char(tag) .. varint(#value) .. value
end
local function binary(value)
  return '\196' .. string.char(#value) .. value
end

local entries, ranked = {}, count
local function due_of(reaction)
  -- One made after the action phase is too late, and need not wait for longer than those made in it.
  return cap and began + math.min(reaction[1], until_ms) + cap or now
end
while pending[1] and (sealed or waiting == 0 or due_of(pending[1]) <= now) do
  local adjusted, _, seat, action, came, trip, given, reaction, act, key = unpack(table.remove(pending, 1))
  local verdict, rule
  if sealed or cap and adjusted > until_ms then
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
  ranked = ranked + 1
  sealed = sealed or pillows == 0 or waiting == 0 and #pending == 0
  local evidence = field(8, came) .. field(16, trip) .. field(24, given) .. field(32, cap or 0) .. bytes(42, rule)
  -- Event.reacted and RecordedMove.reaction are both field 5.
  local decided = bytes(42, reaction .. field(32, verdict) .. field(40, ranked) .. bytes(50, evidence))
  act = act .. decided
  -- The entry as `sessions.Entry` has it, in MessagePack: public, no private, the move, not final.
  entries[#entries + 1] = '\148' .. binary(decided) .. '\128' .. binary(act) .. '\194'
  local n = last + #entries
  set[#set + 1], set[#set + 2] = 'seat:' .. seat, key .. judged .. '-' .. n
  set[#set + 1], set[#set + 2] = 'reaction:' .. ranked, act
  if mine[key] then
    statuses[mine[key]] = n
  end
end

local due = pending[1] and due_of(pending[1]) or -1
local ending = last + #entries
if #set > 0 then
  local bell = {judged .. '-' .. last .. ' ' .. judged .. ' ' .. (last + 1) .. ' ' .. now .. '\n' .. mark}
  for i, entry in ipairs(entries) do
    redis.call('XADD', KEYS[2], judged .. '-' .. (last + i), 'time', now, 'mark', mark, 'entry', entry)
    bell[#bell + 1] = struct.pack('>I4', #entry) .. entry
  end
  redis.call('HSET', KEYS[5], 'pillows', pillows, 'waiting', waiting, 'count', ranked, 'sealed', sealed and 1 or 0, unpack(set))
  if pending[1] then
    redis.call('HSET', KEYS[5], 'pending', cmsgpack.pack(pending), 'due', due)
  elseif round[9] then
    redis.call('HDEL', KEYS[5], 'pending', 'due')
  end
  for _, at in pairs(mine) do
    local i = first + (at - 1) * size
    if ARGV[i + 5] ~= '' then
      -- One that is pending has made nothing yet: from after the last event to it.
      local n = statuses[at]
      local made = n == PENDING and (ending + 1) .. ' ' .. ending or n .. ' ' .. n
      redis.call('HSET', KEYS[3], ARGV[i + 5], judged .. ' ' .. made .. ' ' .. ARGV[i + 6])
    end
  end
  if #entries > 0 then
    redis.call('HSET', KEYS[1], 'last', ending, 'mark', mark)
    redis.call('SPUBLISH', KEYS[4], table.concat(bell))
  end
end

local news = {}
if known < last then
  for _, there in ipairs(redis.call('XRANGE', KEYS[2], judged .. '-' .. (known + 1), judged .. '-' .. last)) do
    news[#news + 1] = {tonumber(there[1]:match('%d+$')), tonumber(there[2][2]), there[2][4], there[2][6]}
  end
end
for i, entry in ipairs(entries) do
  news[#news + 1] = {last + i, now, mark, entry}
end
return {1, now, sealed and 1 or 0, due, statuses, news}
