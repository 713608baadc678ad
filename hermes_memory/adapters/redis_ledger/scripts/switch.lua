-- Gives the data to the new model, if nothing was written by the old one since it was seen to be complete.
local facts, packs, _, vectors, coming = unpack(KEYS)
local otherwise = standing_of(facts, take(), take(), take())
if otherwise then return otherwise end
local writes, revision = take(), take()
if (redis.call('HGET', facts, 'old_writes') or '0') ~= writes then return {'changed'} end
if redis.call('HGET', facts, 'packs') ~= revision then return {'changed'} end
local name, dimension = unpack(redis.call('HMGET', facts, 'next_embedder', 'next_dimension'))
local old = redis.call('HGET', facts, 'model')
redis.call('HDEL', facts, 'next_embedder', 'next_dimension')
redis.call('HSET', facts, 'embedder', name, 'dimension', dimension, 'clearing', old)
redis.call('HINCRBY', facts, 'model', 1)
redis.call('HINCRBY', facts, 'packs', 1)
return {'ok'}
