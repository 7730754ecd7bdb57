"""json_transform: JMESPath as its library has it, with errors that place themselves and work that ends."""

from __future__ import annotations

import json
import time
from typing import Any

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel import Data, Parts, Text, ToolError
from toolkeel_basics.json_transform import json_transform

BOUND = 20.0  # seconds; many times what a query of a million steps takes
ORDERS = {
    "orders": [
        {"id": 1, "total": 150, "status": "open", "tags": ["x"]},
        {"id": 2, "total": 50.5, "status": "open", "tags": []},
        {"id": 3, "total": 300, "status": "done", "tags": ["x", "y"]},
    ]
}


def answer(data: object, query: str) -> Any:
    result = json_transform(data, query)
    if isinstance(result, Parts):
        [first, _] = result.items
        assert isinstance(first, Data)
        return first.value
    return result.value


def hint(data: object, query: str) -> str:
    result = json_transform(data, query)
    assert isinstance(result, Parts)
    [_, second] = result.items
    assert isinstance(second, Text)
    return str(second.content)


def refused(data: object, query: str) -> str:
    start = time.monotonic()
    with pytest.raises(ToolError) as caught:
        json_transform(data, query)
    assert time.monotonic() - start < BOUND
    return str(caught.value)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("orders[?total > `100` && status == 'open'].{id: id, sum: total}", [{"id": 1, "sum": 150}]),
        ("length(orders)", 3),
        ("sum(orders[].total)", 500.5),
        ("sort_by(orders, &total)[-1].id", 3),
        ("orders[*].[id, status]", [[1, "open"], [2, "open"], [3, "done"]]),
        ("orders[?contains(tags, 'x')] | [0].id", 1),
        ("orders[?tags == `[]`].id", [2]),
        ("orders[?tags != `[]`].id", [1, 3]),
        ("orders[].tags[]", ["x", "x", "y"]),
        ("join(',', orders[*].status)", "open,open,done"),
        ("to_string(orders[1].tags)", "[]"),
        ("@", ORDERS),
    ],
)
def test_a_query_has_this_result(query: str, expected: object) -> None:
    assert answer(ORDERS, query) == expected
    assert answer(json.dumps(ORDERS), query) == expected


def test_json_lines_are_taken_as_an_array() -> None:
    assert answer('{"n": 1}\n\n{"n": 2}\n', "sum([].n)") == 3


def test_integers_beyond_a_float_stay_exact() -> None:
    assert answer('{"id": 9007199254740993123}', "id") == 9007199254740993123


def test_a_query_that_finds_nothing_says_what_the_data_looks_like() -> None:
    assert answer(ORDERS, "oders") is None
    assert 'an object with the keys "orders"' in hint(ORDERS, "oders")
    assert 'an array of 3 items; the first has the keys "id", "total"' in hint(ORDERS["orders"], "id")
    assert '"k19" and 5 more' in hint({f"k{index}": index for index in range(25)}, "x")


def test_text_in_double_quotes_is_pointed_out_where_nothing_was_found() -> None:
    assert answer(ORDERS, 'orders[?status == "open"]') == []
    assert "text is written '…'" in hint(ORDERS, 'orders[?status == "open"]')


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "the query is empty"),
        ("orders[", "column 8: the query is not complete"),
        ("orders[?total >", "column 16: the query is not complete"),
        ("foo.", "column 5: the query is not complete"),
        ("{a: b", "column 6: the query is not complete"),
        ("foo bar", "column 5: 'bar' does not belong here"),
        ("$.orders", "column 1: Unknown token $. This is JMESPath, not JSONPath"),
        ("orders[?status = 'open']", "column 16: Unknown token '='"),
        ("orders[?total > 100]", "A number is written in backticks: `1`"),
        ("a-b", "a name with special characters"),
        ("'unclosed", "column 1: Unclosed ' delimiter"),
        ("lenght(orders)", "there is no function lenght(). Did you mean length?"),
        ("xyzzy(orders)", "Known are abs, avg"),
        ("length()", "Expected 1 argument for function length(), received 0"),
        ("length(`5`)", "length() takes string or array or object and got number: 5"),
        ("sum(orders)", "sum() takes array-number and got object: {'id': 1"),
        ("orders[?total < 'a']", "compares values of different types"),
        ("orders[::0]", "slice step cannot be zero"),
        ("&orders", "holds a value that is not JSON"),
        ("sum(`[1e308, 1e308]`)", "a number that JSON cannot express"),
        ("orders[" + "9" * 5_000 + "]", "is not valid JMESPath"),
        ("a" * 20_000, "the query is too long: 20,000 characters"),
        ("(" * 3_000, "nests too deeply"),
        ("!" * 9_000 + "@", "nests too deeply"),
        ("@|" * 4_999 + "@", "nests too deeply"),
        ("[" * 4_000 + "@" + "]" * 4_000, "nests too deeply"),
    ],
)
def test_a_query_that_cannot_be_answered_says_where_and_why(query: str, words: str) -> None:
    assert words in refused(ORDERS, query)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('{"a": 1', "data, line 1, column 8: data is not valid JSON"),
        ('{"a": 1}\nx', "line 2, column 1"),
        ("", "data is not valid JSON"),
        ("NaN", "data holds NaN"),
        ("9" * 5_000, "an integer of thousands of digits"),
        ("[1e999]", "data holds a number that JSON cannot express"),
        ("[" * 100_000, "data nests too deeply"),
        ("[" * 500 + "]" * 500, "the limit is 200 levels"),
        ("[" + "1," * 1_500_000 + "1]", "the limit is 2,000,000"),
        ([0] * 2_000_000, "data is too large"),
        ("\ud800", "half a surrogate pair"),
        ([{1: 2}], "a key that is not text"),
        ([(1, 2)], "not JSON (its type is tuple)"),
        (float("nan"), "a number that JSON cannot express"),
    ],
)
def test_data_that_is_not_json_or_too_large_says_so(data: object, words: str) -> None:
    assert words in refused(data, "@")


HUNDRED = json.dumps(list(range(100)), separators=(",", ":"))


@pytest.mark.parametrize(
    ("data", "query"),
    [
        ({"a": 1}, "|".join(["[@,@]"] * 40)),
        ([1] * 1_000, "|".join(["[@,@,@,@][]"] * 30)),
        (["ab" * 100] * 100, "|".join(["[join('',@),join('',@),join('',@)]"] * 30)),
        ({"a": 1}, "|".join(["[@,@]"] * 30) + "|to_string(@)"),
        ([1], f"({'|'.join(['[@,@]'] * 40)}) == ({'|'.join(['[@,@]'] * 40)})"),
        ([1], f"contains({'|'.join(['[@,@]'] * 40)}, `2`)"),
        (["x" * 500_000, [0] * 1_000_000], "join([0], [1][*].to_string(@))"),
        ([1], "".join(["map(&"] * 5) + "@" + f", `{HUNDRED}`)" * 5),
    ],
)
def test_a_query_that_multiplies_its_own_results_is_ended(data: object, query: str) -> None:
    assert "too large" in (said := refused(data, query)) or "too much work" in said


NUMBERS = list(range(999_999))


@pytest.mark.parametrize(
    ("data", "query"),
    [
        ("1\n" * 900_000, "length(@)"),
        ("1\n" * 999_999 + "x", "length(@)"),
        ("{}\n" * 660_000, "@"),
        (NUMBERS[:100_000], "[*].[@,@,@,@,@,@,@,@,@,@,@,@]"),
        (NUMBERS[:100_000], "[*].{a:@,b:@,c:@,d:@,e:@,f:@,g:@,h:@}"),
        (NUMBERS, "[*].to_string(@)"),
        (NUMBERS, "max_by(@, &@)"),
        (NUMBERS, "map(&@, @)"),
        (NUMBERS, "[?@ > `5`]"),
        (NUMBERS, f"[{','.join(['sort(@)'] * 100)}]"),
        (NUMBERS, f"[{','.join(['sum(@)'] * 700)}]"),
    ],
    ids=lambda value: value[:30].replace("\n", " ") if isinstance(value, str) else "list",
)
def test_a_call_on_very_many_values_ends_within_two_seconds_of_a_core(data: object, query: str) -> None:
    start = time.thread_time()
    try:
        json_transform(data, query)
    except ToolError as error:
        assert "too much work" in str(error) or "not valid JSON" in str(error)  # noqa: PT017
    assert time.thread_time() - start < 2 * 2  # a core that others use too counts up to twice


def test_json_lines_are_cut_at_newlines_alone() -> None:
    assert answer('{"a": "x\u2028y"}\r\n\n{"a": "\x85"}\n', "[].a") == ["x\u2028y", "\x85"]


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.floats(-9, 9), st.text("ab", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=20,
)
STEPS = """
a; b; [0]; [-1]; [*]; []; [?a]; [?@ == `1`]; [?a != b]; *; {x: a, y: @}; [a, b]; @; length(@); keys(@); sort(@);
to_string(@); type(@); not_null(a, b); [1:]; [::-1]; a || b
"""
steps = st.sampled_from([step.strip() for step in STEPS.split(";")])


@settings(deadline=None, max_examples=400)
@given(json_values.filter(lambda value: not isinstance(value, str)), st.lists(steps, min_size=1, max_size=4))
def test_results_agree_with_the_library(data: object, parts: list[str]) -> None:
    query = " | ".join(parts)
    try:
        expected = jmespath.search(query, data)
    except (jmespath.exceptions.JMESPathError, TypeError):
        refused(data, query)
    else:
        assert answer(data, query) == expected


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.text(max_size=20), st.text("ab.[]*?&|!@()'`{}:,<>= 01\"-", max_size=25)), json_values)
@pytest.mark.filterwarnings("ignore:deprecated string literal syntax")
def test_any_query_is_answered_or_refused(query: str, data: object) -> None:
    try:
        result: object = json_transform(data, query)
    except ToolError as error:
        result = str(error)
    assert result
