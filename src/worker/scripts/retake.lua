-- Takes pending entries of this consumer in hand again, each by its id and the delivery count that
-- it is expected to have; counts are kept. One that is a peer's, or was acknowledged, is left out.
-- One that is no longer in the stream stays pending until its dead letter is written; where there
-- are none, it is acknowledged.
--
-- ARGV: what there is for dead letters ('-': nothing), then id, expected count, ...
-- Answers as take.lua does; the cursor is 0-0.
local error = superseded()
if error then return error end

local entries, deleted, deliveries, trimmed = {}, {}, {}, {}
for i = 5, #ARGV, 2 do
  local id = ARGV[i]
  local pending = pending_entry(id)
  if pending and pending[2] == consumer and pending[4] == tonumber(ARGV[i + 1]) then
    local entry = entry_of(id)
    if entry then
      redis.call('XCLAIM', stream, group, consumer, 0, id,
                 'IDLE', 0, 'RETRYCOUNT', pending[4], 'JUSTID')
      entries[#entries + 1] = entry
      deliveries[#deliveries + 1] = pending[4]
    elseif ARGV[4] == '-' then
      redis.call('XACK', stream, group, id)
      deleted[#deleted + 1] = id
    else
      trimmed[#trimmed + 1] = {id, consumer, pending[4]}
    end
  end
end
return {'0-0', entries, deleted, deliveries, trimmed}
