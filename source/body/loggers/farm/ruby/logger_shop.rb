# Ruby's Logger.
require "logger"

def charge(order, cents)
  raise ArgumentError, "negative amount: #{cents}" if cents < 0
end

log = Logger.new($stdout)
log.info("order 1001 placed")
log.warn("article 4711 is nearly sold out")
log.error("card of order 1001 declined")
begin
  charge(1002, -5)
rescue ArgumentError => e
  log.error(e)
end
log.fatal("no connection to the bank")
