"""structlog_shop.py console|colour|json: structlog, as configured by default with colours, or for JSON."""
import sys

import structlog

if sys.argv[1] == "json":
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    )
if sys.argv[1] == "colour":
    renderer = structlog.dev.ConsoleRenderer(colors=True)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], renderer])

log = structlog.get_logger()


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


log.info("order placed", order=1001, total=19.9)
log.warning("article nearly sold out", article="4711", left=2)
log.error("card declined", order=1001, reason="limit reached")
try:
    charge(1002, -5)
except ValueError:
    log.exception("order could not be charged", order=1002)
