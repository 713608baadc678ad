-- The last line of the frozen gate (SPEC §5): the meaning is read from the stored body, whatever the caller believes.
local function is_frozen(body)
  -- Without the word, and without an escape that could spell it, nothing needs to be decoded.
  if not (string.find(body, 'frozen', 1, true) or string.find(body, '\\', 1, true)) then return false end
  local readable, value = pcall(cjson.decode, body)
  return not readable or type(value) ~= 'table' or value.lock == 'frozen'
end
local function plain(value)
  if value == cjson.null then return nil end
  return value
end
local function same_meaning(old, new)
  if old == new then return true end
  local read_old, before = pcall(cjson.decode, old)
  local read_new, after = pcall(cjson.decode, new)
  if not (read_old and read_new) or type(before) ~= 'table' or type(after) ~= 'table' then return false end
  for _, field in ipairs(MEANING) do
    local left, right = plain(before[field]), plain(after[field])
    if left ~= right or type(left) == 'table' then return false end
  end
  return true
end
-- The id of a frozen memory that the changes may not touch, or nil. Nothing has been written yet.
local function refused(memories, written, deleted, grants)
  local latest = {}
  for _, row in ipairs(written) do
    local id = row[1]
    local old = latest[id] or redis.call('HGET', memories, id)
    if old and grants[id] ~= 'unfreeze' and is_frozen(old) and not same_meaning(old, row[2]) then return id end
    latest[id] = row[2]
  end
  for _, row in ipairs(deleted) do
    local id = row[1]
    local old = latest[id] or redis.call('HGET', memories, id)
    if old and grants[id] ~= 'erase' and is_frozen(old) then return id end
  end
  return nil
end
