"""Logarithm near one, trigonometry and constants, to the calculator's precision."""

from __future__ import annotations

import functools
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction

from toolkeel import ToolError

from .arithmetic import Arithmetic
from .numbers import PRECISION, RELIABLE, Number, to_decimal

_GUARD = 12
_MAX_EXACT_ANGLE = 100
_MAX_ROUNDED_ANGLE = 20
_PI_DIGITS = 256  # precision, guard digits and the digits of the largest angle, with room


def sin(arithmetic: Arithmetic, angle: Number) -> Number:
    """The sine of an angle in radians."""
    if angle == 0:
        return Fraction(0)
    sine, _ = _sine_and_cosine(angle)
    return arithmetic.context.plus(sine)


def cos(arithmetic: Arithmetic, angle: Number) -> Number:
    """The cosine of an angle in radians."""
    if angle == 0:
        return Fraction(1)
    _, cosine = _sine_and_cosine(angle)
    return arithmetic.context.plus(cosine)


def tan(arithmetic: Arithmetic, angle: Number) -> Number:
    """The tangent of an angle in radians; an error where the cosine is 0."""
    if angle == 0:
        return Fraction(0)
    sine, cosine = _sine_and_cosine(angle)
    if cosine == 0:
        raise ToolError("tan has no value at this angle: the cosine is 0")
    return arithmetic.context.divide(sine, cosine)


def atan(arithmetic: Arithmetic, number: Number) -> Number:
    """The angle in radians, from -pi/2 to pi/2, whose tangent is ``number``."""
    if number == 0:
        return Fraction(0)
    context = _working_context(0)
    return arithmetic.context.plus(_atan(to_decimal(number, context), context))


def asin(arithmetic: Arithmetic, number: Number) -> Number:
    """The angle in radians, from -pi/2 to pi/2, whose sine is ``number``."""
    if number == 0:
        return Fraction(0)
    rest = _one_minus_square(number, "asin")
    context = _working_context(0)
    with localcontext(context):
        sine = to_decimal(number, context)
        # At the ends the quotient below would divide by 0.
        tangent = None if rest == 0 else sine / to_decimal(rest, context).sqrt()
        angle = _pi().copy_sign(sine) / 2 if tangent is None else _atan(tangent, context)
    return arithmetic.context.plus(angle)


def acos(arithmetic: Arithmetic, number: Number) -> Number:
    """The angle in radians, from 0 to pi, whose cosine is ``number``."""
    if number == 1:
        return Fraction(0)
    _one_minus_square(number, "acos")
    context = _working_context(0)
    with localcontext(context):
        below = to_decimal(1 - number, context)
        above = to_decimal(1 + number, context)
        angle = _pi() if above == 0 else 2 * _atan((below / above).sqrt(), context)
    return arithmetic.context.plus(angle)


def log1p(number: Decimal, context: Context) -> Decimal:
    """The natural logarithm of 1 + ``number``, which is near 0: right to all its digits."""
    with localcontext(_working_context(0)):
        total = power = number
        for divisor in range(2, 10 * PRECISION):
            power *= -number
            before, total = total, total + power / divisor
            if total == before:
                break
    return context.plus(total)


def constant(name: str) -> Decimal:
    """``pi``, ``e`` or ``tau``, rounded to the calculator's precision."""
    context = _working_context(0)
    with localcontext(context) as rounding:
        value = {"pi": _pi(), "tau": 2 * _pi(), "e": Decimal(1).exp()}[name]
        rounding.prec = PRECISION
        return +value


def _working_context(more: int) -> Context:
    # Wider exponents than a number may have, so that the terms of a series can vanish in peace.
    return Context(
        prec=PRECISION + _GUARD + more,
        Emax=1_000_000,
        Emin=-1_000_000,
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


def _sine_and_cosine(angle: Number) -> tuple[Decimal, Decimal]:
    size = to_decimal(angle, _working_context(0)).adjusted()
    limit = _MAX_EXACT_ANGLE if isinstance(angle, Fraction) else _MAX_ROUNDED_ANGLE
    if size >= limit:
        kind = "an angle" if isinstance(angle, Fraction) else "a rounded angle"
        raise ToolError(f"{kind} is too large for trigonometry: the limit is 10**{limit}")
    context = _working_context(max(size, 0))
    with localcontext(context):
        whole = to_decimal(angle, context)
        quarters = (whole / (_pi() / 2)).to_integral_value()
        rest = whole - quarters * (_pi() / 2)
        sine = _alternating(rest, rest * rest, 2)
        cosine = _alternating(Decimal(1), rest * rest, 1)
        turned = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][int(quarters) % 4]
        if isinstance(angle, Fraction):
            return turned
        # What is smaller than the error of a rounded angle is 0: sin(pi), cos(pi/2).
        noise = abs(whole).scaleb(-RELIABLE)
        return (
            turned[0] if abs(turned[0]) > noise else Decimal(0),
            turned[1] if abs(turned[1]) > noise else Decimal(0),
        )


def _alternating(first: Decimal, square: Decimal, step: int) -> Decimal:
    """``first`` − ``first``·x²/(step·(step+1)) + …: the series of sine (step 2) and cosine (step 1)."""
    total = term = first
    for divisor in range(step, 10 * PRECISION, 2):
        term *= -square / (divisor * (divisor + 1))
        before, total = total, total + term
        if total == before:
            break
    return total


def _atan(number: Decimal, context: Context) -> Decimal:
    with localcontext(context):
        size = abs(number)
        steep = size > 1
        if steep:
            size = 1 / size
        for _ in range(3):  # halving the angle three times leaves a tenth, where the series is short
            size = size / (1 + (1 + size * size).sqrt())
        square = size * size
        total = power = size
        for divisor in range(3, 10 * PRECISION, 2):
            power *= -square
            before, total = total, total + power / divisor
            if total == before:
                break
        angle = 8 * total
        return (_pi() / 2 - angle if steep else angle).copy_sign(number)


def _one_minus_square(number: Number, name: str) -> Number:
    with localcontext(_working_context(PRECISION)):
        rest = 1 - number**2
    if rest < 0:
        raise ToolError(f"{name} takes numbers from -1 to 1")
    return rest


@functools.cache
def _pi() -> Decimal:
    """Pi to more digits than anything here needs, by Machin's formula in whole numbers."""
    one: int = 10 ** (_PI_DIGITS + 10)

    def arctangent_of_inverse(number: int) -> int:
        total = term = one // number
        divisor = 1
        while term:
            term //= -number * number
            divisor += 2
            total += term // divisor
        return total

    scaled = 16 * arctangent_of_inverse(5) - 4 * arctangent_of_inverse(239)
    return Decimal(scaled // 10**10).scaleb(-_PI_DIGITS, Context(prec=_PI_DIGITS + 10))
