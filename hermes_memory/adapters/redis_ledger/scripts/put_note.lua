-- A note: "revision mark value". The mark is the writing's own: sent again, it finds itself and has not lost.
local notes, names = KEYS[1], KEYS[2]
local name, expected, mark, value = take(), take(), take(), take()
local revision, written_by = '0', ''
local known = redis.call('HGET', notes, name)
if known then revision, written_by = string.match(known, '^(%d+) (%S+) ') end
if written_by == mark then return 1 end
if expected ~= '' and expected ~= revision then return 0 end
redis.call('HSET', notes, name, whole(tonumber(revision) + 1) .. ' ' .. mark .. ' ' .. value)
redis.call('ZADD', names, 0, name)
return 1
