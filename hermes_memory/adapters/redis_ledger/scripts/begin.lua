-- Notes the target, unless the data is its already; an unfinished change to another one ends here.
local facts = KEYS[1]
local name, dimension = ARGV[1], ARGV[2]
local stored = redis.call('HMGET', facts, 'embedder', 'dimension', 'model', 'next_embedder', 'next_dimension')
if stored[4] and not (stored[4] == name and stored[5] == dimension) then
  redis.call('HDEL', facts, 'next_embedder', 'next_dimension')
  redis.call('HSET', facts, 'clearing', whole(tonumber(stored[3]) + 1))
end
if redis.call('HEXISTS', facts, 'clearing') == 0 and not (stored[1] == name and stored[2] == dimension) then
  redis.call('HSET', facts, 'next_embedder', name, 'next_dimension', dimension)
end
return redis.call('HGETALL', facts)
