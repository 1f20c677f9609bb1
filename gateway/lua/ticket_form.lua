-- Looks for a match for a waiting ticket, and claims those who are to play it: all of it in one step, so that nobody is claimed twice.
--
-- Others are looked for among the nearest by rating, a bounded number of them. Each is within the ticket's band of now and has the ticket
-- within its own. Players of one ticket stay together. So many seats as the ticket wishes for at most are tried first; fewer than each of
-- the group wishes for at most will do once one of them has lost patience. A ticket whose time for bots has come fills its fewest seats with
-- them, together with others of whom that is true.
--
-- KEYS  1 what the keys of the game's matchmaking begin with (see gateway/matching.py)
-- ARGV  1 the ticket's id   2 an id freshly minted for the match   3 how long a ticket may go unseen, in ms   4 patience in ms
--       5 in how many ms at most to look again   6 how many neighbours to look at, each way   7 lease in ms
--       8… steps of the band, in order: from how many ms on, how wide (-1 any)
-- Returns {FORMED}: the match is to be made; {WAITING, ms until it is looked at again}; {STALE}: it has gone unseen and is to be ended;
-- {GONE}: it does not wait any more.

local base = KEYS[1]
local seed, match = ARGV[1], ARGV[2]
local unseen, patience, again, near, lease = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local due, forming = base .. ":due", base .. ":forming"
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function read(id)
  local fields = redis.call("HMGET", base .. ":ticket:" .. id,
    "status", "size", "min", "max", "rating", "created", "seen", "bots", "wish", "match")
  if fields[1] ~= "WAITING" then
    return {status = fields[1], match = fields[10]}
  end
  local created, bots, band = tonumber(fields[6]), tonumber(fields[8]), 0
  for i = 8, #ARGV, 2 do
    if now - created >= tonumber(ARGV[i]) then
      band = tonumber(ARGV[i + 1])
    end
  end
  local bots_due = bots >= 0 and now >= bots
  return {
    id = id, status = "WAITING", size = tonumber(fields[2]), min = tonumber(fields[3]), max = tonumber(fields[4]),
    rating = tonumber(fields[5]), created = created, seen = tonumber(fields[7]), bots = bots, wish = fields[9],
    band = band < 0 and math.huge or band, bots_due = bots_due, patient = not bots_due and now - created < patience,
  }
end

local own = read(seed)
if own.status == "FORMING" and own.match == match then
  return {"FORMED"}
elseif own.status ~= "WAITING" then
  redis.call("ZREM", due, seed)
  return {"GONE"}
elseif now - own.seen > unseen then
  return {"STALE"}
end

local queue = base .. ":queue:" .. own.wish
local low, high = "-inf", "+inf"
if own.band < math.huge then
  low, high = own.rating - own.band, own.rating + own.band
end
local others = {}
for _, ids in ipairs({
  redis.call("ZRANGE", queue, "(" .. own.rating, low, "BYSCORE", "REV", "LIMIT", 0, near),
  redis.call("ZRANGE", queue, own.rating, high, "BYSCORE", "LIMIT", 0, near + 1),
}) do
  for _, id in ipairs(ids) do
    local other = id ~= seed and read(id)
    if other and other.status == "WAITING" and now - other.seen <= unseen then
      other.far = math.abs(other.rating - own.rating)
      if other.far <= other.band then
        others[#others + 1] = other
      end
    end
  end
end
table.sort(others, function(a, b)
  if a.far ~= b.far then
    return a.far < b.far
  end
  return a.created ~= b.created and a.created < b.created or a.created == b.created and a.id < b.id
end)

-- Returns those with whom the ticket is `count` players in a match of `seats`, nearest first, as a chain {other, rest}; or nil. Groups are
-- found by their number of players, apart for those in which everybody is patient still.
local function pick(count, seats, whom)
  local patient, not_patient = {}, {}
  if own.patient then
    patient[own.size] = {}
  else
    not_patient[own.size] = {}
  end
  for _, other in ipairs(others) do
    if not_patient[count] then
      break
    end
    if other.min <= seats and seats <= other.max and (whom ~= "full" or other.max == seats) and (whom ~= "bots" or other.bots_due) then
      for players = count - other.size, own.size, -1 do
        local sum = players + other.size
        if not_patient[players] then
          not_patient[sum] = not_patient[sum] or {other, not_patient[players]}
        end
        if patient[players] then
          local into = other.patient and patient or not_patient
          into[sum] = into[sum] or {other, patient[players]}
        end
      end
    end
  end
  return not_patient[count] or (whom == "full" and patient[count]) or nil
end

local found, seats
for n = own.max, own.min, -1 do
  found = n == own.max and pick(n, n, "full") or pick(n, n, "any")
  if found then
    seats = n
    break
  end
end
if not found and own.bots_due then
  seats = own.min
  for players = seats - 1, own.size, -1 do
    found = pick(players, seats, "bots")
    if found then
      break
    end
  end
end

if not found then
  local next = math.min(now + again, own.seen + unseen + 1)
  local function at(moment)
    if moment > now and moment < next then
      next = moment
    end
  end
  at(own.created + patience)
  at(own.bots)
  for i = 8, #ARGV, 2 do
    at(own.created + tonumber(ARGV[i]))
  end
  redis.call("ZADD", due, "XX", next, seed)
  return {"WAITING", next - now}
end

local claimed, players, chain = {own}, own.size, found
while chain[1] do
  claimed[#claimed + 1], players, chain = chain[1], players + chain[1].size, chain[2]
end
local ids = {}
for i, ticket in ipairs(claimed) do
  local key = base .. ":ticket:" .. ticket.id
  redis.call("HSET", key, "status", "FORMING", "match", match)
  redis.call("HINCRBY", key, "version", 1)
  redis.call("ZREM", queue, ticket.id)
  redis.call("ZREM", due, ticket.id)
  ids[i] = ticket.id
end
redis.call("HSET", base .. ":match:" .. match, "tickets", table.concat(ids, " "), "bots", seats - players, "tries", "0")
redis.call("ZADD", forming, now + lease, match)
return {"FORMED"}
