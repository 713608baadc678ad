for _, seq in ipairs(ARGV) do
  redis.call('ZREMRANGEBYSCORE', outbox, seq, seq)
  redis.call('ZREMRANGEBYSCORE', buried, seq, seq)
end
return {redis.call('ZCARD', outbox), redis.call('ZCARD', buried)}
