-- Whether what was found stale may go: nobody announced since, nor so lately that the commit may be on its way.
local function still(marks, tag, seen, grace_s)
  local mark = redis.call('HGET', marks, tag)
  if (mark or '') ~= seen then return false end
  if not mark or tonumber(grace_s) == 0 then return true end
  return tonumber(redis.call('TIME')[1]) - tonumber(string.match(mark, ' (%d+)$')) >= tonumber(grace_s)
end
local function forget_mark(keys, tag)
  for position = 3 + #KINDS, 4 + #KINDS do
    if redis.call('ZSCORE', keys[position], tag) then return end
  end
  redis.call('HDEL', keys[1], tag)
end
