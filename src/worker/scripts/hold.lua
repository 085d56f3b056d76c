-- Renews, starts, parks and releases: sets idle time and delivery count of entries that this
-- consumer holds. Each is changed only if the consumer still owns it with the count that it
-- expects, so a late copy from a closed connection, or an entry that a peer has taken, changes
-- nothing. Nor is an entry changed that is no longer in the stream: XCLAIM would drop it from the
-- pending list without a word.
--
-- ARGV: min_idle in ms to renew the worker's place in the record, or ''; then id, expected count,
-- new count, idle time to set in ms, ...
-- Answers {{1 (changed), 0 (not ours), 2 (ours, and no longer in the stream), 3 (ours, and counted
-- anew) or 4 (neither pending nor in the stream) for each id}}, and where the record is renewed {how
-- many are pending for this consumer, the group's low-water mark or '', how many entries the stream
-- has ever been given or ''}.
local error = superseded()
if error then return error end

local answers = {}
for i = 5, #ARGV, 4 do
  local id = ARGV[i]
  local pending = pending_entry(id)
  local answer = 0
  if (not pending or pending[2] == consumer) and not entry_of(id) then
    answer = pending and 2 or 4
  elseif pending and pending[2] == consumer then
    if pending[4] == tonumber(ARGV[i + 1]) then
      redis.call('XCLAIM', stream, group, consumer, 0, id,
                 'IDLE', ARGV[i + 3], 'RETRYCOUNT', ARGV[i + 2], 'JUSTID')
      answer = 1
    elseif is_counted_anew(pending, ARGV[i + 1]) then
      answer = 3
    end
  end
  answers[#answers + 1] = answer
end
if ARGV[4] == '' then return {answers} end

local now = now_ms()
redis.call('HSET', record, 'min_idle', ARGV[4], 'renewed', now)
redis.call('HSET', record, 'at:' .. consumer, now)
if token ~= '' then redis.call('HSET', record, 'token:' .. consumer, token) end

-- False where somebody made the group who is none of us: we are none of its consumers. Its position
-- says nothing of what is done. (A user who may not make consumers is not asked.)
local function is_our_group()
  if redis.pcall('XGROUP', 'CREATECONSUMER', stream, group, consumer) ~= 1 then return true end
  redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer)
  return false
end

-- Up to here the whole group is done: just before its lowest pending entry, or where it has read to.
local summary = redis.call('XPENDING', stream, group)
local mark, ours = '', 0
for _, owner in ipairs(summary[4] or {}) do
  if owner[1] == consumer then ours = tonumber(owner[2]) end
end
if not is_our_group() then
  mark = ''
elseif summary[1] > 0 then
  mark = '(' .. summary[2]
else
  local groups = redis.pcall('XINFO', 'GROUPS', stream)  -- a user may not be allowed to ask
  for _, fields in ipairs(groups.err and {} or groups) do
    local info = {}
    for i = 1, #fields, 2 do info[fields[i]] = fields[i + 1] end
    if info.name == group then mark = info['last-delivered-id'] end
  end
end
if mark ~= '' then redis.call('HSET', record, 'mark', mark) end
return {answers, ours, mark, entries_added()}
