-- Takes a name out of lists where it was found stale.
local tag, seen, name, grace_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not still(KEYS[1], tag, seen, grace_s) then return 0 end
for argument = 5, #ARGV do redis.call('ZREM', KEYS[3 + tonumber(ARGV[argument])], name) end
forget_mark(KEYS, tag)
return 1
