local waiting = {}
for _, id in ipairs(redis.call('HKEYS', vectors)) do
  if id > ARGV[1] and redis.call('HEXISTS', coming, id) == 0 and redis.call('HEXISTS', memories, id) == 1 then
    waiting[#waiting + 1] = id
  end
end
table.sort(waiting)
local found = {}
for position = 1, math.min(#waiting, tonumber(ARGV[2])) do
  local id = waiting[position]
  found[position] = {redis.call('HGET', memories, id), redis.call('HGET', access, id) or '0 0 0'}
end
return found
