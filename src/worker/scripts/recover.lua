-- Lists a consumer's own pending entries with their payloads, keeping their delivery counts and idle
-- times. An entry that is no longer in the stream is acknowledged.
--
-- KEYS: stream. ARGV: group, consumer, where to start ('-' or '(id'), count, ids to leave out ...
-- Answers as take.lua does; its cursor is the last id looked at, or 0-0 if that was all.
local stream, group, consumer = KEYS[1], ARGV[1], ARGV[2]
local pending = redis.call('XPENDING', stream, group, ARGV[3], '+', ARGV[4], consumer)
local entries, deleted, deliveries = {}, {}, {}
local left_out = {}
for i = 5, #ARGV do left_out[ARGV[i]] = true end
for _, item in ipairs(pending) do
  local id = item[1]
  if not left_out[id] then
    local entry = redis.call('XRANGE', stream, id, id)[1]
    if entry then
      entries[#entries + 1] = entry
      deliveries[#deliveries + 1] = item[4]
    else
      redis.call('XACK', stream, group, id)
      deleted[#deleted + 1] = id
    end
  end
end
local cursor = '0-0'
if #pending == tonumber(ARGV[4]) then cursor = pending[#pending][1] end
return {cursor, entries, deleted, deliveries}
