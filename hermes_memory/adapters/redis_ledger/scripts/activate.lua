-- Takes the user over and reads what an actor needs. Few long strings rather than many short ones: a client parses
-- them far faster. JSON holds no raw line feed, so bodies are joined by it.
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

local ids, bodies = split(memories)
local beside = {}
local flat = redis.call('HGETALL', access)
for position = 1, #flat, 2 do beside[flat[position]] = flat[position + 1] end
for position, id in ipairs(ids) do ids[position] = beside[id] or '0 0 0' end
local embedded, blobs = split(vectors)
local places, said = split(turns)
return {'ok', now[1], now[2], epoch, '1', now[5] or '', table.concat(bodies, '\n'), table.concat(ids, '\n'),
  listed(embedded), table.concat(blobs), told(), listed(places), table.concat(said, '\n'),
  listed(redis.call('ZRANGE', pending, 0, -1)), open()}
