-- One commit: the checks in their order, then every part of it (ARCHITECTURE §2). Redis undoes nothing, so that
-- whatever can be refused is refused before the first write.
local facts = KEYS[USER_KEYS + 1]
local expected, epoch, operation, at, result, settings = take(), take(), take(), take(), take(), take()
local mismatch, coming_in = other_model(facts, take(), take(), take())
if mismatch then return mismatch end
local operations_ms, turns_ms, tally_from = take(), take(), take()
local written, embedded, deleted, granted = rows(4), rows(2), rows(2), rows(2)
local told, said, rewritten, extracted = rows(3), rows(4), rows(4), rows(1)
local received, worked, noted, seen_to, raised, fed = rows(2), rows(3), rows(1), rows(1), rows(2), rows(1)
local references = rows(1)

local known = redis.call('HGET', ops, operation)
if known then return {'known', known} end
local now = redis.call('HMGET', head, 'version', 'owner', 'live')
local version = now[1] or '0'
if now[2] and now[2] ~= epoch then return {'fenced', now[2]} end
if version ~= expected then return {'conflict', version} end
local grants = {}
for _, row in ipairs(granted) do grants[row[1]] = row[2] end
local held = refused(memories, written, deleted, grants)
if held then return {'frozen', held} end

if facts then
  announce({unpack(KEYS, USER_KEYS + 2, USER_KEYS + 1 + SHARD_KEYS)}, take(), take(), take(), take(), take())
  local name, tag = take(), take()
  for position = USER_KEYS + 2 + SHARD_KEYS, #KEYS do redis.call('HSET', KEYS[position], tag, name) end
  if coming_in and #embedded + #deleted > 0 then redis.call('HINCRBY', facts, 'old_writes', 1) end
end

version = whole(tonumber(version) + 1)
redis.call('HSET', head, 'version', version, 'owner', epoch, 'live', '1')
redis.call('HSETNX', head, 'generation', '0')
if settings ~= '' then redis.call('HSET', head, 'settings', settings) end

-- Beside a body: its number in order of arrival, how often it was recalled and when last.
for _, row in ipairs(written) do
  local id, count, last = row[1], tonumber(row[3]), tonumber(row[4])
  local beside = redis.call('HGET', access, id)
  local number
  if beside then
    local old_count, old_last
    number, old_count, old_last = string.match(beside, '(%d+) (%d+) (%d+)')
    count, last = math.max(count, tonumber(old_count)), math.max(last, tonumber(old_last))
  else
    number = whole(redis.call('HINCRBY', head, 'memory_number', 1))
  end
  redis.call('HSET', memories, id, row[2])
  redis.call('HSET', access, id, number .. ' ' .. whole(count) .. ' ' .. whole(last))
end
for _, row in ipairs(embedded) do
  redis.call('HSET', vectors, row[1], row[2])
  redis.call('HDEL', coming, row[1]) -- a model that is on its way in has to read it again
end
if #deleted > 0 then
  local answers = redis.call('HGETALL', ops)
  for _, row in ipairs(deleted) do
    for _, key in ipairs({memories, access, vectors, coming}) do redis.call('HDEL', key, row[1]) end
    -- An earlier answer may hold its words; a replay of that operation is decided anew.
    for position = 2, #answers, 2 do
      if string.find(answers[position], row[2], 1, true) then
        answers[position] = string.match(answers[position], '^%d+') .. ' r null'
        redis.call('HSET', ops, answers[position - 1], answers[position])
      end
    end
  end
end

for _, row in ipairs(told) do
  redis.call('HSET', sessions, row[1], row[2])
  if row[3] == '' then redis.call('HDEL', summaries, row[1]) else redis.call('HSET', summaries, row[1], row[3]) end
end
local function put_turn(row)
  redis.call('HSET', turns, row[1], row[2])
  redis.call('ZREM', row[4] == '1' and done or pending, row[1])
  redis.call('ZADD', row[4] == '1' and pending or done, row[3], row[1])
end
for _, row in ipairs(said) do put_turn(row) end
for _, row in ipairs(rewritten) do
  if redis.call('HEXISTS', turns, row[1]) == 1 then put_turn(row) end
end
for _, row in ipairs(extracted) do
  local since = redis.call('ZSCORE', pending, row[1])
  if since then
    redis.call('ZREM', pending, row[1])
    redis.call('ZADD', done, since, row[1])
  end
end
-- Turns go by themselves if the user never comes back, but never one that waits.
if #told + #said + #rewritten + #extracted > 0 then
  local waiting = redis.call('EXISTS', pending) == 1
  for _, key in ipairs({turns, done, summaries, pending}) do
    if waiting then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, turns_ms) end
  end
end
for _, row in ipairs(received) do redis.call('HSET', messages, row[1], row[2]) end

for _, row in ipairs(worked) do
  redis.call('HSET', jobs, row[1], row[2])
  if row[3] == '1' then
    redis.call('ZREM', open_jobs, row[1])
  elseif not redis.call('ZSCORE', open_jobs, row[1]) then
    redis.call('ZADD', open_jobs, redis.call('HINCRBY', head, 'job_number', 1), row[1])
  end
end
for _, row in ipairs(references) do redis.call('SADD', outside, row[1]) end
for _, row in ipairs(noted) do
  local seq = whole(redis.call('HINCRBY', head, 'audit_seq', 1))
  redis.call('XADD', audit, seq .. '-0', 'b', row[1])
end
for _, row in ipairs(seen_to) do redis.call('HDEL', alerts, row[1]) end
for _, row in ipairs(raised) do redis.call('HSET', alerts, row[1], row[2]) end
for _, row in ipairs(fed) do
  local seq = whole(redis.call('HINCRBY', head, 'outbox_seq', 1))
  redis.call('ZADD', outbox, seq, seq .. ' ' .. row[1])
end
if tally_from ~= '' then
  for _, entry in ipairs(redis.call('HKEYS', tally)) do
    if string.match(entry, '^%S+') < tally_from then redis.call('HDEL', tally, entry) end
  end
end
redis.call('HSET', ops, operation, version .. ' r ' .. result)
redis.call('ZADD', op_times, at, operation)
redis.call('PEXPIRE', ops, operations_ms)
redis.call('PEXPIRE', op_times, operations_ms)
return {'ok', version}
