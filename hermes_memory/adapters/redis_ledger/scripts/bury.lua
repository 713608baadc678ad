local reason, seqs = take(), rows(1)
if KEYS[USER_KEYS + 1] then
  announce({unpack(KEYS, USER_KEYS + 2, USER_KEYS + 1 + SHARD_KEYS)}, take(), take(), take(), take(), take())
end
for _, row in ipairs(seqs) do
  local seq = row[1]
  local entry = redis.call('ZRANGEBYSCORE', outbox, seq, seq)[1]
  if entry then
    redis.call('ZREM', outbox, entry)
    redis.call('ZADD', buried, seq, entry .. '\n' .. reason)
  end
end
return 1
