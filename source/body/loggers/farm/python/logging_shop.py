"""logging_shop.py basic|asctime|none: the standard library's logging."""
import logging
import sys

if sys.argv[1] == "basic":
    logging.basicConfig()
elif sys.argv[1] == "asctime":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")

orders, payments = logging.getLogger("orders"), logging.getLogger("payments")


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


orders.info("order 1001 placed")
orders.warning("article 4711 is nearly sold out")
payments.error("card of order 1001 declined")
try:
    charge(1002, -5)
except ValueError:
    payments.exception("order 1002 could not be charged")
payments.critical("no connection to the bank")
