for position = 2, #ARGV do
  local entry = redis.call('ZRANGEBYSCORE', outbox, ARGV[position], ARGV[position])[1]
  if entry then
    redis.call('ZREM', outbox, entry)
    redis.call('ZADD', buried, ARGV[position], entry .. '\n' .. ARGV[1])
  end
end
return 1
