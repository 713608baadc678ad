-- After a visit: when the user is due next.
local tag, seen, grace_s = ARGV[1], ARGV[2], ARGV[3]
if not still(KEYS[1], tag, seen, grace_s) then return 0 end
for offset = 0, 1 do
  local next_time = ARGV[4 + offset]
  if next_time == '' then
    redis.call('ZREM', KEYS[3 + #KINDS + offset], tag)
  else
    redis.call('ZADD', KEYS[3 + #KINDS + offset], next_time, tag)
  end
end
forget_mark(KEYS, tag)
return 1
