# logging_shop.rb basic|json: the gem logging.
require "logging"

def charge(order, cents)
  raise ArgumentError, "negative amount: #{cents}" if cents < 0
end

Logging.init
layout = ARGV[0] == "json" ? Logging.layouts.json : Logging.layouts.pattern({})
log = Logging.logger["orders"]
log.add_appenders(Logging.appenders.stdout(layout: layout))
log.info("order 1001 placed")
log.warn("article 4711 is nearly sold out")
log.error("card of order 1001 declined")
begin
  charge(1002, -5)
rescue ArgumentError => e
  log.error(e)
end
