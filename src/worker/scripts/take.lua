-- Takes over pending entries that have been idle for long, without counting that as a delivery.
-- Those that are no longer in the stream are dropped from the pending list, each with a dead letter.
--
-- ARGV: min_idle in ms, cursor, count, limit of the dead letters ('-': there are none), then ids that
-- the worker holds: it has their payloads, so they get no dead letter here.
-- Answers {next cursor, {{id, fields}, ...}, {deleted id, ...}} as XAUTOCLAIM does, and after that
-- {delivery count of each entry, ...} and {deleted id whose dead letter could not be written, ...}.
local error = superseded()
if error then return error end

local cap = ARGV[7] ~= '-' and ARGV[7]
local page = redis.call('XAUTOCLAIM', stream, group, consumer, ARGV[4], ARGV[5],
                        'COUNT', ARGV[6], 'JUSTID')
local entries, deliveries, unwritten = {}, {}, {}
for _, id in ipairs(page[2]) do
  entries[#entries + 1] = entry_of(id)
  deliveries[#deliveries + 1] = pending_entry(id)[4]
end
local held = {}
for i = 8, #ARGV do held[ARGV[i]] = true end
for _, id in ipairs(page[3]) do
  if not held[id] and bury_trimmed(id, '', '', cap) ~= true then unwritten[#unwritten + 1] = id end
end
return {page[1], entries, page[3], deliveries, unwritten}
