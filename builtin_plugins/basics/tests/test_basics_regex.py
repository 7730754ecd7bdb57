"""regex: every operation, with offsets that count characters, in linear time and with plain refusals."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel import ToolError
from toolkeel_basics import linear_regex
from toolkeel_basics.regex import regex

BOUND = 30.0  # seconds; the limits of one search and of all searches together, with room for a busy machine


def answer(operation: str, pattern: str, text: str, **options: Any) -> dict[str, Any]:
    value = regex(operation, pattern, text, **options).value
    assert isinstance(value, dict)
    return value


def refused(operation: str, pattern: str, text: str = "", **options: Any) -> str:
    with pytest.raises(ToolError) as caught:
        regex(operation, pattern, text, **options)
    return str(caught.value)


def test_findall_gives_texts_or_the_groups_of_each_match() -> None:
    assert answer("findall", r"\d+", "a1 b22")["matches"] == ["1", "22"]
    assert answer("findall", r"(\w)\d", "a1 b2")["matches"] == ["a", "b"]
    assert answer("findall", r"(\w)(\d)(x)?", "a1 b2x")["matches"] == [("a", "1", None), ("b", "2", "x")]


def test_match_all_counts_characters_and_lines_in_any_script() -> None:
    text = "é=1\nключ=2\n😀=3"
    told = answer("match_all", r"(?P<key>[^\s=]+)=(?P<value>\d)", text)
    assert [text[match["start"] : match["end"]] for match in told["matches"]] == ["é=1", "ключ=2", "😀=3"]
    assert [match["line"] for match in told["matches"]] == [1, 2, 3]
    assert told["matches"][1]["named"] == {"key": "ключ", "value": "2"}


def test_search_gives_the_first_match_or_says_that_there_is_none() -> None:
    assert answer("search", "b(x)?", "äbc") == {
        "found": True, "match": "b", "start": 1, "end": 2, "line": 1, "groups": (None,),
    }  # fmt: skip
    assert answer("search", "z", "abc") == {"found": False}


def test_fullmatch_says_whether_the_whole_text_matches() -> None:
    assert answer("fullmatch", r"(\d{4})-(\d\d)", "2024-05") == {"matches": True, "groups": ("2024", "05")}
    assert answer("fullmatch", r"\d+", "2024-05") == {"matches": False}


@pytest.mark.parametrize(
    ("pattern", "text", "replacement", "expected"),
    [
        (r"(\w+)@(\w+)", "a@b c@d", r"\2 at \1", "b at a d at c"),
        (r"(?P<x>é)", "éa", r"[\g<x>|\0|\g<1>]", "[é|é|é]a"),
        ("a", "aba", r"é\n\t\\", "é\n\t\\bé\n\t\\"),
        ("(a)|b", "ab", r"<\1>", "<a><>"),
        ("", "ab", "-", "-a-b-"),
        ("x", "abc", "y", "abc"),
        (r"(\d)", "1", r"\10", ""),
    ],
)
def test_replace_puts_groups_into_the_new_text(pattern: str, text: str, replacement: str, expected: str) -> None:
    if expected == "":
        assert "there is no group '10'" in refused("replace", pattern, text, replacement=replacement)
    else:
        assert answer("replace", pattern, text, replacement=replacement)["text"] == expected


def test_replace_counts_and_stops_at_the_limit() -> None:
    assert answer("replace", "a", "aaa", replacement="b") == {"replacements": 3, "text": "bbb"}
    assert answer("replace", "a", "aaa", replacement="b", limit=2) == {"replacements": 2, "text": "bba"}


def test_split_cuts_at_matches_that_are_not_empty() -> None:
    assert answer("split", r",\s*", "a, b,c")["pieces"] == ["a", "b", "c"]
    assert answer("split", ",", "a,b,c", limit=1)["pieces"] == ["a", "b,c"]
    assert answer("split", "x*", "abc")["pieces"] == ["abc"]


@pytest.mark.parametrize(
    ("pattern", "text", "flags", "expected"),
    [
        ("a.b", "a.b axb", ["literal"], ["a.b"]),
        ("^b$", "a\nb\nc", ["multiline"], ["b"]),
        ("^b$", "a\nb\nc", [], []),
        ("a.b", "a\nb", ["dot_all"], ["a\nb"]),
        ("a.b", "a\nb", [], []),
        ("É", "éÉ", ["ignore_case"], ["é", "É"]),
        ("^a|b$", "a\nB", ["multiline", "ignore_case"], ["a", "B"]),
    ],
)
def test_flags_change_what_matches(pattern: str, text: str, flags: list[str], expected: list[str]) -> None:
    assert answer("findall", pattern, text, flags=flags)["matches"] == expected


def test_a_list_that_was_cut_says_so() -> None:
    told = answer("findall", "a", "aaa", limit=2)
    assert told["count"] == 2
    assert "more" in told
    assert "more" not in answer("findall", "a", "aa", limit=2)
    assert answer("findall", "a", "a" * 500)["count"] == 100


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a(?=b)", "column 2: '(?=' is look-ahead"),
        ("a(?!b)", "is look-ahead"),
        ("(?<=a)b", "is look-behind"),
        ("(?<!a)b", "is look-behind"),
        (r"(a)\1", "column 4: '\\\\1' is a back-reference"),
        ("(?P<a>x)(?P=a)", "column 9: '(?P=' is a back-reference"),
        (r"(?P<n>a)\k<n>", "is a back-reference"),
        ("(?>a)", "is an atomic group"),
        ("a++", "Possessive quantifiers are not supported"),
        ("(a", "column 1: the pattern is not valid: missing ): (a"),
        ("[a", "missing ]"),
        ("x*a|*", "no argument for repetition operator"),
        (r"a\Z", r"Write \z for the end of the text"),
        (r"\u00e9", "by its number"),
        (r"\p{Foo}", "invalid character class range"),
        ("a{1001}", "invalid repetition size"),
        (r"(\p{L}{1,50}){1,10}", "too large once its repetitions are written out"),
        ("a" * 6_000, "the limit is 5,000"),
        ("\ud800", "half a surrogate pair (U+D800) as character 1"),
    ],
)
def test_a_pattern_that_is_not_supported_or_not_valid_says_why(pattern: str, words: str) -> None:
    assert words in refused("findall", pattern)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replacement": r"\1"}, "there is no group '1': the pattern has 0 groups"),
        ({"replacement": r"\g<x>"}, "there is no group 'x'"),
        ({"replacement": r"\q"}, r"replacement, column 1: \q means nothing"),
        ({"replacement": "ab\\"}, "column 3"),
        ({"limit": 0}, "is at least 1"),
    ],
)
def test_a_wrong_replacement_or_limit_says_why(options: dict[str, Any], words: str) -> None:
    assert words in refused("replace", "a", "a", **options)
    assert "at most 10,000" in refused("findall", "a", "a", limit=10_001)


def test_texts_beyond_the_limits_are_refused() -> None:
    assert "the limit is 1,000,000" in refused("findall", "a", "a" * 1_000_001)
    assert "the new text is too long" in refused("replace", "a", "a" * 100_000, replacement="b" * 100)
    assert "half a surrogate pair" in refused("findall", "a", "ab\ud800")


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+b", r"(a*)*b", r"(\w+\s?)*X", r"(.*)(.*)(.*)=", r"\p{L}+"])
def test_patterns_that_backtracking_engines_choke_on_take_a_moment(pattern: str) -> None:
    start = time.monotonic()
    regex("findall", pattern, "a" * (150_000 if "p{L}" in pattern else 1_000_000))
    assert time.monotonic() - start < BOUND


def test_a_pattern_with_too_many_states_for_the_text_is_refused_before_the_search() -> None:
    start = time.monotonic()
    assert "is too much work" in refused("findall", "((((a?){10}){10}){10})b", "a" * 1_000_000)
    assert "is too much work" in refused("findall", "(a?)" * 400, "a" * 1_000_000)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("operation", "pattern", "replacement"),
    [
        ("replace", "", "\\0\\0b" * 1_000),
        ("replace", "(?P<x>a)", "\\1" * 400_000),
        ("findall", r"a[^b]*?c|a", ""),
        ("replace", r"(?:.|\n)*x|a", ""),
        ("split", "", ""),
        ("search", r"(?:a|aa)*(?:a?){90}b", ""),
    ],
)
def test_a_call_with_very_many_or_far_looking_matches_ends_within_two_seconds_of_a_core(
    operation: str, pattern: str, replacement: str
) -> None:
    start = time.thread_time()
    try:
        regex(operation, pattern, "a" * 1_000_000, replacement=replacement)  # type: ignore[arg-type]
    except ToolError as error:
        assert "took longer than 2 s" in str(error) or "too" in str(error)  # noqa: PT017
    assert time.thread_time() - start < 2 * 2  # a core that others use too counts up to twice


def test_matches_that_each_look_far_ahead_end_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_regex, "TIME_LIMIT", 0.5)
    start = time.monotonic()
    assert "searching took longer than 0.5 s" in refused("replace", "a[^b]*b|a", "a" * 300_000, replacement="")
    assert time.monotonic() - start < 10


atoms = st.sampled_from(["a", "b", ".", r"\d", "[ab]", "[^a]", "(a)", "(b|1)", "a?", "b*", "(?:ab)+", "1{1,2}"])
patterns = st.lists(atoms, min_size=1, max_size=5).map("".join)
texts = st.text("ab1 ", max_size=30)


@settings(deadline=None, max_examples=300)
@given(patterns, texts)
def test_searches_agree_with_the_library_that_backtracks(pattern: str, text: str) -> None:
    ours, theirs = answer("search", pattern, text), re.search(pattern, text)
    assert ours["found"] == (theirs is not None)
    if theirs:
        assert (ours["match"], ours["start"]) == (theirs.group(), theirs.start())
    assert answer("fullmatch", pattern, text)["matches"] == (re.fullmatch(pattern, text) is not None)


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=20).filter(bool))
def test_a_literal_pattern_replaces_and_splits_as_strings_do(text: str, part: str) -> None:
    told = answer("replace", part, text, replacement="<>", flags=["literal"])
    assert told["text"] == text.replace(part, "<>")
    assert answer("split", part, text, flags=["literal"])["pieces"] == text.split(part)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(["findall", "match_all", "search", "fullmatch", "replace", "split"]),
    st.one_of(st.text(max_size=15), st.text("ab()[]{}|*+?\\.^$,0123<>P=!:-", max_size=20)),
    st.text(max_size=50),
    st.one_of(st.text(max_size=10), st.text("\\g<1>0a", max_size=8)),
)
def test_any_arguments_are_answered_or_refused(operation: str, pattern: str, text: str, replacement: str) -> None:
    try:
        result = regex(operation, pattern, text, replacement=replacement).value
    except ToolError as error:
        result = str(error)
    assert result
