"""The shop as a WSGI application, for gunicorn."""


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


def app(environ, start_response):
    if environ["PATH_INFO"] == "/orders/1002":
        charge(1002, -5)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ok\n"]
