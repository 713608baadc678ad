local found = {}
for _, id in ipairs(ARGV) do
  local body, beside, vector = redis.call('HGET', memories, id), redis.call('HGET', access, id), redis.call('HGET', vectors, id)
  if body and vector then found[#found + 1] = {body, beside or '0 0 0', vector} end
end
return found
