"""The operators of the calculator, with a budget for the work of one evaluation."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from toolkeel import ToolError

from .numbers import (
    MAX_BITS,
    RELIABLE,
    Number,
    bits,
    digits_of_bits,
    log2,
    rounding_context,
    settled,
    to_decimal,
    too_large,
    too_small,
)

WORK_LIMIT = 150_000
"""Units of work of one evaluation; a unit is about two microseconds of an ordinary machine."""

_MAX_ROOT = 10_000
_MAX_EXPONENT_DIGITS = 500
_MAX_INEXACT_EXPONENT = Decimal(10) ** 15


class Arithmetic:
    """Operators on numbers. Every operation pays for its work before it does it; results are within the limits.

    Each method raises ``ToolError`` where the result does not exist, is beyond the limits, or the budget is used up.
    """

    def __init__(self, budget: int = WORK_LIMIT) -> None:
        self.context: Context = rounding_context()
        self._left = budget

    def pay(self, units: int) -> None:
        """Take work from the budget."""
        self._left -= units
        if self._left < 0:
            raise ToolError(
                "the calculation takes too much work: it has too many operations on long numbers",
                remedy="Split it into several calls, or round intermediate results with round(x, digits)",
            )

    def pay_for(self, *numbers: Number) -> None:
        """Take the work of one operation on these numbers from the budget."""
        longest = max((bits(number) for number in numbers if isinstance(number, Fraction)), default=0)
        self.pay(1 + (longest // 1000) ** 2)

    def decimal(self, number: Number) -> Decimal:
        """The number rounded to the working precision."""
        self.pay_for(number)
        return to_decimal(number, self.context)

    def negate(self, a: Number) -> Number:
        """``-a``."""
        return -a if isinstance(a, Fraction) else self.context.minus(a)

    def absolute(self, a: Number) -> Number:
        """The absolute value."""
        return abs(a) if isinstance(a, Fraction) else self.context.abs(a)

    def add(self, a: Number, b: Number) -> Number:
        """``a + b``. A sum of rounded numbers that cancels down to its rounding error is 0."""
        self.pay_for(a, b)
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return settled(a + b, "the sum")
        left, right = self.decimal(a), self.decimal(b)
        total = self.context.add(left, right)
        largest = max(left.adjusted() if left else -MAX_BITS, right.adjusted() if right else -MAX_BITS)
        return total if not total or total.adjusted() >= largest - RELIABLE else Decimal(0)

    def subtract(self, a: Number, b: Number) -> Number:
        """``a - b``."""
        return self.add(a, self.negate(b))

    def multiply(self, a: Number, b: Number) -> Number:
        """``a * b``."""
        self.pay_for(a, b)
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return settled(a * b, "the product")
        return self.context.multiply(self.decimal(a), self.decimal(b))

    def divide(self, a: Number, b: Number) -> Number:
        """``a / b``, exact where both are."""
        self._refuse_zero(b)
        self.pay_for(a, b)
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return settled(a / b, "the quotient")
        return self.context.divide(self.decimal(a), self.decimal(b))

    def floor_divide(self, a: Number, b: Number) -> Number:
        """``a // b``: the quotient, rounded down."""
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            self._refuse_zero(b)
            self.pay_for(a, b)
            return settled(Fraction(a // b), "the quotient")
        return self.floor(self.divide(a, b))

    def remainder(self, a: Number, b: Number) -> Number:
        """``a % b``: what is left of ``a`` after ``a // b`` times ``b``; it has the sign of ``b``."""
        return self.subtract(a, self.multiply(b, self.floor_divide(a, b)))

    def floor(self, a: Number) -> Number:
        """The largest whole number that is not above ``a``."""
        if isinstance(a, Fraction):
            self.pay_for(a)
            return Fraction(a.numerator // a.denominator)
        return self._whole(a, "ROUND_FLOOR")

    def ceil(self, a: Number) -> Number:
        """The smallest whole number that is not below ``a``."""
        return self.negate(self.floor(self.negate(a)))

    def round(self, a: Number, places: int) -> Number:
        """``a`` rounded to decimal places (negative: tens, hundreds …); halves go away from zero."""
        self.pay(1 + (abs(places) // 300) ** 2)
        scale = Fraction(10) ** places
        if isinstance(a, Fraction) and scale.numerator % a.denominator == 0 and places >= 0:
            return a
        scaled = self.multiply(self.absolute(a), scale)
        whole = self.floor(self.add(scaled, Fraction(1, 2)))
        rounded = self.divide(whole, scale)
        return self.negate(rounded) if a < 0 else rounded

    def compare(self, a: Number, b: Number) -> int:
        """-1, 0 or 1 as ``a`` is below, equal to or above ``b``."""
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            self.pay_for(a, b)
            return (a > b) - (a < b)
        difference = self.subtract(a, b)
        return (difference > 0) - (difference < 0)

    def power(self, base: Number, exponent: Number) -> Number:
        """``base ** exponent``: exact for whole exponents and exact roots, rounded otherwise; ``0 ** 0`` is 1."""
        if isinstance(exponent, Fraction) and exponent.denominator == 1:
            return self._integer_power(base, exponent.numerator)
        if base == 0:
            return self._power_of_zero(exponent)
        if base < 0:
            raise ToolError(
                "a negative number to a power that is not whole has no real value",
                remedy="For an odd root use root(x, n), such as root(-8, 3)",
            )
        if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator <= _MAX_ROOT:
            exact = self.exact_root(base, exponent.denominator)
            if exact is not None:
                return self._integer_power(exact, exponent.numerator)
        return self._rounded_power(base, exponent)

    def exact_root(self, base: Fraction, degree: int) -> Fraction | None:
        """The positive root of a number that is not negative, where it is a fraction; otherwise ``None``."""
        numerator = self._integer_root(base.numerator, degree)
        denominator = self._integer_root(base.denominator, degree)
        return None if numerator is None or denominator is None else Fraction(numerator, denominator)

    def _refuse_zero(self, divisor: Number) -> None:
        if divisor == 0:
            raise ToolError("division by zero")

    def _power_of_zero(self, exponent: Number | int) -> Number:
        if exponent < 0:
            raise ToolError("0 to a negative power is a division by zero")
        return Fraction(0)

    def _whole(self, a: Decimal, rounding: str) -> Number:
        if a.adjusted() >= RELIABLE:
            raise ToolError(
                f"a rounded number of more than {RELIABLE} digits has no known whole part",
                remedy="Use exact operations, smaller numbers or fewer places",
            )
        nearest = a.to_integral_value()
        # 2.999…9 that is 3 but for its rounding error is 3
        if nearest and abs(self.context.subtract(a, nearest)).adjusted() < nearest.adjusted() - RELIABLE:
            return Fraction(int(nearest))
        return Fraction(int(a.to_integral_value(rounding)))

    def _integer_power(self, base: Number, exponent: int) -> Number:
        if exponent == 0:
            return Fraction(1)
        if base == 0:
            return self._power_of_zero(exponent)
        if isinstance(base, Decimal):
            return self._rounded_power(base, Fraction(exponent))
        if abs(base) == 1:
            return base if exponent % 2 else Fraction(1)
        # An exponent beyond a float's range is only clipped: the result is far over the limit all the same.
        times = float(min(abs(exponent), 10**30))
        value = log2(base) * (times if exponent > 0 else -times)
        longest = math.log2(max(abs(base.numerator), base.denominator)) * times
        if value > MAX_BITS:
            raise too_large("the power", digits_of_bits(value), "For a remainder use pow(x, y, modulus)")
        if value < -MAX_BITS:
            raise too_small("the power")
        if longest > MAX_BITS:
            return self._rounded_power(base, Fraction(exponent))
        self.pay(1 + int(longest / 1000) ** 2)
        return settled(base**exponent, "the power")

    def _rounded_power(self, base: Number, exponent: Number) -> Number:
        self.pay(150)
        context = self.context
        if isinstance(base, Fraction):
            # The error of a rounded base grows with the exponent, so it gets as many more digits.
            size = max(self.decimal(exponent).adjusted(), 0)
            if size > _MAX_EXPONENT_DIGITS:
                raise ToolError(f"the exponent is too large: the limit here is 10**{_MAX_EXPONENT_DIGITS}")
            context = rounding_context(self.context.prec + size)
            self.pay(size * size // 16)
        elif abs(self.decimal(exponent)) > _MAX_INEXACT_EXPONENT:
            raise ToolError("the exponent of a rounded number is too large: the limit is 10**15")
        negative = base < 0 and isinstance(exponent, Fraction) and exponent.numerator % 2 == 1
        with localcontext(context):
            power = context.power(abs(to_decimal(base, context)), to_decimal(exponent, context))
        return self.context.plus(-power if negative else power)

    def _integer_root(self, number: int, degree: int) -> int | None:
        if degree == 1:
            return number
        self.pay(1 + (number.bit_length() // 1000) ** 2)
        if degree == 2:
            root = math.isqrt(number)
        elif number.bit_length() > degree * 190:  # beyond the working precision
            return None
        else:
            with localcontext(self.context):
                root = round((+Decimal(number)) ** (Decimal(1) / degree))
        return root if root**degree == number else None
