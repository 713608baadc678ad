-- How many vectors of memories there are, and how many have a new one. Of a vector without a memory nothing can be
-- embedded; it goes when the change is finished.
local total, ready = 0, 0
for _, id in ipairs(redis.call('HKEYS', vectors)) do
  if redis.call('HEXISTS', memories, id) == 1 then
    total = total + 1
    ready = ready + redis.call('HEXISTS', coming, id)
  end
end
return {total, ready}
