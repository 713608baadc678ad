local facts, packs, _, _, coming = unpack(KEYS)
local otherwise = standing_of(facts, take(), take(), take())
if otherwise then return otherwise end
local field, revision, bytes, blob = take(), take(), take(), take()
if redis.call('HGET', facts, 'packs') ~= revision then return {'ok', 0} end
if redis.call('HEXISTS', packs, field) == 0 then return {'ok', 0} end
local before = redis.call('HGET', coming, field) or ''
if whole(#before) ~= bytes then return {'ok', 0} end
redis.call('HSET', coming, field, before .. blob)
return {'ok', 1}
