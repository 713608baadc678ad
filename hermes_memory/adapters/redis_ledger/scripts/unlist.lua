-- Takes a name out of lists, unless somebody announced since it was found stale there.
local tag, seen, name = ARGV[1], ARGV[2], ARGV[3]
if redis.call('HGET', KEYS[1], tag) ~= seen then return 0 end
for argument = 4, #ARGV do redis.call('ZREM', KEYS[3 + tonumber(ARGV[argument])], name) end
for position = 1, #KINDS do
  if redis.call('ZSCORE', KEYS[2 + position], name) then return 1 end
end
for position = 3 + #KINDS, 4 + #KINDS do
  if redis.call('ZSCORE', KEYS[position], tag) then return 1 end
end
redis.call('HDEL', KEYS[1], tag)
return 1
