-- Ends a worker: gives its name free, and removes its consumer if nothing is pending for it.
--
-- Answers how many entries are still pending for it.
local error = superseded()
if error then return error end

redis.call('HDEL', record, 'token:' .. consumer, 'at:' .. consumer)
if token ~= '' then
  -- What comes late from us is to be known, but not for ever.
  local fields = redis.pcall('HGETALL', record)  -- a user may not be allowed to ask
  for i = 1, #(fields.err and {} or fields), 2 do
    local is_old = string.sub(fields[i], 1, 8) == 'left_at:' and
                   tonumber(fields[i + 1]) < now_ms() - 3600000
    if is_old then redis.call('HDEL', record, fields[i], 'left:' .. string.sub(fields[i], 9)) end
  end
  redis.call('HSET', record, 'left:' .. consumer, token, 'left_at:' .. consumer, now_ms())
end
for _, owner in ipairs(redis.call('XPENDING', stream, group)[4] or {}) do
  if owner[1] == consumer then return tonumber(owner[2]) end
end
redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer)
return 0
