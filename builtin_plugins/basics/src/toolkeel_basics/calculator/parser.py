"""Reads an arithmetic expression and computes it as it reads: recursive descent, bounded in length and depth."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from decimal import Overflow, Underflow
from fractions import Fraction
from typing import ParamSpec, TypeVar

import msgspec

from toolkeel import ToolError

from . import functions
from .arithmetic import Arithmetic
from .numbers import MAX_BITS, MAX_DIGITS, Number, integer, settled, too_large, too_small

MAX_LENGTH = 10_000
MAX_DEPTH = 100

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<radix>0[xX][0-9A-Fa-f_]+|0[bB][01_]+|0[oO][0-7_]+)
  | (?P<number>(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)
  | (?P<name>[^\W\d]\w*)
  | (?P<operator>\*\*|//|==|!=|<=|>=|[-+*/%^!<>(),\[\]])
    """,
    re.VERBOSE,
)
_SPELLINGS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "\N{NO-BREAK SPACE}": " "})
_ALIASES = {"π": "pi", "τ": "tau", "average": "mean", "avg": "mean", "ceiling": "ceil", "fact": "factorial"}
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


class Token(msgspec.Struct, frozen=True):
    """A piece of the expression: its kind, its text, and where it starts and ends, counted from 0."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def shown(self) -> str:
        """The text as errors quote it."""
        return repr(self.text if len(self.text) <= 40 else f"{self.text[:40]}…")


class Outcome(msgspec.Struct, frozen=True):
    """What an expression comes to: a number or, where it compares, a truth value.

    ``added_percent`` is whether a percentage was added to or taken from something: readers understand that in two ways.
    """

    value: Number | bool
    added_percent: bool = False


def compute(expression: str) -> Outcome:
    """Compute an expression.

    Raises:
        ToolError: it cannot be read, has no value, or is beyond a limit; ``where`` is the column.
    """
    if len(expression) > MAX_LENGTH:
        raise ToolError(
            f"the expression is too long: {len(expression):,} characters, and the limit is {MAX_LENGTH:,}",
            remedy="Compute parts of it in several calls",
        )
    return _Parser(expression).outcome()


def _tokens(expression: str) -> list[Token]:
    text = expression.translate(_SPELLINGS)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _error(f"{expression[at]!r} is not part of arithmetic", at)
        at = match.end()
        if match.lastgroup and match.lastgroup != "space":
            tokens.append(Token(match.lastgroup, match.group(), match.start(), at))
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _error(what: str, at: int, remedy: str = "") -> ToolError:
    return ToolError(what, where=f"column {at + 1}", remedy=remedy)


class _Parser:
    """One reading of one expression. From loose to tight: comparison, sum, product, sign, power, postfix, operand."""

    def __init__(self, expression: str) -> None:
        self.tokens = _tokens(expression)
        self.index = 0
        self.depth = 0
        self.percent_at = -1  # the index behind the last percent sign
        self.added_percent = False
        self.arithmetic = Arithmetic()

    def outcome(self) -> Outcome:
        if self.token.kind == "end":
            raise ToolError("the expression is empty", remedy="Give one such as 2 * (3 + 4)")
        value = self._comparison()
        token = self.token
        if token.kind == "end":
            return Outcome(value, self.added_percent)
        if token.text == ",":
            raise _error(
                "a comma only separates the arguments of a function", token.start, "Write 1000 instead of 1,000"
            )
        raise _error(f"an operator is missing before {token.shown}", token.start)

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def _take(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def _accept(self, *texts: str) -> Token | None:
        token = self.token
        return self._take() if token.text in texts and token.kind != "end" else None

    def _expect(self, text: str, opened: Token) -> None:
        if not self._accept(text):
            found = self.token
            what = "the expression ends" if found.kind == "end" else f"{found.shown} stands"
            raise _error(
                f"{what} where {text!r} is due, for the {opened.text!r} in column {opened.start + 1}", found.start
            )

    def _at(
        self,
        token: Token,
        operation: Callable[_Arguments, _Value],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Value:
        """Do an operation; where it fails, the error names the column of ``token``."""
        try:
            return operation(*arguments, **named)
        except ToolError as error:
            raise _error(error.what, token.start, error.remedy) from error
        except Overflow as error:
            raise _error(f"the result is too large: the limit is 10**{MAX_DIGITS:,}", token.start) from error
        except Underflow as error:
            raise _error(f"the result is too close to zero: the limit is 10**-{MAX_DIGITS:,}", token.start) from error
        except ArithmeticError as error:
            raise _error("the operation has no value here", token.start) from error

    def _comparison(self) -> Number | bool:
        left = self._sum()
        result: bool | None = None
        while token := self._accept(*_COMPARISONS):
            right = self._sum()
            order = self._at(token, self.arithmetic.compare, left, right)
            result = result is not False and _COMPARISONS[token.text](order)
            left = right
        return left if result is None else result

    def _sum(self) -> Number:
        value = self._product()
        percentages = self._is_percentage()
        while token := self._accept("+", "-"):
            right = self._product()
            # 1 + 15% is 1.15 in either reading.
            self.added_percent |= self._is_percentage() and not percentages and value != 1
            percentages &= self._is_percentage()
            operation = self.arithmetic.add if token.text == "+" else self.arithmetic.subtract
            value = self._at(token, operation, value, right)
        return value

    def _is_percentage(self) -> bool:
        """Whether what was just read is a percentage and nothing else."""
        return self.percent_at == self.index

    def _product(self) -> Number:
        value = self._signed()
        while token := self._accept("*", "/", "//", "%", "of"):
            right = self._signed()
            self.percent_at = -1
            value = self._at(token, self._operation(token.text), value, right)
        return value

    def _operation(self, text: str) -> Callable[[Number, Number], Number]:
        return {
            "*": self.arithmetic.multiply,
            "of": self.arithmetic.multiply,
            "/": self.arithmetic.divide,
            "//": self.arithmetic.floor_divide,
            "%": self.arithmetic.remainder,
        }[text]

    def _signed(self) -> Number:
        negative = False
        while token := self._accept("+", "-"):
            negative ^= token.text == "-"
        value = self._power()
        return self.arithmetic.negate(value) if negative else value

    def _power(self) -> Number:
        base = self._postfix()
        if token := self._accept("**", "^"):
            self._deepen(token)
            exponent = self._signed()
            self.depth -= 1
            self.percent_at = -1
            return self._at(token, self.arithmetic.power, base, exponent)
        return base

    def _postfix(self) -> Number:
        value = self._operand()
        while True:
            token = self.token
            if token.text == "!":
                self._take()
                value = self._at(token, functions.call, "factorial", self.arithmetic, [value])
            elif token.text == "%" and self._is_percent():
                self._take()
                value = self._at(token, self.arithmetic.divide, value, Fraction(100))
                self.percent_at = self.index
            else:
                return value

    def _is_percent(self) -> bool:
        """Whether the ``%`` that is next means hundredths (``15% * 80``) rather than a remainder (``17 % 5``)."""
        before, sign, after = self.tokens[self.index - 1 : self.index + 2]
        if after.text in ("+", "-"):
            touches_before, touches_after = before.end == sign.start, sign.end == after.start
            if touches_before == touches_after:
                raise _error(
                    f"'%' before {after.text!r} may mean a percentage or a remainder",
                    sign.start,
                    f"Write (15%) {after.text} 3 or 17 % ({after.text}3)",
                )
            return touches_before
        starts_operand = after.kind in ("number", "radix", "name") or after.text == "("
        return after.text == "of" or not starts_operand

    def _operand(self) -> Number:
        token = self._take()
        if token.kind == "number":
            return self._at(token, _number, token.text)
        if token.kind == "radix":
            return self._at(token, _radix, token.text)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            self._deepen(token)
            value = self._sum()
            self._expect(")", token)
            self.depth -= 1
            return value
        what = "the expression ends" if token.kind == "end" else f"{token.shown} stands"
        raise _error(f"{what} where a number is due", token.start)

    def _named(self, token: Token) -> Number:
        name = _ALIASES.get(token.text.lower(), token.text.lower())
        if name in functions.FUNCTIONS:
            opened = self.token
            if not self._accept("("):
                raise _error(f"{name} is a function: write {functions.FUNCTIONS[name].usage}", token.start)
            self._deepen(opened)
            arguments = self._arguments(opened)
            self.depth -= 1
            return self._at(token, functions.call, name, self.arithmetic, arguments)
        if name in functions.CONSTANTS:
            return functions.constant(name)
        raise _unknown(token)

    def _arguments(self, opened: Token) -> list[Number]:
        """The arguments up to the closing parenthesis; a list in brackets stands for its members."""
        arguments: list[Number] = []
        if self._accept(")"):
            return arguments
        bracket: Token | None = None
        while True:
            if bracket is None:
                bracket = self._accept("[")
            if self.token.text.startswith("00") and self.tokens[self.index - 1].text == ",":
                raise _error(
                    "a comma only separates arguments, it does not group thousands",
                    self.token.start,
                    "Write 1000 instead of 1,000",
                )
            arguments.append(self._sum())
            if bracket and self._accept("]"):
                bracket = None
            if not self._accept(","):
                break
        if bracket:
            self._expect("]", bracket)
        self._expect(")", opened)
        return arguments

    def _deepen(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _error(
                f"the expression nests too deeply: the limit is {MAX_DEPTH} levels",
                token.start,
                "Compute the inner part in a call of its own",
            )


def _unknown(token: Token) -> ToolError:
    known = [*functions.FUNCTIONS, *functions.CONSTANTS]
    near = difflib.get_close_matches(token.text[:40].lower(), known, 3)
    remedy = f"Did you mean {', '.join(near)}?" if near else f"Known are {', '.join(known)}"
    return _error(f"{token.shown} is neither a function nor a constant", token.start, remedy)


def _number(text: str) -> Number:
    mantissa, _, exponent = text.replace("_", "").lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = (whole + decimals).lstrip("0")
    if not digits:
        return Fraction(0)
    if len(exponent.lstrip("+-0")) > 9:
        raise too_small("the number") if exponent.startswith("-") else too_large("the number", math.inf)
    scale = int(exponent or 0) - len(decimals)
    if len(digits) + scale > MAX_DIGITS:
        raise too_large("the number", len(digits) + scale - 1)
    if len(digits) + scale < -MAX_DIGITS:
        raise too_small("the number")
    value = Fraction(integer(digits))
    return settled(value * Fraction(10) ** scale, "the number")


def _radix(text: str) -> Number:
    value = Fraction(int(text.replace("_", ""), 0))
    if value.numerator.bit_length() > MAX_BITS:
        raise too_large("the number", value.numerator.bit_length() * 0.30103)
    return value
