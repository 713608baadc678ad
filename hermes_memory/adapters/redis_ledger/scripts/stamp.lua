-- What the store says of itself, unless it is there: two that open it together agree on one salt and one model.
local facts = KEYS[1]
local identity = tonumber(ARGV[1])
if redis.call('HEXISTS', facts, 'embedder') == 0 then
  for position = 2, identity, 2 do redis.call('HSET', facts, ARGV[position], ARGV[position + 1]) end
end
for position = identity + 2, #ARGV, 2 do redis.call('HSETNX', facts, ARGV[position], ARGV[position + 1]) end
return redis.call('HGETALL', facts)
