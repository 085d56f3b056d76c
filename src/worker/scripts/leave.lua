-- Ends a worker: gives its name free, and removes its consumer if nothing is pending for it.
--
-- Answers how many entries are still pending for it.
local error = superseded()
if error then return error end

redis.call('HDEL', record, 'token:' .. consumer, 'at:' .. consumer)
if token ~= '' then  -- what comes late from us is to be known
  redis.call('HSET', record, 'left:' .. consumer, token, 'left_at:' .. consumer, now_ms())
end
-- Who has left, or died, is not remembered for ever.
local kept = math.max(3600000, 2 * tonumber(redis.call('HGET', record, 'min_idle') or 0))
local aged = {['at:'] = 'token:', ['left_at:'] = 'left:'}
local fields = redis.pcall('HGETALL', record)  -- a user may not be allowed to ask
for i = 1, #(fields.err and {} or fields), 2 do
  local kind = string.match(fields[i], '^[a-z_]+:') or ''
  if aged[kind] and tonumber(fields[i + 1]) < now_ms() - kept then
    redis.call('HDEL', record, fields[i], aged[kind] .. string.sub(fields[i], #kind + 1))
  end
end
for _, owner in ipairs(redis.call('XPENDING', stream, group)[4] or {}) do
  if owner[1] == consumer then return tonumber(owner[2]) end
end
redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer)
return 0
