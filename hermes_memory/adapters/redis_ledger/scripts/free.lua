-- A binding goes only while it is still this user's, and still to go.
if KEYS[2] and redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 0 then return 0 end
local owner = redis.call('GET', KEYS[1])
if owner and string.sub(owner, 1, #ARGV[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
