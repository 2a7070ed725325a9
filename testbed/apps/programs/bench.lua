-- Small classic computations: lua bench.lua JOB SIZE
local jobs = {}

function jobs.nbody(n)
  local x, y, vx, vy, m = {}, {}, {}, {}, {}
  for i = 1, 8 do x[i], y[i], vx[i], vy[i], m[i] = i * 1.5, i * i * 0.25, 0.01 * i, -0.02 * i, 1 / i end
  for _ = 1, n do
    for i = 1, 8 do
      for j = i + 1, 8 do
        local dx, dy = x[i] - x[j], y[i] - y[j]
        local d2 = dx * dx + dy * dy + 0.01
        local f = 0.001 / (d2 * math.sqrt(d2))
        vx[i] = vx[i] - dx * m[j] * f; vy[i] = vy[i] - dy * m[j] * f
        vx[j] = vx[j] + dx * m[i] * f; vy[j] = vy[j] + dy * m[i] * f
      end
    end
    for i = 1, 8 do x[i] = x[i] + vx[i]; y[i] = y[i] + vy[i] end
  end
  return string.format("%.6f", x[1] + y[8])
end

function jobs.sieve(n)
  local composite, count = {}, 0
  for i = 2, n do
    if not composite[i] then
      count = count + 1
      for j = i * i, n, i do composite[j] = true end
    end
  end
  return count
end

function jobs.trees(n)
  local function make(depth)
    if depth == 0 then return {} end
    return { make(depth - 1), make(depth - 1) }
  end
  local function count(tree) return tree[1] and 1 + count(tree[1]) + count(tree[2]) or 1 end
  local sum = 0
  for _ = 1, 4 do sum = sum + count(make(n)) end
  return sum
end

function jobs.strings(n)
  local counts, seed = {}, 42
  for _ = 1, n do
    seed = (seed * 16807) % 2147483647
    local word = string.format("%x", seed % 5000):reverse():gsub("a", "bb")
    counts[word] = (counts[word] or 0) + 1
  end
  local words = {}
  for word, count in pairs(counts) do words[#words + 1] = string.format("%s=%d", word, count) end
  table.sort(words)
  return #words .. words[1] .. words[#words]
end

function jobs.queens(n)
  local columns, up, down, count = {}, {}, {}, 0
  local function place(row)
    if row > n then count = count + 1; return end
    for c = 1, n do
      if not (columns[c] or up[row + c] or down[row - c + n]) then
        columns[c], up[row + c], down[row - c + n] = true, true, true
        place(row + 1)
        columns[c], up[row + c], down[row - c + n] = nil, nil, nil
      end
    end
  end
  place(1)
  return count
end

print(jobs[arg[1]](tonumber(arg[2])))
