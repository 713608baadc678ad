-- Everything of the user goes; version, generation, owner, counters and answerless operations stay as the tombstone.
local facts = KEYS[USER_KEYS + 1]
local expected, epoch, operation, at, feeds, operations_ms = take(), take(), take(), take(), take(), take()
local tag, name = take(), take()
local known = redis.call('HGET', ops, operation)
if known then return {'known', known} end
local now = redis.call('HMGET', head, 'version', 'owner', 'settings')
local version = now[1] or '0'
if now[2] and now[2] ~= epoch then return {'fenced', now[2]} end
if version ~= expected then return {'conflict', version} end
local unknown = not now[2]
if unknown and redis.call('EXISTS', outside) == 0 then return {'unknown'} end

-- What names the user elsewhere is taken away after this; should that be interrupted, a replay or a sweep goes on.
redis.call('SUNIONSTORE', freeing, freeing, outside)
redis.call('SADD', freeing, 'n:' .. name)
redis.call('UNLINK', outside)
if facts then
  local keys = {unpack(KEYS, USER_KEYS + 2, USER_KEYS + 1 + SHARD_KEYS)}
  announce(keys, tag, name, feeds == '1' and not unknown and 'o' or '', '0', '')
end
if unknown then return {'unknown'} end

local slots = 0
local readable, settings = pcall(cjson.decode, now[3] or '{}')
if readable and type(settings) == 'table' and type(settings.profile) == 'table' then
  for _ in pairs(settings.profile) do slots = slots + 1 end
end
local counts = string.format(
  '"memories":%d,"vectors":%d,"turns":%d,"audit":%d,"jobs":%d,"profile_slots":%d',
  redis.call('HLEN', memories), redis.call('HLEN', vectors), redis.call('HLEN', turns),
  redis.call('XLEN', audit), redis.call('HLEN', jobs), slots)
local gone = {memories, access, vectors, coming, sessions, summaries, turns, pending, done, messages, jobs,
  open_jobs, tally, audit, alerts, outbox, buried}
local remaining = 0
for _, key in ipairs(gone) do redis.call('UNLINK', key) end
for _, key in ipairs(gone) do remaining = remaining + redis.call('EXISTS', key) end
redis.call('HDEL', head, 'live', 'settings', 'memory_number', 'job_number')

version = whole(tonumber(version) + 1)
redis.call('HSET', head, 'version', version, 'owner', epoch)
redis.call('HINCRBY', head, 'generation', 1)
local answers = redis.call('HGETALL', ops)
for position = 1, #answers, 2 do
  local of, kind = string.match(answers[position + 1], '^(%d+) (%a)')
  if kind == 'r' then redis.call('HSET', ops, answers[position], of .. ' x ') end
end
if feeds == '1' then
  local seq = whole(redis.call('HINCRBY', head, 'outbox_seq', 1))
  redis.call('ZADD', outbox, seq, seq .. ' ["drop",""]')
end
local receipt = string.format('{%s,"remaining":%d,"version":%s}', counts, remaining, version)
redis.call('HSET', ops, operation, version .. ' e ' .. receipt)
redis.call('ZADD', op_times, at, operation)
redis.call('PEXPIRE', ops, operations_ms)
redis.call('PEXPIRE', op_times, operations_ms)
return {'ok', receipt}
