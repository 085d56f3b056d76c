-- Compare-and-set on entries that this consumer holds: each id is changed only if the consumer
-- still owns it with the delivery count that it expects. A late copy from a closed connection, or
-- an entry that a peer has taken, changes nothing. Nor is an entry changed that is no longer in the
-- stream: XCLAIM would drop it from the pending list without a word, where the reaper reports it.
--
-- KEYS: stream. ARGV: group, consumer, idle to set in ms, then id, expected count, new count, ...
-- Answers a list with 1 (changed), 0 (not ours) or 2 (ours, but no longer in the stream) for each id.
local stream, group, consumer, idle = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local answers = {}
for i = 4, #ARGV, 3 do
  local id = ARGV[i]
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if pending and pending[2] == consumer and pending[4] == tonumber(ARGV[i + 1]) then
    if #redis.call('XRANGE', stream, id, id) == 0 then
      answers[#answers + 1] = 2
    else
      redis.call('XCLAIM', stream, group, consumer, 0, id,
                 'IDLE', idle, 'RETRYCOUNT', ARGV[i + 2], 'JUSTID')
      answers[#answers + 1] = 1
    end
  else
    answers[#answers + 1] = 0
  end
end
return answers
