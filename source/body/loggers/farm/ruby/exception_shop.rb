# A program that ends by an exception.
def charge(order, cents)
  raise ArgumentError, "negative amount: #{cents}" if cents < 0
end

def place(order)
  charge(order, -5)
end

$stderr.puts "placing order 1002"
place(1002)
