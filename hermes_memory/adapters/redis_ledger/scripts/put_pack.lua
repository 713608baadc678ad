local facts, packs, loaded, vectors, coming = unpack(KEYS)
local mismatch = other_model(facts, take(), take(), take())
if mismatch then return mismatch end
local field = take()
redis.call('HSET', packs, field, take())
redis.call('HSET', loaded, field, take())
redis.call('HSET', vectors, field, take())
redis.call('HDEL', coming, field) -- a model that is on its way in has to read it again
redis.call('HINCRBY', facts, 'packs', 1)
return {'ok'}
