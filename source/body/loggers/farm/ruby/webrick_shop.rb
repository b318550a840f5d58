# webrick_shop.rb PORT: the shop with WEBrick.
require "webrick"

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ARGV[0].to_i)
server.mount_proc("/orders/") do |request, response|
  raise ArgumentError, "negative amount: -5" if request.path == "/orders/1002"
  server.logger.warn("article of order 1001 is nearly sold out")
  response.body = "ok\n"
end
trap("TERM") { server.shutdown }
server.start
