-- A binding goes only while it is still this user's.
local owner = redis.call('GET', KEYS[1])
if owner and string.sub(owner, 1, #ARGV[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
