local epoch, counts, counted = take(), rows(3), rows(2)
local now = redis.call('HMGET', head, 'owner', 'live')
if now[1] ~= epoch or not now[2] then return 0 end
for _, row in ipairs(counts) do
  local beside = redis.call('HGET', access, row[1])
  if beside then
    local number, count, last = string.match(beside, '(%d+) (%d+) (%d+)')
    local later = math.max(tonumber(last), tonumber(row[3]))
    local more = tonumber(count) + tonumber(row[2])
    redis.call('HSET', access, row[1], number .. ' ' .. whole(more) .. ' ' .. whole(later))
  end
end
for _, row in ipairs(counted) do redis.call('HINCRBY', tally, row[1], row[2]) end
return 1
