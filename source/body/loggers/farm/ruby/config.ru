# The shop for Puma.
run lambda { |env|
  raise ArgumentError, "negative amount: -5" if env["PATH_INFO"] == "/orders/1002"
  [200, { "Content-Type" => "text/plain" }, ["ok\n"]]
}
