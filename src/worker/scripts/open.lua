-- Makes the group, and the stream, where they are missing, and takes the consumer's name.
--
-- ARGV: where the group starts, min_idle in ms, how long a name is kept that is not renewed in ms,
-- a random word for this making of the group, and to make it again after it was missing: the making
-- that we knew, and the position to set it to; else '' and ''.
-- Answers {1 if the group was made or set back, the making that stands, its position, 1 if nobody
-- else works under the name, how many entries the stream has ever been given or ''}; or an error if
-- the others work with another min_idle.
local error = ARGV[9] ~= '' and superseded() or gone()  -- the first time, the newest has the name
if error then return error end

local start, min_idle, kept = ARGV[4], ARGV[5], tonumber(ARGV[6])
local new_making, known, position = ARGV[7], ARGV[8], ARGV[9]
local now = now_ms()

local theirs = redis.call('HMGET', record, 'min_idle', 'renewed')
if theirs[1] and theirs[1] ~= min_idle and tonumber(now) - tonumber(theirs[2]) < tonumber(theirs[1]) then
  return redis.error_reply('MINIDLE the workers of group ' .. group .. ' have a min_idle of ' ..
                           theirs[1] .. ' ms, this one of ' .. min_idle .. ' ms')
end

local making = redis.call('HGET', record, 'made')
local again = position ~= ''
if again and making and making ~= known then
  again = false  -- a peer was first: what it did stands
end
if again then
  start = position
elseif position ~= '' then
  start = redis.call('HGET', record, 'position') or position
end

local made = 0
local created = redis.pcall('XGROUP', 'CREATE', stream, group, start, 'MKSTREAM')
if not created.err then
  made = 1
elseif not string.find(created.err, 'BUSYGROUP', 1, true) then
  -- Who may not make groups has to only where there is none.
  if redis.pcall('XPENDING', stream, group).err then return created end
elseif again then
  redis.call('XGROUP', 'SETID', stream, group, start)  -- somebody made it who is none of us
  made = 1
end
if made == 1 or not making then
  making = new_making
  redis.call('HSET', record, 'made', making, 'position', start)
  if again then redis.call('HSET', record, 'mark', start) end
end

-- By its consumers a group is known for ours. Who may not make them does without.
redis.pcall('XGROUP', 'CREATECONSUMER', stream, group, consumer)

local free = 1
if token ~= '' then
  local holder = redis.call('HMGET', record, 'token:' .. consumer, 'at:' .. consumer)
  if holder[1] and holder[1] ~= token and tonumber(now) - tonumber(holder[2]) < kept then free = 0 end
  redis.call('HSET', record, 'token:' .. consumer, token)
end
redis.call('HSET', record, 'at:' .. consumer, now)
redis.call('HSET', record, 'min_idle', min_idle, 'renewed', now)
return {made, making, start, free, entries_added()}
