-- Reads a room.
--
-- KEYS  1 the room (string: a document)
-- Returns {the document; when it expires, in ms since the epoch}, or nil when there is no such room.

local document = redis.call("GET", KEYS[1])

if not document then
  return nil
end
return {document, redis.call("PEXPIRETIME", KEYS[1])}
