"""A program that ends by a group of exceptions."""
import sys


def settle():
    raise ExceptionGroup("payments failed", [ValueError("negative amount: -5"), TimeoutError("no answer of the bank")])


print("settling payments", file=sys.stderr)
settle()
