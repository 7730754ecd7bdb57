"""calc: exact where arithmetic is, right to many digits where it is not, and bounded before the work is done."""

from __future__ import annotations

import contextlib
import math
import time
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolkeel import ToolError
from toolkeel_basics.calc import calc
from toolkeel_basics.calculator.functions import CONSTANTS, FUNCTIONS
from toolkeel_basics.calculator.parser import compute

BOUND = 5.0  # seconds; ten times what the worst expression takes


def refused(expression: str) -> str:
    """The text of the refusal, which must come at once."""
    start = time.monotonic()
    with pytest.raises(ToolError) as caught:
        calc(expression)
    assert time.monotonic() - start < BOUND
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("1 + 1", "2"),
        ("0.1 + 0.2", "0.3"),
        ("0.1 + 0.2 == 0.3", "true"),
        ("1/3", "1/3 ≈ 0.33333333333333333333"),
        ("-1/3", "-1/3 ≈ -0.33333333333333333333"),
        ("1/3 + 1/3 + 1/3", "1"),
        ("9007199254740993 * 3", "27021597764222979"),
        ("2 + 3 * 4 ** 2 / 8 - -1", "9"),
        ("-2 ** 2", "-4"),
        ("2 ** -1", "0.5"),
        ("2 ** 3 ** 2", "512"),
        ("2 ^ 10", "1024"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7.5 % 2", "1.5"),
        ("5!", "120"),
        ("-3!", "-6"),
        ("2 ** 3!", "64"),
        ("0 ** 0", "1"),
        ("1_000 * 3", "3000"),
        ("0xff + 0b11 + 0o7", "265"),
        ("1.5e3", "1500"),
        ("1E-3", "0.001"),
        (".5 + 5.", "5.5"),
        ("2 × 3 ÷ 4 − 1", "0.5"),
        ("abs(-3) + floor(-1.5) + ceil(1.2) + trunc(-2.7)", "1"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2/3, 3)", "0.667"),
        ("round(1254, -2)", "1300"),
        ("round(12345.678, 9999)", "12345.678"),
        ("min(3, 1, 2) + max([4, 5], 6)", "7"),
        ("sum([1, 2, 3])", "6"),
        ("mean(1, 2, 4)", "7/3 ≈ 2.3333333333333333333"),
        ("gcd(12, 18) + lcm(4, 6, 10)", "66"),
        ("comb(49, 6)", "13983816"),
        ("perm(10, 3)", "720"),
        ("comb(3, 5)", "0"),
        ("pow(9, 9999999, 7)", "1"),
        ("pow(2, 10)", "1024"),
        ("sqrt(16) + sqrt(0.25)", "4.5"),
        ("8 ** (1/3)", "2"),
        ("27 ** (2/3)", "9"),
        ("root(-8, 3)", "-2"),
        ("root(2**5000, 5000)", "2"),
        ("log(1000)", "3"),
        ("log(8, 2) + log2(1/8)", "0"),
        ("log10(10**9999)", "9999"),
        ("sin(0) + ln(1) + asin(0) + acos(1) + atan(0)", "0"),
        ("exp(0) + cos(0)", "2"),
        ("9.11 > 9.9", "false"),
        ("1 < 2 < 3", "true"),
        ("1 < 3 < 2", "false"),
        ("1/3 != 0.3333", "true"),
        ("2 >= 2", "true"),
        ("1.05 ** 10", "1.62889462677744140625"),
        ("(1 + 0.05/12) ** 360", "≈ 4.4677443140061322124"),
        ("1/10**9999", "≈ 1e-9999"),
        ("radians(1e-9999)", "≈ 1.7453292519943295769e-10001"),
        ("sqrt(2)", "≈ 1.4142135623730950488"),
        ("sqrt(2) ** 2", "≈ 2"),
        ("sqrt(2) ** 2 - 2", "≈ 0"),
        ("sqrt(2) ** 2 == 2", "true"),
        ("sin(pi)", "≈ 0"),
        ("cos(pi / 2)", "≈ 0"),
        ("tan(pi / 4)", "≈ 1"),
        ("floor(sqrt(2) ** 2)", "2"),
        ("sin(10**50)", "≈ -0.78967249342931008271"),
        ("ln(1 + 10**-70)", "≈ 1e-70"),
        ("(1 + 10**-50) ** (10**50)", "≈ 2.7182818284590452354"),
        ("degrees(π) + radians(180) - pi", "≈ 180"),
        ("PI - pi", "≈ 0"),
    ],
)
def test_an_expression_has_this_answer(expression: str, answer: str) -> None:
    assert calc(expression) == answer


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("15% of 80", "12"),
        ("15% * 80", "12"),
        ("20% of 50% of 80", "8"),
        ("17 % 5", "2"),
        ("17%5", "2"),
        ("17%(2+3)", "2"),
        ("10% - 3", "-2.9"),
        ("50%%", "0.005"),
        ("100% - 15%", "0.85"),
        ("200 + 2 * 5%", "200.1"),
        ("200 * (1 + 15%)", "230"),
    ],
)
def test_a_percent_sign_is_a_hundredth_or_a_remainder_by_what_follows(expression: str, answer: str) -> None:
    assert calc(expression).splitlines()[0] == answer


def test_adding_a_percentage_says_what_it_means() -> None:
    assert calc("200 + 15%") == (
        "200.15\n(a percentage is a hundredth: 200 + 15% is 200.15; for 15% more write 200 * (1 + 15%))"
    )


@pytest.mark.parametrize("expression", ["2500 * (1 + 5%)", "(1 - 5%) * 3", "100% - 5%", "15% + 5%", "200 + (15%)"])
def test_a_percentage_that_can_be_read_in_one_way_only_gets_no_remark(expression: str) -> None:
    assert len(calc(expression).splitlines()) == 1


def test_a_percent_sign_that_may_mean_both_is_refused() -> None:
    assert "percentage or a remainder" in refused("10%-3")
    assert "percentage or a remainder" in refused("10 % -3")


def test_a_long_integer_is_written_whole_with_its_length() -> None:
    assert calc("factorial(1000)") == f"{math.factorial(1000)}\n(2,568 digits)"
    assert calc("10**9999") == f"1{'0' * 9999}\n(10,000 digits)"
    assert calc("9" * 9999).startswith("9" * 9999)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("9**9**9", "the power is too large: about 369,693,100 digits, and the limit is 10,000"),
        ("2**-10**9", "the power is too close to zero: the limit is 10**-10,000"),
        ("factorial(10**7)", "the factorial is too large: about 65,657,060 digits"),
        ("factorial(10**5000)", "the factorial is too large: more than 1,000,000,000,000 digits"),
        ("comb(10**6, 500000)", "the number of combinations is too large"),
        ("comb(10**400, 10**399)", "the number of combinations is too large"),
        ("perm(10**9, 10**8)", "the number of permutations is too large"),
        ("10**5000000", "the power is too large: about 5,000,001 digits"),
        ("10**10000", "the power is too large: about 10,001 digits"),
        ("9**9999999 % 7", "use pow(x, y, modulus)"),
        ("factorial(3000) * factorial(3000)", "the product is too large: about 18,262 digits"),
        ("(10**9999 + 1) * 10 + 1", "the product is too large"),
        ("1e999999999", "the number is too large: about 1,000,000,000 digits"),
        (f"1e{'9' * 5000}", "the number is too large: more than 1,000,000,000,000 digits"),
        ("1e-999999999", "the number is too close to zero"),
        ("0x" + "f" * 9000, "the number is too large"),
        ("exp(100000)", "the result is too large: the limit is 10**10,000"),
        ("exp(-100000)", "the result is too close to zero"),
        ("pow(7, 9**999, 9**999)", "at most 700 digits"),
        ("(1 + 10**-9000) ** (10**9000)", "the exponent is too large: the limit here is 10**500"),
        ("pi ** (10**16)", "the exponent of a rounded number is too large"),
        ("sin(10**100)", "an angle is too large"),
        ("sin(exp(100))", "a rounded angle is too large"),
        ("floor(exp(200))", "more than 54 digits has no known whole part"),
        ("round(pi, 100)", "fewer places"),
        ("root(2, 10**9)", "the degree of root is from 1 to 10,000"),
        ("round(1, 10**9)", "round takes at most 10,000 places"),
        ("(" * 50_000 + "1" + ")" * 50_000, "the expression is too long: 100,001 characters, and the limit is 10,000"),
        ("(" * 4_000 + "1" + ")" * 4_000, "nests too deeply: the limit is 100 levels"),
        ("2**" * 3_000 + "1", "nests too deeply"),
        ("abs(" * 1_900 + "1" + ")" * 1_900, "nests too deeply"),
    ],
)
def test_what_is_too_large_is_refused_at_once_and_says_so(expression: str, words: str) -> None:
    assert words.lower() in refused(expression).lower()


@pytest.mark.parametrize(
    "atom",
    [
        "3248!",
        "1/3247!",
        "7**11830",
        "(3**20000/7**11830)",
        "comb(30000,15000)",
        "asin(1/7**11830)",
        "tan(9e99)",
        "2**.37",
        "(1+10**-400)**(10**400)",
        "round(1/3**9999,9999)",
        "log(3**20000,3)",
        "pow(7,9**700,9**700)",
    ],
)
@pytest.mark.parametrize("operator", ["+", "*", "/", "//", "<"])
def test_a_long_chain_of_costly_operations_ends_within_the_budget(atom: str, operator: str) -> None:
    chain = operator.join([atom] * (10_000 // (len(atom) + len(operator))))
    start = time.monotonic()
    with contextlib.suppress(ToolError):
        calc(chain)
    assert time.monotonic() - start < BOUND


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "the expression is empty"),
        ("1 +", "column 4: the expression ends where a number is due"),
        ("(1 + 2", "the expression ends where ')' is due, for the '(' in column 1"),
        ("1 + )", "column 5: ')' stands where a number is due"),
        ("2(3)", "column 2: an operator is missing before '('"),
        ("2 pi", "an operator is missing before 'pi'"),
        ("$5", "column 1: '$' is not part of arithmetic"),
        ("1,000 + 2", "column 2: a comma only separates"),
        ("max(1,000, 2)", "does not group thousands"),
        ("foo(3)", "'foo' is neither a function nor a constant"),
        ("sine(3)", "Did you mean sin"),
        ("sqrt", "sqrt is a function: write sqrt(x)"),
        ("sqrt(1, 2)", "sqrt does not take 2 numbers: sqrt(x)"),
        ("sqrt()", "sqrt does not take 0 numbers"),
        ("1 / 0", "column 3: division by zero"),
        ("1 // 0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("0 ** -0.5", "division by zero"),
        ("1 / (sqrt(2) ** 2 - 2)", "division by zero"),
        ("(sqrt(2) ** 2 - 2) ** -1", "division by zero"),
        ("sqrt(-1)", "an even root of a negative number has no real value"),
        ("(-8) ** (1/3)", "use root(x, n)"),
        ("ln(0)", "a logarithm is defined for numbers above 0 only"),
        ("log(5, 1)", "no logarithm to the base 1"),
        ("asin(2)", "asin takes numbers from -1 to 1"),
        ("tan(pi / 2)", "tan has no value"),
        ("factorial(2.5)", "factorial takes whole numbers"),
        ("factorial(-1)", "from 0 up"),
        ("gcd(1.5)", "gcd takes whole numbers"),
        ("pow(2, -1, 5)", "an exponent from 0 up"),
        ("sum([1, 2)", "']' is due"),
        ("__import__('os')", "is not part of arithmetic"),
        ("x = 3", "is not part of arithmetic"),
        ("\x00", "is not part of arithmetic"),
    ],
)
def test_what_cannot_be_computed_says_where_and_why(expression: str, words: str) -> None:
    assert words.lower() in refused(expression).lower()


@pytest.mark.parametrize(
    ("expression", "digits"),
    [
        ("round(pi, 49)", "3.1415926535897932384626433832795028841971693993751"),
        ("round(e, 45)", "2.718281828459045235360287471352662497757247094"),
        ("round(sqrt(2), 49)", "1.4142135623730950488016887242096980785696718753769"),
        ("round(ln(2), 49)", "0.6931471805599453094172321214581765680755001343603"),
        ("round(sin(1), 49)", "0.8414709848078965066525023216302989996225630607984"),
        ("round(cos(1), 49)", "0.5403023058681397174009366074429766037323104206179"),
        ("round(atan(1/5), 49)", "0.1973955598498807583700497651947902934475851037879"),
        ("round(atan(2), 49)", "1.1071487177940905030170654601785370400700476454014"),
    ],
)
def test_rounded_functions_are_right_to_fifty_digits(expression: str, digits: str) -> None:
    assert calc(expression) == digits.rstrip("0")


Tree = tuple[str, Fraction | None]
"""An expression with its value; ``None`` where it divides by zero."""

literals = st.one_of(
    st.integers(0, 10**30).map(lambda number: (str(number), Fraction(number))),
    st.decimals(0, 10**6, places=5).map(lambda number: (format(number, "f"), Fraction(number))),
)


def _combined(parts: tuple[Tree, str, Tree]) -> Tree:
    (left, a), operator, (right, b) = parts
    text = f"({left}) {operator} ({right})"
    if a is None or b is None or (b == 0 and operator in ("/", "//", "%")):
        return text, None
    value: Any = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "//": lambda: Fraction(a // b),
        "%": lambda: a % b,
    }[operator]()
    return text, value


def _negated(tree: Tree) -> Tree:
    return f"-({tree[0]})", None if tree[1] is None else -tree[1]


trees = st.recursive(
    literals,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(_combined),
        inner.map(_negated),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=300)
@given(trees)
def test_the_four_operations_agree_with_fractions(tree: Tree) -> None:
    text, value = tree
    if value is None:
        assert "division by zero" in refused(text)
    else:
        assert compute(text).value == value


@settings(deadline=None)
@given(trees)
def test_the_answer_reads_back_as_the_value(tree: Tree) -> None:
    text, value = tree
    if value is None:
        return
    written = calc(text).splitlines()[0]
    exact, _, rounded = written.partition("≈ ")
    if exact:
        assert Fraction(exact.strip()) == value
    if rounded:
        assert abs(Fraction(rounded) - value) <= abs(value) * Fraction(1, 10**19)


@given(st.integers(-(10**20), 10**20), st.integers(-(10**9), 10**9).filter(bool))
def test_whole_numbers_divide_as_in_python(a: int, b: int) -> None:
    assert calc(f"({a}) // ({b})") == str(a // b)
    assert calc(f"({a}) % ({b})") == str(a % b)


@given(st.integers(-99, 99), st.integers(0, 60))
def test_whole_powers_agree_with_python(base: int, exponent: int) -> None:
    assert compute(f"({base}) ** {exponent}").value == base**exponent


@given(st.decimals(-(10**9), 10**9, places=6), st.integers(0, 5))
def test_rounding_takes_halves_away_from_zero(number: Decimal, places: int) -> None:
    expected = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    assert compute(f"round({number:f}, {places})").value == Fraction(expected)


@settings(deadline=None)
@given(st.floats(-1000, 1000, allow_subnormal=False).filter(lambda number: abs(number) > 1e-6))
def test_functions_agree_with_the_floats_of_the_library(number: float) -> None:
    def close(expression: str, expected: float) -> None:
        value = compute(expression).value
        assert float(value) == pytest.approx(expected, rel=1e-11, abs=1e-11)

    exact = format(Decimal(number), "f")
    close(f"sin({exact})", math.sin(number))
    close(f"cos({exact})", math.cos(number))
    close(f"atan({exact})", math.atan(number))
    close(f"sin({exact})**2 + cos({exact})**2", 1)
    close(f"ln(abs({exact}))", math.log(abs(number)))
    close(f"ln(exp({exact}))", number)
    close(f"sqrt(abs({exact}))", math.sqrt(abs(number)))
    close(f"asin(sin(atan({exact})))", math.atan(number))


SYNTAX = ("**", "//", "==", "!=", "9**9", "1e99", "0x", "%-", "of", "999999999")
pieces = st.sampled_from(
    [*"0123456789.+-*/%^!()[],<>=eE_\né ", *SYNTAX, *(f"{name}(" for name in FUNCTIONS), *CONSTANTS]
)


@settings(deadline=None, max_examples=500)
@given(st.one_of(st.lists(pieces, max_size=40).map("".join), st.text(max_size=60)))
@example("9**9**9**9")
@example("-" * 9_999 + "1")
@example("1" + "!" * 9_000)
@example("%" * 100)
@example("1" + "%" * 9_000)
def test_any_text_is_answered_or_refused_in_bounded_time(expression: str) -> None:
    start = time.monotonic()
    try:
        answer = calc(expression)
    except ToolError as error:
        answer = str(error)[:1_000]
    assert answer
    assert time.monotonic() - start < BOUND
