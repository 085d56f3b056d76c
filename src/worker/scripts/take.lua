-- Takes over pending entries that have been idle for long, without counting that as a delivery. Of
-- those that are no longer in the stream, a worker that lives may have the payload yet: they are
-- left to it. The others are dropped from the pending list, each with a dead letter, in one step.
--
-- Not by XAUTOCLAIM, which drops what is no longer in the stream however young it is.
--
-- ARGV: min_idle in ms, cursor, count, limit of the dead letters ('-': there are none, 'sink': they
-- are not for a stream).
-- Answers {next cursor, {{id, fields}, ...}, {id that was dropped, ...}, {delivery count of each
-- entry, ...}, {{id, owner, delivery count} of each that is no longer in the stream and is to be
-- seen to by the caller, ...}}: those of its own, which it may hold, and those whose dead letter it
-- has to write.
local error = superseded()
if error then return error end

local min_idle, cursor, count, cap = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7]
local now = tonumber(now_ms())

local function lives(owner)
  local at = redis.call('HGET', record, 'at:' .. owner)
  return at and now - tonumber(at) < min_idle
end

local function put_aside(id)
  if cap == 'sink' then return false end
  if cap ~= '-' then
    local letter = {id = id, consumer = '', attempts = '', failed = now_ms(), first_failed = '',
                    reason = 'trimmed: deleted from the stream while it was pending', cap = cap}
    if write_dead_letter(letter, {}) ~= true then return false end
  end
  redis.call('XACK', stream, group, id)
  return true
end

local next_cursor, entries, deliveries, dropped, trimmed = '0-0', {}, {}, {}, {}
local most = 10 * count  -- as many as XAUTOCLAIM would look at
for i, seen in ipairs(redis.call('XPENDING', stream, group, cursor, '+', most + 1)) do
  local id, owner = seen[1], seen[2]
  if i > most or #entries + #dropped + #trimmed == count then
    next_cursor = id
    break
  end
  if seen[3] >= min_idle then
    local entry = entry_of(id)
    if entry then
      redis.call('XCLAIM', stream, group, consumer, ARGV[4], id, 'JUSTID')
      entries[#entries + 1] = entry
      deliveries[#deliveries + 1] = delivery_count(seen)
    elseif owner == consumer or not lives(owner) then
      if owner ~= consumer and put_aside(id) then
        dropped[#dropped + 1] = id
      else
        trimmed[#trimmed + 1] = {id, owner, delivery_count(seen)}
      end
    end
  end
end
return {next_cursor, entries, dropped, deliveries, trimmed}
