-- Takes in who watches a match, and tells when that has changed: the events are appended and the bell is rung without another version.
-- KEYS  1 match (hash)   2 events (stream)   3 bell (sharded channel)   4 present (sorted set: "seat replica" → when its lease ends, ms)
-- ARGV  1 the version that the caller judged, or "" to take in alone   2 the seats connected as it was judged   3 the seats present as it was
--       judged   4 the seats connected from now on   5 a random mark   6 how many leases
--       then 2 for each lease: "seat replica", how long it is to last in ms; then the events
-- Seats are ascending, a space between them. Returns {0, the seats connected, those present}, when there was nothing to tell, or it was judged
-- otherwise than it is; {1, now in ms, the number of the event before, how many were appended}; {} when there is no match.
-- So often at most a version tells of it: those beyond are stored without an event, lest somebody come and go for ever.
local judged, were, seen, become, mark, leases, first = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), 7
local MOST, EVENTS = 1000, first + 2 * leases

local match = redis.call('HMGET', KEYS[1], 'version', 'last', 'connected')
if not match[1] then
  return {}
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for i = first, EVENTS - 1, 2 do
  redis.call('ZADD', KEYS[4], now + ARGV[i + 1], ARGV[i])
end
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
local there, taken, seats = redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES'), {}, {}
for i = 1, #there, 2 do
  local seat = tonumber(there[i]:match('^%d+'))
  if not taken[seat] then
    taken[seat], seats[#seats + 1] = true, seat
  end
end
if #there > 0 then
  redis.call('PEXPIREAT', KEYS[4], math.ceil(there[#there]))
end
table.sort(seats)
local present, connected = table.concat(seats, ' '), match[3] or ''
if judged ~= match[1] or were ~= connected or seen ~= present then
  return {0, connected, present}
end

local last, appended = tonumber(match[2]), 0
if last < MOST then
  local bell = {judged .. '-' .. last .. ' ' .. judged .. ' ' .. (last + 1) .. ' ' .. now .. '\n' .. mark}
  for i = EVENTS, #ARGV do
    appended = appended + 1
    redis.call('XADD', KEYS[2], judged .. '-' .. (last + appended), 'time', now, 'mark', mark, 'entry', ARGV[i])
    bell[#bell + 1] = struct.pack('>I4', #ARGV[i]) .. ARGV[i]
  end
  redis.call('HSET', KEYS[1], 'last', last + appended, 'mark', mark)
  redis.call('SPUBLISH', KEYS[3], table.concat(bell))
end
redis.call('HSET', KEYS[1], 'connected', become, 'watched', now)
return {1, now, last, appended}
