"""json_shop.py default|fields: python-json-logger."""
import logging
import sys

from pythonjsonlogger import jsonlogger

handler = logging.StreamHandler()
if sys.argv[1] == "default":
    handler.setFormatter(jsonlogger.JsonFormatter())
else:
    handler.setFormatter(jsonlogger.JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
log = logging.getLogger("orders")
log.addHandler(handler)
log.setLevel(logging.INFO)


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


log.info("order placed", extra={"order": 1001})
log.warning({"message": "article nearly sold out", "article": "4711"})
try:
    charge(1002, -5)
except ValueError:
    log.exception("order could not be charged")
