-- After a visit: when the user is due next, unless somebody announced meanwhile.
local tag, seen = ARGV[1], ARGV[2]
if redis.call('HGET', KEYS[1], tag) ~= seen then return 0 end
for offset = 0, 1 do
  local next_time = ARGV[3 + offset]
  if next_time == '' then
    redis.call('ZREM', KEYS[3 + #KINDS + offset], tag)
  else
    redis.call('ZADD', KEYS[3 + #KINDS + offset], next_time, tag)
  end
end
return 1
