-- Takes a name out of one list, unless somebody announced since it was found stale.
local tag, seen, name, kind = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if redis.call('HGET', KEYS[1], tag) ~= seen then return 0 end
redis.call('ZREM', KEYS[2 + kind], name)
for position = 1, #KINDS do
  if redis.call('ZSCORE', KEYS[2 + position], name) then return 1 end
end
for position = 3 + #KINDS, 4 + #KINDS do
  if redis.call('ZSCORE', KEYS[position], tag) then return 1 end
end
redis.call('HDEL', KEYS[1], tag)
return 1
