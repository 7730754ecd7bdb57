"""The named functions and constants of the calculator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

import msgspec

from toolkeel import ToolError

from . import transcendental
from .arithmetic import Arithmetic
from .numbers import MAX_BITS, MAX_DIGITS, Number, digits_of_bits, log2, settled, too_large

Implementation = Callable[[Arithmetic, Sequence[Number]], Number]

_MAX_POW_BITS = 2_326
_MAX_POW_DIGITS = 700
_HUGE = 10**300
"""Stands for larger integers in estimates: a float still holds it, and its factorial's size."""


class Function(msgspec.Struct, frozen=True):
    """A function that expressions may call: how it is written and how many numbers it takes."""

    usage: str
    implementation: Implementation
    least: int = 1
    most: int | None = 1


def call(name: str, arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    """Call a function by name.

    Raises:
        ToolError: the number of arguments is wrong, or the function has no value there.
    """
    function = FUNCTIONS[name]
    given = len(arguments)
    if given < function.least or (function.most is not None and given > function.most):
        raise ToolError(f"{name} does not take {given} {'number' if given == 1 else 'numbers'}: {function.usage}")
    return function.implementation(arithmetic, arguments)


def _whole(number: Number, of: str) -> int:
    if isinstance(number, Fraction) and number.denominator == 1:
        return number.numerator
    raise ToolError(f"{of} takes whole numbers")


def _count(number: Number, of: str) -> int:
    value = _whole(number, of)
    if value < 0:
        raise ToolError(f"{of} takes whole numbers from 0 up")
    return value


def _abs(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return arithmetic.absolute(arguments[0])


def _floor(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return arithmetic.floor(arguments[0])


def _ceil(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return arithmetic.ceil(arguments[0])


def _trunc(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    number = arguments[0]
    return arithmetic.ceil(number) if number < 0 else arithmetic.floor(number)


def _round(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    places = _whole(arguments[1], "the second argument of round") if len(arguments) == 2 else 0
    if abs(places) > MAX_DIGITS:
        raise ToolError(f"round takes at most {MAX_DIGITS:,} places")
    return arithmetic.round(arguments[0], places)


def _extreme(wanted: int) -> Implementation:
    def implementation(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
        best = arguments[0]
        for number in arguments[1:]:
            if arithmetic.compare(number, best) == wanted:
                best = number
        return best

    return implementation


def _sum(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    total: Number = Fraction(0)
    for number in arguments:
        total = arithmetic.add(total, number)
    return total


def _mean(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return arithmetic.divide(_sum(arithmetic, arguments), Fraction(len(arguments)))


def _pow(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    if len(arguments) == 2:
        return arithmetic.power(arguments[0], arguments[1])
    base, exponent, modulus = (_whole(number, "pow with a modulus") for number in arguments)
    if exponent < 0 or modulus < 1:
        raise ToolError("pow with a modulus takes an exponent from 0 up and a modulus from 1 up")
    if max(exponent.bit_length(), modulus.bit_length()) > _MAX_POW_BITS:
        raise ToolError(
            f"pow with a modulus takes an exponent and a modulus of at most {_MAX_POW_DIGITS:,} digits",
            remedy="Use smaller numbers",
        )
    arithmetic.pay(10 + exponent.bit_length() * (modulus.bit_length() // 100 + 1) ** 2 // 60)
    return Fraction(pow(base % modulus, exponent, modulus))


def _sqrt(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return _nth_root(arithmetic, arguments[0], 2)


def _root(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    degree = _whole(arguments[1], "the second argument of root")
    if not 1 <= degree <= MAX_DIGITS:
        raise ToolError(f"the degree of root is from 1 to {MAX_DIGITS:,}")
    return _nth_root(arithmetic, arguments[0], degree)


def _nth_root(arithmetic: Arithmetic, number: Number, degree: int) -> Number:
    if number < 0:
        if degree % 2 == 0:
            raise ToolError("an even root of a negative number has no real value")
        return arithmetic.negate(_nth_root(arithmetic, arithmetic.negate(number), degree))
    if degree == 2 and isinstance(number, Decimal):
        return arithmetic.context.sqrt(number)
    return arithmetic.power(number, Fraction(1, degree))


def _factorial(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    number = _count(arguments[0], "factorial")
    return _product(arithmetic, "the factorial", _log2_factorial(number), math.factorial, number)


def _comb(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    total, chosen = (_count(number, "comb") for number in arguments)
    chosen = min(chosen, total - chosen)
    if chosen < 0:
        return Fraction(0)
    size = _log2_factorial(total) - _log2_factorial(chosen) - _log2_factorial(total - chosen)
    # Beyond a float's precision the difference is noise; there the size is that of total**chosen / chosen!.
    if total > 10**12:
        size = min(chosen, _HUGE) * math.log2(total) - _log2_factorial(chosen)
    return _product(arithmetic, "the number of combinations", size, math.comb, total, chosen)


def _perm(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    total, chosen = (_count(number, "perm") for number in arguments)
    if chosen > total:
        return Fraction(0)
    size = _log2_factorial(total) - _log2_factorial(total - chosen)
    if total > 10**12:
        size = min(chosen, _HUGE) * math.log2(total)
    return _product(arithmetic, "the number of permutations", size, math.perm, total, chosen)


def _log2_factorial(number: int) -> float:
    return math.lgamma(min(number, _HUGE) + 1) / math.log(2)


def _product(arithmetic: Arithmetic, what: str, size: float, function: Callable[..., int], *arguments: int) -> Number:
    if size > MAX_BITS:
        raise too_large(what, digits_of_bits(size))
    arithmetic.pay(5 + 8 * int(size / 1000) ** 2)
    return settled(Fraction(function(*arguments)), what)


def _gcd(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    result = 0
    for number in arguments:
        arithmetic.pay_for(number)
        result = math.gcd(result, _whole(number, "gcd"))
    return Fraction(result)


def _lcm(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    result: Number = Fraction(1)
    for number in arguments:
        value = _whole(number, "lcm")
        if value == 0:
            return Fraction(0)
        arithmetic.pay_for(number)
        divisor = math.gcd(_whole(result, "lcm"), value)
        result = arithmetic.multiply(result, Fraction(abs(value) // divisor))
    return result


def _exp(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    if arguments[0] == 0:
        return Fraction(1)
    arithmetic.pay(50)
    return arithmetic.context.exp(arithmetic.decimal(arguments[0]))


def _ln(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    number = arguments[0]
    if number <= 0:
        raise ToolError("a logarithm is defined for numbers above 0 only")
    if number == 1 and isinstance(number, Fraction):
        return Fraction(0)
    arithmetic.pay(50)
    if isinstance(number, Fraction) and abs(number - 1) < Fraction(1, 1000):
        # ln near 1 is as small as the difference to 1, which rounding the number would lose.
        return transcendental.log1p(arithmetic.decimal(number - 1), arithmetic.context)
    return arithmetic.context.ln(arithmetic.decimal(number))


def _log(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return _log_to(arithmetic, arguments[0], arguments[1] if len(arguments) == 2 else Fraction(10))


def _log2(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return _log_to(arithmetic, arguments[0], Fraction(2))


def _log_to(arithmetic: Arithmetic, number: Number, base: Number) -> Number:
    if base == 1:
        raise ToolError("there is no logarithm to the base 1")
    quotient = arithmetic.divide(_ln(arithmetic, [number]), _ln(arithmetic, [base]))
    if isinstance(number, Decimal) or isinstance(base, Decimal) or isinstance(quotient, Fraction):
        return quotient
    nearest = int(quotient.to_integral_value())
    if abs(quotient - nearest) < Decimal("1e-40") and abs(log2(base) * nearest) <= MAX_BITS:
        power = arithmetic.power(base, Fraction(nearest))
        if power == number:
            return Fraction(nearest)
    return quotient


def _trigonometric(function: Callable[[Arithmetic, Number], Number]) -> Implementation:
    def implementation(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
        arithmetic.pay(50)
        for _ in range(4):  # the conversions of a long fraction cost more than the series
            arithmetic.pay_for(arguments[0])
        return function(arithmetic, arguments[0])

    return implementation


def _degrees(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return arithmetic.multiply(arguments[0], arithmetic.divide(Fraction(180), constant("pi")))


def _radians(arithmetic: Arithmetic, arguments: Sequence[Number]) -> Number:
    return arithmetic.multiply(arguments[0], arithmetic.divide(constant("pi"), Fraction(180)))


FUNCTIONS: dict[str, Function] = {
    "abs": Function("abs(x)", _abs),
    "acos": Function("acos(x), in radians", _trigonometric(transcendental.acos)),
    "asin": Function("asin(x), in radians", _trigonometric(transcendental.asin)),
    "atan": Function("atan(x), in radians", _trigonometric(transcendental.atan)),
    "ceil": Function("ceil(x)", _ceil),
    "comb": Function("comb(n, k)", _comb, 2, 2),
    "cos": Function("cos(x), x in radians", _trigonometric(transcendental.cos)),
    "degrees": Function("degrees(x)", _degrees),
    "exp": Function("exp(x)", _exp),
    "factorial": Function("factorial(n)", _factorial),
    "floor": Function("floor(x)", _floor),
    "gcd": Function("gcd(a, b, …)", _gcd, 1, None),
    "lcm": Function("lcm(a, b, …)", _lcm, 1, None),
    "ln": Function("ln(x), the natural logarithm", _ln),
    "log": Function("log(x) to the base 10, or log(x, base)", _log, 1, 2),
    "log10": Function("log10(x)", _log),
    "log2": Function("log2(x)", _log2),
    "max": Function("max(a, b, …)", _extreme(1), 1, None),
    "mean": Function("mean(a, b, …)", _mean, 1, None),
    "min": Function("min(a, b, …)", _extreme(-1), 1, None),
    "perm": Function("perm(n, k)", _perm, 2, 2),
    "pow": Function("pow(x, y), or pow(x, y, modulus)", _pow, 2, 3),
    "radians": Function("radians(x)", _radians),
    "root": Function("root(x, n)", _root, 2, 2),
    "round": Function("round(x) or round(x, places)", _round, 1, 2),
    "sin": Function("sin(x), x in radians", _trigonometric(transcendental.sin)),
    "sqrt": Function("sqrt(x)", _sqrt),
    "sum": Function("sum(a, b, …)", _sum, 1, None),
    "tan": Function("tan(x), x in radians", _trigonometric(transcendental.tan)),
    "trunc": Function("trunc(x)", _trunc),
}

CONSTANTS = ("pi", "e", "tau")


def constant(name: str) -> Number:
    """The value of a constant, rounded to the working precision."""
    return transcendental.constant(name)
