"""loguru_shop.py default|colour|serialize: loguru."""
import sys

from loguru import logger

if sys.argv[1] == "colour":
    logger.remove()
    logger.add(sys.stderr, colorize=True)
elif sys.argv[1] == "serialize":
    logger.remove()
    logger.add(sys.stderr, serialize=True)


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


logger.info("order {} placed", 1001)
logger.warning("article 4711 is nearly sold out")
logger.error("card of order 1001 declined")
try:
    charge(1002, -5)
except ValueError:
    logger.exception("order 1002 could not be charged")
if sys.argv[1] == "serialize":
    logger.success("order 1003 delivered")
