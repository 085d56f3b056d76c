-- Appends what a dead letter tells of to its stream again, and deletes the letter.
--
-- KEYS: the stream, the stream of its dead letters. ARGV: the letter's id, how many of its words are
-- the letter's own.
-- Answers the new entry's id, or nil if there is no such letter.
local letter = redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1])[1]
if not letter then return false end
local words = {}
for i = tonumber(ARGV[2]) + 1, #letter[2] do words[#words + 1] = letter[2][i] end
local id = redis.call('XADD', KEYS[1], '*', unpack(words))
redis.call('XDEL', KEYS[2], ARGV[1])
return id
