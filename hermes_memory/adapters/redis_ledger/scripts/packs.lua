local facts, packs, loaded, vectors = unpack(KEYS)
local mismatch = other_model(facts, take(), take(), take())
if mismatch then return mismatch end
return {'ok', redis.call('HGETALL', packs), redis.call('HGETALL', loaded), redis.call('HGETALL', vectors)}
