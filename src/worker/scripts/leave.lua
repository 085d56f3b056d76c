-- Ends a worker: gives its name free, and removes its consumer if nothing is pending for it.
--
-- Answers how many entries are still pending for it.
local error = superseded()
if error then return error end

redis.call('HDEL', record, 'token:' .. consumer, 'at:' .. consumer)
if token ~= '' then redis.call('HSET', record, 'left:' .. consumer, token) end
for _, owner in ipairs(redis.call('XPENDING', stream, group)[4] or {}) do
  if owner[1] == consumer then return tonumber(owner[2]) end
end
redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer)
return 0
