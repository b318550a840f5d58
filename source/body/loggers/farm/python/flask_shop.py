"""The shop with Flask and its server: flask_shop.py PORT."""
import sys

from flask import Flask

app = Flask("shop")


@app.route("/orders/<int:number>")
def order(number):
    app.logger.warning("article of order %d is nearly sold out", number)
    if number == 1002:
        raise ValueError("negative amount: -5")
    return "ok\n"


app.run(port=int(sys.argv[1]))
