-- Removes a consumer that owns no pending entries: XGROUP DELCONSUMER would forget them.
--
-- KEYS[1]: the stream. ARGV: group, consumer.
-- Returns {1 if it was removed, how many entries are pending for it}.

local key, group, consumer = KEYS[1], ARGV[1], ARGV[2]

for _, fields in ipairs(redis.call('XINFO', 'CONSUMERS', key, group)) do
  local info = {}
  for i = 1, #fields, 2 do
    info[fields[i]] = fields[i + 1]
  end
  if info.name == consumer then
    if info.pending > 0 then
      return {0, info.pending}
    end
    redis.call('XGROUP', 'DELCONSUMER', key, group, consumer)
    return {1, 0}
  end
end
return {0, 0}
