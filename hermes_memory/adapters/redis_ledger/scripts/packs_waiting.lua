-- Every pack with how many bytes of old and of new vectors it has, and the facts.
local facts, packs, _, vectors, coming = unpack(KEYS)
local found = {}
for _, field in ipairs(redis.call('HKEYS', packs)) do
  found[#found + 1] = {field, redis.call('HSTRLEN', vectors, field), redis.call('HSTRLEN', coming, field)}
end
return {redis.call('HGETALL', facts), found}
