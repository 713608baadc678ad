-- Lists a user where users are looked for. The mark, with its time, tells a reader that somebody announced since it
-- looked; it stays as long as the user is due.
local function announce(keys, tag, name, kinds, at, received)
  local mark = whole(redis.call('INCR', keys[2])) .. ' ' .. redis.call('TIME')[1]
  redis.call('HSET', keys[1], tag, mark)
  for position = 1, #KINDS do
    if string.find(kinds, KINDS[position], 1, true) then redis.call('ZADD', keys[2 + position], 0, name) end
  end
  if at ~= '' then redis.call('ZADD', keys[3 + #KINDS], 'LT', at, tag) end
  if received ~= '' then redis.call('ZADD', keys[4 + #KINDS], 'LT', received, tag) end
end
