-- Takes over pending entries that have been idle for long, without counting that as a delivery.
-- Those that are no longer in the stream are dropped from the pending list, each with a dead letter;
-- where a sink takes dead letters, they stay pending until it has theirs.
--
-- ARGV: min_idle in ms, cursor, count, limit of the dead letters ('-': there are none, 'sink': they
-- are not for a stream), then ids that the worker holds: it has their payloads, so they get no dead
-- letter here.
-- Answers {next cursor, {{id, fields}, ...}, {deleted id, ...}} as XAUTOCLAIM does, and after that
-- {delivery count of each entry, ...}, {deleted id whose dead letter could not be written, ...} and
-- {{id, owner, delivery count} of each that is deleted and still pending, ...}.
local error = superseded()
if error then return error end

local min_idle, cursor, count, cap = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local held = {}
for i = 8, #ARGV do held[ARGV[i]] = true end

-- What XAUTOCLAIM would do, but for what it would drop.
local function page_for_sink()
  local page, trimmed = {'0-0', {}, {}}, {}
  local most = 10 * count
  for i, seen in ipairs(redis.call('XPENDING', stream, group, cursor, '+', most + 1)) do
    local id = seen[1]
    if i > most or #page[2] + #trimmed == count then
      page[1] = id
      break
    end
    if seen[3] >= tonumber(min_idle) then
      if entry_of(id) then
        redis.call('XCLAIM', stream, group, consumer, min_idle, id, 'JUSTID')
        page[2][#page[2] + 1] = id
      elseif not held[id] then
        trimmed[#trimmed + 1] = {id, seen[2], pending_entry(id)[4]}
      end
    end
  end
  return page, trimmed
end

local page, trimmed
if cap == 'sink' then
  page, trimmed = page_for_sink()
else
  page = redis.call('XAUTOCLAIM', stream, group, consumer, min_idle, cursor,
                    'COUNT', count, 'JUSTID')
end

local entries, deliveries, unwritten = {}, {}, {}
for _, id in ipairs(page[2]) do
  entries[#entries + 1] = entry_of(id)
  deliveries[#deliveries + 1] = pending_entry(id)[4]
end
for _, id in ipairs(page[3]) do
  if cap ~= '-' and not held[id] then
    local letter = {id = id, consumer = '', attempts = '', failed = now_ms(), first_failed = '',
                    reason = 'trimmed: deleted from the stream while it was pending', cap = cap}
    if write_dead_letter(letter, {}) ~= true then unwritten[#unwritten + 1] = id end
  end
end
return {page[1], entries, page[3], deliveries, unwritten, trimmed or {}}
