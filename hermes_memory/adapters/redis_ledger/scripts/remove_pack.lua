local facts, packs, loaded, vectors, coming = unpack(KEYS)
if redis.call('HDEL', packs, ARGV[1]) == 0 then return 0 end
for _, key in ipairs({loaded, vectors, coming}) do redis.call('HDEL', key, ARGV[1]) end
redis.call('HINCRBY', facts, 'packs', 1)
return 1
