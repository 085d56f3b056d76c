-- Puts an entry aside: writes its dead letter and acknowledges it, if it is still ours with the
-- count that is expected, or no longer in the stream (then there is no owner to ask).
--
-- ARGV: id, expected count, attempts, time of the last failure, and of the first ('': unknown),
-- reason, limit of the dead letters, whose it is expected to be where it is no longer in the stream
-- ('': ours), and whose payload the letter is to have: 'given' (it follows: name, value, ...),
-- 'stream' (as it is in the stream), or 'written' (the letter is there: acknowledge only).
-- Answers 1, 0 (not ours), 2 (ours, and counted anew), or the error for which the letter could not
-- be written.
local error = superseded()
if error then return error end

local id = ARGV[4]
local pending = pending_entry(id)
local entry = entry_of(id)
if entry then
  if not pending then return 0 end  -- somebody has acknowledged it
  if pending[2] ~= consumer then return 0 end
  if is_counted_anew(pending, ARGV[5]) then return 2 end
  if pending[4] ~= tonumber(ARGV[5]) then return 0 end
elseif pending and pending[2] ~= (ARGV[11] == '' and consumer or ARGV[11]) then
  return 0
end

if ARGV[12] ~= 'written' then
  local fields = {}
  if ARGV[12] == 'given' then
    for i = 13, #ARGV do fields[#fields + 1] = ARGV[i] end
  elseif entry then
    fields = entry[2]
  end
  if #fields > 7800 then  -- more than Lua can pass on, of an entry that never arrived
    fields = {}
    ARGV[9] = ARGV[9] .. '; it has too many fields to be copied: they are in the stream alone'
  end
  local written = write_dead_letter({id = id, consumer = consumer, attempts = ARGV[6],
                                     failed = ARGV[7], first_failed = ARGV[8],
                                     reason = ARGV[9], cap = ARGV[10]}, fields)
  if written ~= true then return written end
end
redis.call('XACK', stream, group, id)
return 1
