-- Takes over pending entries that have been idle for long, without counting that as a delivery.
--
-- KEYS: stream. ARGV: group, consumer, min_idle in ms, cursor, count, ids whose entries are too big
-- to be sent ...
-- Answers as XAUTOCLAIM does {next cursor, {{id, fields}, ...}, {deleted id, ...}}, and after that
-- the delivery count of each entry {deliveries, ...}.
local stream, group, consumer = KEYS[1], ARGV[1], ARGV[2]
local page = redis.call('XAUTOCLAIM', stream, group, consumer, ARGV[3], ARGV[4],
                        'COUNT', ARGV[5], 'JUSTID')
local entries, deliveries = {}, {}
local left_out = {}
for i = 6, #ARGV do left_out[ARGV[i]] = true end
for _, id in ipairs(page[2]) do
  if not left_out[id] then
    local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
    entries[#entries + 1] = redis.call('XRANGE', stream, id, id)[1]
    deliveries[#deliveries + 1] = pending[4]
  end
end
return {page[1], entries, page[3], deliveries}
