-- Up to a limit of each kind of what has outlived its time, and when the user is due next.
local turns_before, operations_before, limit = ARGV[1], ARGV[2], ARGV[3]
local swept = redis.call('ZRANGEBYSCORE', done, '-inf', '(' .. turns_before, 'LIMIT', '0', limit)
local touched = {}
for _, place in ipairs(swept) do
  redis.call('HDEL', turns, place)
  redis.call('ZREM', done, place)
  touched[string.match(place, '^%d+:(.*)$')] = true
end
if #swept > 0 then
  -- With the last raw turn of a conversation goes what was left of its summary: nobody ended it in time.
  for _, place in ipairs(redis.call('HKEYS', turns)) do touched[string.match(place, '^%d+:(.*)$')] = nil end
  for session in pairs(touched) do redis.call('HDEL', summaries, session) end
end
local old = redis.call('ZRANGEBYSCORE', op_times, '-inf', '(' .. operations_before, 'LIMIT', '0', limit)
for _, operation in ipairs(old) do
  redis.call('HDEL', ops, operation)
  redis.call('ZREM', op_times, operation)
end
local function first(key) return redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or '' end
-- What waits comes of age too, as soon as it is read.
local oldest, waiting = first(done), first(pending)
if oldest == '' or (waiting ~= '' and tonumber(waiting) < tonumber(oldest)) then oldest = waiting end
return {#swept, #old, first(op_times), oldest, redis.call('SCARD', freeing)}
