-- Stands in front of each script of this folder.
--
-- KEYS: the stream, the group's record, and for those that write dead letters, their stream.
-- ARGV: group, consumer, token ('' if nobody else can have the consumer's name), and what each
-- script says.
local stream, record, dead_letters = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, token = ARGV[1], ARGV[2], ARGV[3]

-- A server that is out of memory lets a script write what needs some only after a first write that
-- needs none. This one changes nothing.
redis.call('XACK', stream, group, '0-0')

local function now_ms()
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end

-- What comes late from a worker that has left its name gets this error; else nil.
local function gone()
  if token == '' or redis.call('HGET', record, 'left:' .. consumer) ~= token then return nil end
  return redis.error_reply('SUPERSEDED this worker has left the consumer name ' .. consumer)
end

-- The error that ends a worker whose name a newer one has taken, or nil.
local function superseded()
  if token == '' then return nil end
  local holder = redis.call('HGET', record, 'token:' .. consumer)
  if not holder or holder == token then return gone() end
  return redis.error_reply('SUPERSEDED a newer worker has taken the consumer name ' .. consumer)
end

-- The count of a pending entry. One that Lua and RETRYCOUNT cannot say (Redis 8.8 has 2^63-1 for
-- what was given up) is cut.
local function delivery_count(pending)
  return math.min(pending[4], 1000000000)
end

-- What is pending under this id {id, owner, idle, count}, or nil.
local function pending_entry(id)
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if pending then pending[4] = delivery_count(pending) end
  return pending
end

-- True where a read has brought an entry again (after XGROUP SETID), which begins to count anew. Its
-- reply is still on the way: whoever takes it puts the count right.
local function is_counted_anew(pending, expected)
  return pending[4] == 1 and tonumber(expected) > 1
end

local function entry_of(id)
  return redis.call('XRANGE', stream, id, id)[1]
end

-- How many entries the stream has ever been given, or '' where the user may not ask.
local function entries_added()
  local info = redis.pcall('XINFO', 'STREAM', stream)
  if info.err then return '' end
  for i = 1, #info, 2 do
    if info[i] == 'entries-added' then return info[i + 1] end
  end
  return ''
end

-- Writes a dead letter with `fields` after its own ones. True, or why it could not be written.
local function write_dead_letter(letter, fields)
  if letter.cap ~= '' and redis.call('XLEN', dead_letters) >= tonumber(letter.cap) then
    return 'FULL the stream of dead letters has reached its limit'
  end
  local words = {'dlq_stream', stream, 'dlq_id', letter.id, 'dlq_group', group,
                 'dlq_consumer', letter.consumer, 'dlq_attempts', letter.attempts,
                 'dlq_failed_ms', letter.failed, 'dlq_first_failed_ms', letter.first_failed,
                 'dlq_reason', letter.reason}
  for _, word in ipairs(fields) do words[#words + 1] = word end
  local written = redis.pcall('XADD', dead_letters, '*', unpack(words))
  return type(written) == 'string' or written.err or 'ERR the dead letter was not written'
end
