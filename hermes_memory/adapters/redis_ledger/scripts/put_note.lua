-- A note: "revision mark value". The mark is the writing's own and is kept for a while: sent again, it has not lost,
-- and does not write over what came after it.
local notes, names, written = KEYS[1], KEYS[2], KEYS[3]
local name, expected, mark, value, mark_ms = take(), take(), take(), take(), take()
if redis.call('EXISTS', written) == 1 then return 1 end
local known = redis.call('HGET', notes, name)
local revision = known and string.match(known, '^%d+') or '0'
if expected ~= '' and expected ~= revision then return 0 end
redis.call('HSET', notes, name, whole(tonumber(revision) + 1) .. ' ' .. mark .. ' ' .. value)
redis.call('ZADD', names, 0, name)
redis.call('SET', written, '1', 'PX', mark_ms)
return 1
