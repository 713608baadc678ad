local facts = KEYS[USER_KEYS + 1]
local name, dimension, number = take(), take(), take()
if facts then
  local otherwise = standing_of(facts, name, dimension, number)
  if otherwise then return otherwise end
end
for _, row in ipairs(rows(2)) do
  if redis.call('HEXISTS', vectors, row[1]) == 1 then redis.call('HSET', coming, row[1], row[2]) end
end
return {'ok'}
