"""The calculator's numbers: exact fractions, decimals where no fraction is exact, and the limits of both."""

from __future__ import annotations

import math
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, Underflow
from fractions import Fraction

from toolkeel import ToolError

Number = Fraction | Decimal
"""A ``Fraction`` is exact; a ``Decimal`` is the rounded result of something that has no exact one (``sqrt(2)``)."""

MAX_DIGITS = 10_000
"""The size of a number: digits of an exact numerator or denominator, decimal exponent of a rounded number."""
MAX_BITS = math.ceil(MAX_DIGITS * math.log2(10))
PRECISION = 64
"""Significant digits that rounded numbers are computed with."""
RELIABLE = 54
"""Significant digits that are taken as right: what differs only beyond them is equal, and their difference is 0."""

_BITS_PER_DIGIT = math.log2(10)
_LIMIT = 10**MAX_DIGITS


def rounding_context(precision: int = PRECISION) -> Context:
    """A decimal context for rounded numbers; running over the size of a number raises instead of giving infinity."""
    return Context(
        prec=precision,
        Emax=MAX_DIGITS,
        Emin=-MAX_DIGITS,
        traps=[InvalidOperation, DivisionByZero, Overflow, Underflow],
    )


def too_large(what: str, digits: float, remedy: str = "Use smaller numbers") -> ToolError:
    """The error for a number beyond the limit: ``what`` is its subject, ``digits`` how many it would have."""
    size = f"about {math.floor(digits + 1e-6) + 1:,}" if digits < 1e12 else f"more than {10**12:,}"
    return ToolError(f"{what} is too large: {size} digits, and the limit is {MAX_DIGITS:,}", remedy=remedy)


def too_small(what: str) -> ToolError:
    """The error for a number that is not 0 but closer to it than the limit allows."""
    return ToolError(f"{what} is too close to zero: the limit is 10**-{MAX_DIGITS:,}", remedy="Use other units")


def bits(number: Fraction) -> int:
    """How many bits the longer of numerator and denominator has."""
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def log2(number: Fraction) -> float:
    """The binary logarithm of the absolute value; ``number`` is not 0."""
    return math.log2(abs(number.numerator)) - math.log2(number.denominator)


def to_decimal(number: Number, context: Context) -> Decimal:
    """The number rounded to the precision of ``context``."""
    if isinstance(number, Decimal):
        return number
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def settled(number: Number, what: str) -> Number:
    """The number itself; rounded, where only its fraction is too long; an error where its value is beyond the limit.

    Raises:
        ToolError: the value is too large or too close to zero; ``what`` names it.
    """
    if isinstance(number, Decimal) or bits(number) < MAX_BITS:
        return number
    if max(abs(number.numerator), number.denominator) < _LIMIT:
        return number
    magnitude = log2(number)
    if magnitude > MAX_BITS - 1:
        raise too_large(what, magnitude / _BITS_PER_DIGIT)
    if magnitude < 1 - MAX_BITS:
        raise too_small(what)
    return to_decimal(number, rounding_context())


def digits_of_bits(size: float) -> float:
    """How many decimal digits a number of ``size`` bits has."""
    return size / _BITS_PER_DIGIT


def integer(digits: str) -> int:
    """The integer that a string of decimal digits writes, at any length: ``int()`` refuses long ones."""
    return int(digits) if len(digits) <= 600 else int(Decimal(digits))


def digits_of(number: int) -> str:
    """The decimal digits of an integer, with its sign, at any length."""
    return str(number) if number.bit_length() <= 2_000 else format(Decimal(number), "f")
