"""A program that ends by an exception with another behind it."""
import sys


def charge(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)


def place(order):
    try:
        charge(order, -5)
    except ValueError as e:
        raise RuntimeError("order %d could not be charged" % order) from e


print("placing order 1002", file=sys.stderr)
place(1002)
