-- Compare-and-set on entries that this consumer holds: each id is changed only if the consumer
-- still owns it with the delivery count that it expects. A late copy from a closed connection, or
-- an entry that a peer has taken, changes nothing.
--
-- KEYS: stream. ARGV: group, consumer, idle to set in ms, then id, expected count, new count, ...
-- Answers a list with 1 (changed) or 0 (not ours) for each id.
local stream, group, consumer, idle = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local answers = {}
for i = 4, #ARGV, 3 do
  local id = ARGV[i]
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if pending and pending[2] == consumer and pending[4] == tonumber(ARGV[i + 1]) then
    redis.call('XCLAIM', stream, group, consumer, 0, id,
               'IDLE', idle, 'RETRYCOUNT', ARGV[i + 2], 'JUSTID')
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = 0
  end
end
return answers
