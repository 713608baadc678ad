local facts, leases, until_us = KEYS[1], KEYS[2], KEYS[3]
local epoch = whole(redis.call('HINCRBY', facts, 'epoch', 1))
local former = redis.call('HGET', leases, ARGV[1])
if former then redis.call('HDEL', until_us, former) end
redis.call('HSET', leases, ARGV[1], epoch)
redis.call('HSET', until_us, epoch, ARGV[2])
return epoch
