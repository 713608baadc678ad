return {redis.call('HGETALL', turns), redis.call('ZRANGE', pending, 0, -1)}
