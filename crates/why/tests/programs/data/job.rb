words = File.read(ARGV[0]).split
puts words.tally.sort_by { |word, count| [-count, word] }.first(5).inspect
fib = Hash.new { |memo, n| memo[n] = n < 2 ? n : memo[n - 1] + memo[n - 2] }
puts fib[300]
puts (1..200).inject(:*).to_s.length
queue = Queue.new
threads = 4.times.map { |i| Thread.new { 100.times { |j| queue << i * j } } }
threads.each(&:join)
puts queue.size.times.sum { queue.pop }
fiber = Fiber.new { 3.times { |i| Fiber.yield i * 10 } ; :done }
puts 4.times.map { fiber.resume }.inspect
reader, writer = IO.pipe
pid = fork { reader.close; writer.puts "from the child"; exit! 5 }
writer.close
puts reader.read
Process.wait pid
puts $?.exitstatus
begin
  Integer("no number")
rescue ArgumentError => error
  puts error.message
end
puts words.join.gsub(/[aeiou]/) { |v| v.upcase }.sum
objects = 20_000.times.map { |i| [i, i.to_s] }.to_h
GC.start
puts objects.values.map(&:length).sum
