-- An answer that refuses, unless the data belongs to this model; also whether another one is on its way in.
-- In a cluster the facts live elsewhere: there the caller has asked just before.
local function other_model(facts, name, dimension, number)
  if not facts then return nil, false end
  local stored = redis.call('HMGET', facts, 'embedder', 'dimension', 'model', 'next_embedder', 'next_dimension')
  if stored[1] == name and stored[2] == dimension and stored[3] == number then return nil, stored[4] end
  return {'model', stored[1], stored[2], stored[3], stored[4], stored[5]}, false
end
