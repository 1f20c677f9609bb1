-- Takes in what is to be told to a player of a match: the newest alone, and nothing twice.
--
-- KEYS  1 the player (hash; see webhook_set.lua)   2 notices (hash: match id → "version kind clock open tries since", a newline and the body)
-- ARGV  1 match id   2 its version   3 kind: "turn" or "ended"; "wait", it is the player's turn, and not to be told yet; "none"
--       4 when the player's clock runs out in ms, or "-"   5 the body   6 most notices   7 how long they are kept, in ms
-- Returns 1 if the notice is to be sent, or with "wait" if there is one to be told later; else 0.

local player, notices = KEYS[1], KEYS[2]
local match, version, kind, clock, body = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local most, keep = tonumber(ARGV[6]), tonumber(ARGV[7])
local hook = redis.call("HMGET", player, "webhook_url", "webhook_disabled")
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if not hook[1] or hook[2] then
  return 0
end
local there = redis.call("HGET", notices, match)
if there then
  local known, what, runs_out, open, tail = there:match("^(%d+) (%l+) (%S+) (%d)(.*)$")
  -- Of several who are to move at once, one has moved: the others' turn is still the same.
  local same = what == "turn" and (kind == "turn" or kind == "wait") and clock ~= "-" and runs_out == clock
  if tonumber(known) >= version or same then
    return kind ~= "wait" and tonumber(open) or 0
  end
  if kind == "wait" then
    redis.call("HSET", notices, match, string.format("%s %s %s 0", known, what, runs_out) .. tail)
  end
elseif kind ~= "wait" and redis.call("HLEN", notices) >= most then
  -- What is settled goes first, then the oldest.
  local oldest, least
  local all = redis.call("HGETALL", notices)
  for i = 1, #all, 2 do
    local unsent, since = all[i + 1]:match("^%d+ %l+ %S+ (%d) %d+ (%d+)")
    local rank = tonumber(since) + tonumber(unsent) * 2 ^ 50
    if not least or rank < least then
      oldest, least = all[i], rank
    end
  end
  redis.call("HDEL", notices, oldest)
end
if kind == "wait" then
  return 1
end
local open = kind == "none" and 0 or 1
redis.call("HSET", notices, match, string.format("%d %s %s %d 0 %d\n", version, kind, clock, open, now) .. body)
redis.call("PEXPIRE", notices, keep)
return open
