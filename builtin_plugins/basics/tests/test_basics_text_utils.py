"""text_utils: every operation, its inverse where it has one, and its time for the worst texts."""

from __future__ import annotations

import base64
import contextlib
import random
import re
import threading
import time
import typing
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel import Data, Text, ToolError
from toolkeel_basics.editing import normal
from toolkeel_basics.editing.clusters import clusters
from toolkeel_basics.text_utils import Operation, text_utils

BOUND = 10.0  # seconds; ten times what the slowest operation takes, and below what a square of the length would
OPERATIONS: tuple[str, ...] = typing.get_args(Operation)
words = st.text("ab é,.\n", max_size=60)


def told(operation: str, text: str, **options: Any) -> str:
    result = text_utils(operation, text, **options)
    assert isinstance(result, Text)
    return str(result.content)


def data(operation: str, text: str, **options: Any) -> dict[str, Any]:
    result = text_utils(operation, text, **options)
    assert isinstance(result, Data)
    assert isinstance(result.value, dict)
    return result.value


def refused(operation: str, text: str, **options: Any) -> str:
    with pytest.raises(ToolError) as caught:
        text_utils(operation, text, **options)
    return str(caught.value)


def test_count_tells_every_measure_of_a_text() -> None:
    assert data("count", "Strawberry é\n😀 x", other="r") == {
        "characters": 16,
        "characters_without_blanks": 13,
        "letters": 12,
        "words": 4,
        "lines": 2,
        "bytes": 20,
        "occurrences": 3,
    }
    assert data("count", "aaAa", other="AA", ignore_case=True)["occurrences"] == 2
    assert set(data("count", "").values()) == {0}


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\r\nb\r\n", 2), ("\n", 1)])
def test_a_line_break_ends_a_line(text: str, lines: int) -> None:
    assert data("count", text)["lines"] == lines


@pytest.mark.parametrize(
    ("operation", "text", "expected"),
    [
        ("upper", "straße", "STRASSE"),
        ("lower", "ÀÉ", "àé"),
        ("title", "don't STOP me-now", "Don't Stop Me-Now"),
        ("sentence", "HELLO there. next ONE!\nline (“yes.” no)", "Hello there. Next one!\nLine (“yes.” No)"),
        ("snake_case", "parseHTTPUrl2 my-name\nOtherLine", "parse_http_url2_my_name\nother_line"),
        ("camel_case", "parse_http_url", "parseHttpUrl"),
        ("pascal_case", "parse http-url", "ParseHttpUrl"),
        ("kebab_case", "XMLReader", "xml-reader"),
        ("constant_case", "maxSize", "MAX_SIZE"),
        ("slug", "  Crème brûlée’s: 2 × Größe!  ", "creme-brulees-2-grosse"),
        ("slug", "Привет, мир", "привет-мир"),
        ("trim", "\n\n  a  \n   b\t\n\n", "  a\n   b"),
        ("dedupe_lines", "a\nb\na\nA\n", "a\nb\nA\n"),
        ("sort_lines", "b\na\nC\n", "C\na\nb\n"),
        ("number_lines", "a\nb\n", "1: a\n2: b\n"),
        ("reverse_lines", "a\r\nb\r\nc", "c\nb\na"),
        ("reverse", "e\u0301a👨‍👩‍👧🇩🇪🇫🇷👍🏽", "👍🏽🇫🇷🇩🇪👨‍👩‍👧ae\u0301"),
        ("base64_encode", "é", "w6k="),
        ("base64_decode", "w6k=", "é"),
        ("base64_decode", " w6\nk ", "é"),
        ("base64_decode", "8J-YgA", "😀"),
        ("url_encode", "a b/é?&", "a%20b%2F%C3%A9%3F%26"),
        ("url_decode", "a%20b%2F%C3%A9+", "a b/é+"),
        ("normalize", "e\u0301", "é"),
    ],
)
def test_an_operation_has_this_result(operation: str, text: str, expected: str) -> None:
    assert told(operation, text) == expected


@pytest.mark.parametrize(
    ("operation", "text", "options", "expected"),
    [
        ("dedupe_lines", "a\nb\nA", {"ignore_case": True}, "a\nb"),
        ("sort_lines", "b\na\nC", {"ignore_case": True, "descending": True}, "C\nb\na"),
        ("sort_lines", "x10\nx9\nnone\nx-2.5", {"numeric": True}, "x-2.5\nx9\nx10\nnone"),
        ("sort_lines", "x10\nnone\nx9", {"numeric": True, "descending": True}, "x10\nx9\nnone"),
        ("sort_lines", "9" * 400 + "\n" + "8" * 401, {"numeric": True}, "9" * 400 + "\n" + "8" * 401),
        ("wrap", "aaa bbb cccccccccccccc dd", {"width": 7}, "aaa bbb\nccccccc\nccccccc\ndd"),
        ("truncate", "hello wonderful world", {"width": 16}, "hello wonderful…"),
        ("truncate", "abcd", {"width": 3}, "ab…"),
        ("truncate", "abc", {"width": 3}, "abc"),
        ("truncate", "ae\u0301e\u0301z", {"width": 3}, "ae\u0301…"),
        ("normalize", "ﬁ", {"form": "NFKC"}, "fi"),
        ("hash", "abc", {"algorithm": "md5"}, "900150983cd24fb0d6963f7d28e17f72"),
        ("hash", "abc", {"algorithm": "sha1"}, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("hash", "abc", {}, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("hash", "abc", {"algorithm": "crc32"}, "352441c2"),
        ("diff", "a\nb\nc\n", {"other": "a\nx\nc\n"}, "--- text\n+++ other\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c"),
        ("diff", "a", {"other": "a\n"}, "--- text\n+++ other\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a"),
        ("diff", "", {"other": "a\n"}, "--- text\n+++ other\n@@ -0,0 +1 @@\n+a"),
        ("diff", "a\r\n", {"other": "a\n"}, "The texts are equal."),
    ],
)
def test_options_change_the_result(operation: str, text: str, options: dict[str, Any], expected: str) -> None:
    assert told(operation, text, **options) == expected


@pytest.mark.parametrize(
    ("operation", "text", "found"),
    [
        (
            "extract_emails",
            "a@b.com, <c.d+e@f-g.co.uk>. z@ä.de mailto:q@r.org?x=1 no@no a@b.com, josé@example.com!",
            ["a@b.com", "c.d+e@f-g.co.uk", "z@ä.de", "q@r.org", "josé@example.com"],
        ),
        (
            "extract_urls",
            "See https://a.b/c_(d)?x=1#y, (http://x.y/z). www.foo.com! https://a.b/c_(d)?x=1#y <ftp://f.g/> “https://s.t”",
            ["https://a.b/c_(d)?x=1#y", "http://x.y/z", "www.foo.com", "ftp://f.g/", "https://s.t"],
        ),
        (
            "extract_numbers",
            "1,234.56 -5 x=-3e10 2024-03-05 abc12 .5 $7 10% 1,2 (42).",
            ["1,234.56", "-5", "-3e10", "2024", "03", "05", ".5", "7", "10", "1", "2", "42"],
        ),
    ],
)
def test_extraction_finds_what_a_reader_would(operation: str, text: str, found: list[str]) -> None:
    assert data(operation, text) == {"count": len(found), "found": found}


@pytest.mark.parametrize(
    ("operation", "text", "options", "words"),
    [
        ("base64_decode", "a*b", {}, "text is not base64: it holds '*'"),
        ("base64_decode", "a", {}, "its end is cut off"),
        ("base64_decode", "/9j/4AAQ", {}, "6 bytes that are not UTF-8 text: ff d8 ff"),
        ("url_decode", "%ff", {}, "the percent forms are not UTF-8"),
        ("wrap", "a", {"width": 0}, "it is from 1 to"),
        ("truncate", "a", {"width": -5}, "it is from 1 to"),
        ("normalize", "a" + "\u0316\u0300" * 60, {}, "over 100 combining marks in a row"),
        ("slug", "a" * 10_001, {}, "the limit is 10,000"),
        ("count", "a" * 1_000_001, {}, "the limit is 1,000,000"),
        ("count", "a\udc00", {}, "half a surrogate pair (U+DC00) as character 2"),
        ("diff", "a", {"other": "\ud800"}, "other holds half a surrogate pair"),
        ("diff", "\n" * 50_001, {"other": "a"}, "the limit for diff is 50,000"),
    ],
)
def test_what_cannot_be_done_says_why(operation: str, text: str, options: dict[str, Any], words: str) -> None:
    assert words in refused(operation, text, **options)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from([*"aéeﷺ한각漢", "\u0301", "\u0316", "\u1161", "\u11a8", "\u1100", "\u09c7", "\u09be"]),
        max_size=60,
    ),
    st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]),
)
def test_text_normalized_in_pieces_is_text_normalized_whole(parts: list[str], form: typing.Any) -> None:
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "_PIECE", 3)
        assert normal.normalized(text, form) == unicodedata.normalize(form, text)


def test_a_long_text_is_normalized_in_steps_that_other_threads_run_between() -> None:
    pauses: list[float] = []
    done = threading.Event()

    def beat() -> None:
        last = time.monotonic()
        while not done.is_set():
            done.wait(0.005)
            pauses.append(time.monotonic() - last)
            last = time.monotonic()

    beating = threading.Thread(target=beat)
    beating.start()
    told("normalize", "ﷺ" * 1_000_000, form="NFKC")
    done.set()
    beating.join()
    assert len(pauses) > 5


def patched(text: str, diff: str) -> str:
    """The text with a unified diff applied."""
    old, new = text.split("\n"), []
    at = 0
    lines = diff.split("\n")[2:]
    for line in lines:
        hunk = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+.* @@", line)
        if hunk:
            start = int(hunk[1]) - (hunk[2] != "0")
            new += old[at:start]
            at = start
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [line[1:]] if line.startswith(" ") else []
            at += 1
    return "\n".join([*new, *old[at:]])


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from("abcdef"), max_size=40), st.lists(st.sampled_from("abcdef"), max_size=40))
def test_a_diff_leads_from_the_one_text_to_the_other(before: list[str], after: list[str]) -> None:
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    diff = told("diff", old, other=new)
    assert (old if diff == "The texts are equal." else patched(old, diff)) == new


@given(st.text())
def test_codes_read_back_as_the_text(text: str) -> None:
    assert told("base64_decode", told("base64_encode", text)) == text
    assert told("base64_encode", text) == base64.b64encode(text.encode()).decode()
    assert told("url_decode", told("url_encode", text)) == text


@given(st.text(), st.integers(1, 20))
def test_wrapped_lines_are_short_and_keep_every_word(text: str, width: int) -> None:
    wrapped = told("wrap", text, width=width)
    assert all(len(line) <= width for line in wrapped.split("\n"))
    assert "".join(wrapped.split()) == "".join(text.split())


@given(st.text(), st.integers(1, 20))
def test_truncated_text_is_short_and_a_beginning(text: str, width: int) -> None:
    truncated = told("truncate", text, width=width)
    assert len(clusters(truncated)) <= width
    assert text.startswith(truncated.removesuffix("…")) or truncated == text


@given(st.text())
def test_clusters_are_the_text_in_pieces(text: str) -> None:
    assert "".join(clusters(text)) == text
    assert sorted(told("reverse", text)) == sorted(text)


@given(words)
def test_lines_are_sorted_deduplicated_and_turned_as_lists_are(text: str) -> None:
    lines = text.split("\n")
    end = [""] if lines[-1] == "" and len(lines) > 1 else []
    body = lines[:-1] if end else lines
    assert told("sort_lines", text).split("\n") == sorted(body) + end
    assert told("reverse_lines", text).split("\n") == body[::-1] + end
    assert told("dedupe_lines", text).split("\n") == list(dict.fromkeys(body)) + end


LENGTH = 100_000
WORST = {
    "letters": "a" * LENGTH,
    "blanks": " " * LENGTH,
    "breaks": "\n" * LENGTH,
    "short lines": "a\n" * (LENGTH // 2),
    "marks": "a" + "\u0301" * (LENGTH - 1),
    "marks within the limit": ("a" + "\u0316\u0300" * 49) * (LENGTH // 99),
    "joined emoji": "👍\u200d" * (LENGTH // 2),
    "expanding ligatures": "\ufdfa" * LENGTH,
    "digits": "1" * LENGTH,
    "numbers": "1," * (LENGTH // 2),
    "exponents": "1e" * (LENGTH // 2),
    "signs": "-" * LENGTH,
    "ats": "a@" * (LENGTH // 2),
    "domains": "a@b." * (LENGTH // 4),
    "schemes": "http://" * (LENGTH // 7),
    "closing brackets": "http://a" + ")" * (LENGTH - 8),
    "capitals": "Aa" * (LENGTH // 2),
    "apostrophes": "a'" * (LENGTH // 2),
    "percents": "%" * LENGTH,
    "full stops": ". " * (LENGTH // 2),
}


@pytest.mark.parametrize("kind", WORST)
def test_long_texts_of_the_worst_kinds_take_bounded_time(kind: str) -> None:
    text = WORST[kind]
    options: dict[str, dict[str, Any]] = {
        "wrap": {"width": 7},
        "truncate": {"width": LENGTH * 9 // 10},
        "diff": {"other": text[::-1]},
        "sort_lines": {"numeric": True},
        "normalize": {"form": "NFKD"},
    }
    for operation in OPERATIONS:
        start = time.monotonic()
        with contextlib.suppress(ToolError):
            text_utils(operation, text, **options.get(operation, {}))
        assert time.monotonic() - start < BOUND, operation


@pytest.mark.parametrize("kind", ["alternating", "few lines", "shuffled"])
def test_texts_that_are_hard_to_compare_are_refused_in_bounded_time(kind: str) -> None:
    chance = random.Random(1)
    if kind == "alternating":
        lines = [f"l{index}" if index % 2 else f"x{index % 120}" for index in range(20_000)]
        others = [line.replace("l", "m") for line in lines]
    elif kind == "few lines":
        lines, others = ([str(chance.randrange(150)) for _ in range(50_000)] for _ in range(2))
    else:
        lines = [str(index) for index in range(50_000)]
        others = chance.sample(lines, len(lines))
    start = time.monotonic()
    try:
        answer = told("diff", "\n".join(lines), other="\n".join(others))
    except ToolError as error:
        answer = str(error)
    assert answer.startswith(("--- text", "the texts are too long and too different"))
    assert time.monotonic() - start < BOUND


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(OPERATIONS), st.text(max_size=80), st.text(max_size=20), st.integers(-2, 30), st.booleans())
def test_any_arguments_are_answered_or_refused(operation: str, text: str, other: str, width: int, switch: bool) -> None:
    try:
        result: object = text_utils(
            operation, text, other=other, width=width, ignore_case=switch, numeric=switch, descending=switch
        )
    except ToolError as error:
        result = str(error)
    assert result
