-- Takes the user over and reads what an actor needs. What is short is joined, for a client parses few strings faster
-- than many; JSON holds no raw line feed.
local mismatch = other_model(KEYS[USER_KEYS + 1], take(), take(), take())
if mismatch then return mismatch end
local epoch = take()
local now = redis.call('HMGET', head, 'version', 'generation', 'owner', 'live', 'settings')
if not now[3] then return {'ok', '0', '0', '0', ''} end
if now[3] ~= epoch then redis.call('HSET', head, 'owner', epoch) end
if not now[4] then return {'ok', now[1], now[2], epoch, ''} end

local function split(key)
  local flat, names, values = redis.call('HGETALL', key), {}, {}
  for position = 1, #flat, 2 do
    names[#names + 1], values[#values + 1] = flat[position], flat[position + 1]
  end
  return names, values
end
local function listed(names) return #names == 0 and '[]' or cjson.encode(names) end
local function told()
  local names, values = split(sessions)
  for position, name in ipairs(names) do
    values[position] = values[position] .. '\n' .. (redis.call('HGET', summaries, name) or '')
  end
  return table.concat(values, '\n')
end
local function open()
  local bodies = {}
  for _, id in ipairs(redis.call('ZRANGE', open_jobs, 0, -1)) do
    bodies[#bodies + 1] = redis.call('HGET', jobs, id)
  end
  return table.concat(bodies, '\n')
end

-- Bodies and vectors as they are: to join a megabyte costs the server more than the client saves.
local beside, numbered = {}, redis.call('HGETALL', access)
for position = 1, #numbered, 2 do beside[numbered[position]] = numbered[position + 1] end
local lines = redis.call('HKEYS', memories)
for position, id in ipairs(lines) do lines[position] = beside[id] or '0 0 0' end
local places, said = split(turns)
return {'ok', now[1], now[2], epoch, '1', now[5] or '', redis.call('HVALS', memories), table.concat(lines, '\n'),
  listed(redis.call('HKEYS', vectors)), redis.call('HVALS', vectors), told(), listed(places),
  table.concat(said, '\n'), listed(redis.call('ZRANGE', pending, 0, -1)), open(),
  redis.call('HGETALL', tally)}
