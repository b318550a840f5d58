# Python's logging.handlers: HTTPHandler with POST or GET, SysLogHandler over TCP, and SocketHandler.
import json
import logging.handlers
import os
import socket
import time
import urllib.parse

url = urllib.parse.urlsplit(os.environ["INTEROP_URL"])
service = os.environ["INTEROP_SERVICE"]
handler = os.environ["INTEROP_HANDLER"]
pause = int(os.environ["INTEROP_PAUSE"]) / 1000
if handler == "syslog":
    to = logging.handlers.SysLogHandler((url.hostname, url.port), socktype=socket.SOCK_STREAM)
    to.ident = service + ": "
elif handler == "socket":
    to = logging.handlers.SocketHandler(url.hostname, url.port)
else:
    to = logging.handlers.HTTPHandler(url.netloc, "/ingest/" + service, method=handler)
log = logging.getLogger("interop")
log.setLevel(logging.DEBUG)
log.addHandler(to)
for i, line in enumerate(open(os.environ["INTEROP_RECORDS"], encoding="utf-8")):
    r = json.loads(line)
    record = log.makeRecord(log.name, getattr(logging, r["level"].upper().replace("WARN", "WARNING")), "x.py", 1, r["msg"], (), None)
    record.created = r["ms"] / 1000 + 0.0001  # with a fraction
    record.mark, record.n = r["mark"], r["n"]
    log.handle(record)
    if i % 20 == 19:
        time.sleep(pause)
logging.shutdown()
