# Conway's game of life on a sparse board.
side, generations = ARGV.map(&:to_i)
state = 12345
alive = {}
(side * side / 3).times do
  state = (state * 1103515245 + 12345) & 0x7fffffff
  alive[[(state >> 8) % side, (state >> 16) % side]] = true
end
generations.times do
  neighbours = Hash.new(0)
  alive.each_key { |x, y| (-1..1).each { |i| (-1..1).each { |j| neighbours[[x + i, y + j]] += 1 unless i == 0 && j == 0 } } }
  alive = neighbours.select { |cell, count| count == 3 || (count == 2 && alive[cell]) }.transform_values { true }
end
puts alive.size
