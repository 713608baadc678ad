local mismatch = other_model(KEYS[USER_KEYS + 1], take(), take(), take())
if mismatch then return mismatch end
local found = {'ok'}
for _, row in ipairs(rows(1)) do
  local id = row[1]
  local body, vector = redis.call('HGET', memories, id), redis.call('HGET', vectors, id)
  if body and vector then found[#found + 1] = {body, redis.call('HGET', access, id) or '0 0 0', vector} end
end
return found
