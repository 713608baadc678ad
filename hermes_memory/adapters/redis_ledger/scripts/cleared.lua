if redis.call('HGET', KEYS[1], 'clearing') == ARGV[1] then redis.call('HDEL', KEYS[1], 'clearing') end
return 1
