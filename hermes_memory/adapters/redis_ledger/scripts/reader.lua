-- Reads ARGV from left to right; a table is its number of rows, then the rows.
local place = 0
local function take()
  place = place + 1
  return ARGV[place]
end
local function rows(width)
  local list = {}
  for number = 1, tonumber(take()) do
    local row = {}
    for column = 1, width do row[column] = take() end
    list[number] = row
  end
  return list
end
-- tostring() would write a time in microseconds as 1.767e+15.
local function whole(number) return string.format('%.0f', number) end
