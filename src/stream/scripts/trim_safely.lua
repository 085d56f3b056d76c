-- Removes entries that every group has read and acknowledged, oldest first.
--
-- KEYS[1]: the stream. ARGV: about how many entries to remove at most.
-- Returns {entries removed, 1 if there may be more to remove}.

local key, limit = KEYS[1], tonumber(ARGV[1])

-- Ids are numbers of 64 bits, which Lua's own cannot hold, so they are compared and counted up as
-- the decimal digits that the server writes: no leading zeros.
local function less(a, b)
  if #a ~= #b then
    return #a < #b
  end
  return a < b
end

local function parts(id)
  return string.match(id, '^(%d+)-(%d+)$')
end

local function id_less(a, b)
  local a_ms, a_seq = parts(a)
  local b_ms, b_seq = parts(b)
  if a_ms ~= b_ms then
    return less(a_ms, b_ms)
  end
  return less(a_seq, b_seq)
end

local function plus_one(digits)
  local head, nines = string.match(digits, '^(%d-)(9*)$')
  local zeros = string.rep('0', #nines)
  if head == '' then
    return '1' .. zeros
  end
  return string.sub(head, 1, -2) .. (tonumber(string.sub(head, -1)) + 1) .. zeros
end

local largest = '18446744073709551615'
local function following(id)
  local ms, seq = parts(id)
  if seq ~= largest then
    return ms .. '-' .. plus_one(seq)
  end
  if ms ~= largest then
    return plus_one(ms) .. '-0'
  end
  return id
end

if redis.call('XLEN', key) == 0 then
  return {0, 0}
end

-- The first entry that some group has still to read or to acknowledge.
local needed
for _, fields in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local group = {}
  for i = 1, #fields, 2 do
    group[fields[i]] = fields[i + 1]
  end
  local ids = {following(group['last-delivered-id'])}
  -- A pending entry can lie on either side of the group's position.
  local lowest = redis.call('XPENDING', key, group.name, '-', '+', 1)[1]
  if lowest then
    table.insert(ids, lowest[1])
  end
  for _, id in ipairs(ids) do
    if not needed or id_less(id, needed) then
      needed = id
    end
  end
end
if not needed then
  return {0, 0}
end

-- Whole nodes first, as many as the limit allows, so that one call cannot hold the server for long.
local removed = redis.call('XTRIM', key, 'MINID', '~', needed, 'LIMIT', limit)
if removed > 0 and removed * 2 > limit then
  return {removed, 1}
end
return {removed + redis.call('XTRIM', key, 'MINID', '=', needed), 0}
