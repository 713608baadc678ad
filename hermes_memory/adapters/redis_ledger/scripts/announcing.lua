-- Lists a user where users are looked for. The mark tells a reader that somebody announced since it looked.
local function announce(keys, tag, name, kinds, at, received)
  redis.call('HSET', keys[1], tag, whole(redis.call('INCR', keys[2])))
  for position = 1, #KINDS do
    if string.find(kinds, KINDS[position], 1, true) then redis.call('ZADD', keys[2 + position], 0, name) end
  end
  if at ~= '' then redis.call('ZADD', keys[3 + #KINDS], 'LT', at, tag) end
  if received ~= '' then redis.call('ZADD', keys[4 + #KINDS], 'LT', received, tag) end
end
