"""The tool ``calc``: an arithmetic expression in, its exact value as text out."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from toolkeel import tool

from .calculator.numbers import Number, digits_of, rounding_context, to_decimal
from .calculator.parser import compute

_SHOWN_DIGITS = 20
_SHOWN_LENGTH = 60
_COUNTED_DIGITS = 50


@tool(effect="read")
def calc(expression: str) -> str:
    """Compute an arithmetic expression exactly; use it for every calculation instead of computing in your head.

    Integers of any length, decimals and fractions are exact: 0.1 + 0.2 is 0.3, and 1/3 is answered as the fraction and
    as a decimal. What has no exact value (square roots, logarithms, trigonometry) is computed to 64 digits and answered
    with "≈" to 20; round(x, places) gives more. Numbers have at most 10,000 digits; larger results are refused at once.

    Args:
        expression: One expression, such as "(1 + 5%) ** 10 * 2500" or "round(22/7 - pi, 30)". Operators: + - * / //
            (quotient rounded down) % (remainder, or percent as in 15% of 80) ** or ^ (power) ! (factorial), and
            comparisons < <= == != >= >, answered with true or false. A percentage is a hundredth: 200 + 15% is 200.15,
            15% more is 200 * (1 + 15%). Functions: abs, round(x, places) (halves away from zero), floor, ceil, trunc,
            min, max, sum, mean, sqrt, root(x, n), pow(x, y, modulus), exp, ln (natural), log(x) (base 10),
            log(x, base), log2, sin, cos, tan, asin, acos, atan (radians), degrees, radians, factorial, comb, perm, gcd,
            lcm. Constants: pi, e, tau. No variables, no units, no commas inside numbers.
    """
    outcome = compute(expression)
    if isinstance(outcome.value, bool):
        return "true" if outcome.value else "false"
    text = _written(outcome.value)
    if outcome.added_percent:
        text += "\n(a percentage is a hundredth: 200 + 15% is 200.15; for 15% more write 200 * (1 + 15%))"
    return text


def _written(number: Number) -> str:
    if isinstance(number, Decimal):
        return f"≈ {_rounded(number)}"
    if number.denominator == 1:
        digits = digits_of(number.numerator)
        count = len(digits.lstrip("-"))
        return digits if count <= _COUNTED_DIGITS else f"{digits}\n({count:,} digits)"
    exact = _terminating(number)
    if exact is not None:
        return exact
    near = _rounded(to_decimal(number, rounding_context()))
    fraction = f"{digits_of(number.numerator)}/{digits_of(number.denominator)}"
    if len(fraction) > _SHOWN_LENGTH:
        return f"≈ {near}"
    return f"{fraction} ≈ {near}"


def _terminating(number: Fraction) -> str | None:
    """The whole decimal, where it ends and is short enough to read."""
    scale = 10**_SHOWN_LENGTH
    if scale % number.denominator:
        return None
    digits = digits_of(abs(number.numerator) * (scale // number.denominator)).rjust(_SHOWN_LENGTH + 1, "0")
    text = f"{digits[:-_SHOWN_LENGTH]}.{digits[-_SHOWN_LENGTH:].rstrip('0')}"
    if len(text) > _SHOWN_LENGTH + 2:
        return None
    return f"-{text}" if number < 0 else text


def _rounded(number: Decimal) -> str:
    """To 20 significant digits, in scientific notation where the plain one would be long."""
    short = number.normalize(Context(prec=_SHOWN_DIGITS))
    if not short:
        return "0"
    if -10 <= short.adjusted() < 2 * _SHOWN_DIGITS:
        return format(short, "f")
    return format(short, "e")
