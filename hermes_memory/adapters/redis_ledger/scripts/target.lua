-- A refusal unless the change to this model is under way: what the facts say instead.
local function standing_of(facts, name, dimension, number)
  local stored = redis.call('HMGET', facts, 'embedder', 'dimension', 'model', 'next_embedder', 'next_dimension')
  if stored[4] == name and stored[5] == dimension and stored[3] == number then return nil end
  return {'model', stored[1], stored[2], stored[3], stored[4], stored[5]}
end
