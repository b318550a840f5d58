"""The shop as an ASGI application, for uvicorn."""


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    if scope["path"] == "/orders/1002":
        charge(1002, -5)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok\n"})
