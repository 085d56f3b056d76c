-- Gives one page of a consumer's pending entries to another consumer. Delivery counts and idle times
-- are kept: nobody has looked at the entries in between.
--
-- KEYS[1]: the stream. ARGV: group, from, to, where the page starts, where the last page ends ('': at
-- the highest entry that is pending now), entries a page.
-- Returns {where the next page starts ('': there is none), where the last page ends, entries moved,
-- {ids that are no longer in the stream, and were dropped}}.

local key, group, from, to = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local first, last, size = ARGV[4], ARGV[5], tonumber(ARGV[6])

if last == '' then
  -- Fixed by the first page, or a consumer that still reads could keep the pages coming for ever.
  last = redis.call('XPENDING', key, group)[3]
  if not last then
    return {'', '', 0, {}}
  end
end

local page = redis.call('XPENDING', key, group, first, last, size, from)
local moved, deleted = 0, {}
for _, entry in ipairs(page) do
  local id, idle = entry[1], string.format('%.0f', entry[3])
  local claimed = redis.call('XCLAIM', key, group, to, 0, id, 'IDLE', idle, 'JUSTID')
  if #claimed == 1 then
    moved = moved + 1
  else
    table.insert(deleted, id)  -- XCLAIM has dropped it (Redis 7.0 and newer)
  end
end

local following = ''
if #page == size then
  following = '(' .. page[size][1]
end
return {following, last, moved, deleted}
