-- Makes the entry that a dead letter tells of pending in its group again, as if it had never been
-- started, and deletes the letter.
--
-- KEYS: the stream, the stream of its dead letters. ARGV: the letter's id, the group, the entry's id,
-- a consumer to own it until it is taken over, how long it is to have been idle in ms.
-- Answers 1, 0 if there is no such letter, or -1 if the entry is no longer in the stream. One that is
-- pending already stays with its owner.
if #redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1]) == 0 then return 0 end
if #redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3]) == 0 then return -1 end
if #redis.call('XPENDING', KEYS[1], ARGV[2], ARGV[3], ARGV[3], 1) == 0 then
  redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[4], 0, ARGV[3],
             'IDLE', ARGV[5], 'RETRYCOUNT', 0, 'FORCE', 'JUSTID')
end
redis.call('XDEL', KEYS[2], ARGV[1])
return 1
