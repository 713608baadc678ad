local ends = redis.call('HGET', KEYS[1], ARGV[1])
if not ends or tonumber(ends) < tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
