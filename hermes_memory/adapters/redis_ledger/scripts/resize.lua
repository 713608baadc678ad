if redis.call('HGET', KEYS[1], 'hosts') ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'hosts', ARGV[1])
  redis.call('HINCRBY', KEYS[1], 'hosts_revision', 1)
end
return redis.call('HMGET', KEYS[1], 'hosts', 'hosts_revision')
