"""The shop with Twisted's logger, as twistd writes it."""
import sys

from twisted.logger import Logger, globalLogBeginner, textFileLogObserver

globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stdout)])
log = Logger("orders")


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


log.info("order {order} placed", order=1001)
log.warn("article {article} is nearly sold out", article="4711")
log.error("card of order {order} declined", order=1001)
try:
    charge(1002, -5)
except ValueError:
    log.failure("order {order} could not be charged", order=1002)
log.critical("no connection to the bank")
