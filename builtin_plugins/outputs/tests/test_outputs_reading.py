"""`read_output`: head, tail, slice and all, by lines and bytes, within the limit and with the call that reads on."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel import ToolError

LINES = "".join(f"line {number}\n" for number in range(1, 1_001))


@pytest.fixture(scope="module")
def thousand(reader: Any) -> tuple[Any, str]:
    kept = reader()
    return kept, kept.keep(LINES.encode()).ref


def lines(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


@pytest.mark.requirement("C5")
def test_head_gives_the_first_hundred_lines_and_the_call_for_the_next(thousand: tuple[Any, str]) -> None:
    kept, ref = thousand
    answer = kept.read(ref)
    assert answer == (
        f'{lines(1, 100)}[Lines 1 to 100 of 1,000. Read on: read_output(ref="{ref}", mode="slice", start=101, end=200)]'
    )
    assert kept.read(**kept.following(answer)).startswith("line 101\n")


@pytest.mark.requirement("C5")
def test_tail_gives_the_last_lines_and_the_call_for_those_before(thousand: tuple[Any, str]) -> None:
    kept, ref = thousand
    answer = kept.read(ref, mode="tail", lines=3)
    assert answer.startswith(lines(998, 1_000) + "[Lines 998 to 1,000 of 1,000: the end. What comes before: ")
    assert kept.body(kept.read(**kept.following(answer))) == lines(995, 997)


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ({"start": 5, "end": 7}, 5, 7),
        ({"start": 1, "end": 1}, 1, 1),
        ({"start": 990}, 990, 1_000),
        ({"start": 999, "end": 5_000}, 999, 1_000),
        ({"start": 7, "lines": 2}, 7, 8),
        ({"end": 2}, 1, 2),
    ],
)
def test_slice_counts_lines_from_one_and_includes_the_last(
    thousand: tuple[Any, str], options: dict[str, int], first: int, last: int
) -> None:
    kept, ref = thousand
    answer = kept.read(ref, mode="slice", **options)
    assert kept.body(answer) == lines(first, last)
    assert f"[Lines {first:,} to {last:,} of 1,000" in answer


@pytest.mark.requirement("C5")
def test_slice_by_bytes_gives_whole_characters(reader: Any) -> None:
    kept = reader()
    ref = kept.keep("дом дом дом".encode()).ref
    answer = kept.read(ref, mode="slice", unit="bytes", start=3, end=8)  # inside о, inside д
    assert answer.startswith("ом \n[Bytes 2 to 7 of 20, in line 1. Read on: ")
    assert kept.read(**kept.following(answer)).startswith("дом дом\n[Bytes 7 to 20 of 20, in line 1: the end.]")
    assert kept.read(ref, mode="slice", unit="bytes", start=3, end=4).startswith("о\n[Bytes 2 to 4 of 20")


@pytest.mark.requirement("C5")
def test_all_gives_what_fits_and_else_says_what_to_use(reader: Any) -> None:
    kept = reader()
    small, large = kept.keep(b"x" * 80_000).ref, kept.keep(b"x" * 82_000).ref
    assert kept.read(small, mode="all") == "x" * 80_000 + "\n[1 line, 80,000 bytes: the whole output.]"
    with pytest.raises(ToolError, match=r'has 82,000 bytes; mode="all" gives at most 80,896\. Use mode="search"'):
        kept.read(large, mode="all")


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("mode", ["head", "tail", "all", "slice"])
def test_an_empty_output_says_that_it_is_empty(reader: Any, mode: str) -> None:
    kept = reader()
    assert kept.read(kept.keep(b"").ref, mode=mode) == "[0 lines, 0 bytes: the whole output.]"


@pytest.mark.requirement("C5")
def test_a_line_longer_than_an_answer_is_read_on_by_bytes(reader: Any) -> None:
    kept = reader(10_000)
    ref = kept.keep(b"short\n" + "щ".encode() * 10_000 + b"\nend\n").ref
    answer = kept.read(ref)
    assert kept.body(answer) == "short\n"
    answer = kept.read(**kept.following(answer))
    assert "[Stopped inside line 2, before byte 8,982 of 20,011. Read on: " in answer
    options = kept.following(answer)
    assert options["unit"] == "bytes"
    assert set(kept.body(kept.read(**options)).strip()) == {"щ"}


@pytest.mark.requirement("C5")
def test_tail_of_one_long_line_gives_its_end(reader: Any) -> None:
    kept = reader(10_000)
    answer = kept.read(kept.keep(b"a" * 50_000 + b"the end").ref, mode="tail")
    assert answer.startswith("a")
    assert "the end\n[The end, from byte 41,031 of 50,007, inside line 1. What comes before: " in answer
    assert kept.following(answer)["end"] == 41_031


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "slice", "start": 1_001}, "line 1,001 is behind the end: the output has 1,000 lines"),
        ({"mode": "slice", "start": 10**30}, "is behind the end"),
        ({"mode": "slice", "unit": "bytes", "start": 8_893}, "byte 8,893 is behind the end"),
        ({"mode": "slice", "start": 0}, "start counts lines from 1"),
        ({"mode": "slice", "start": -1, "unit": "bytes"}, "start counts bytes from 0"),
        ({"mode": "slice", "start": 5, "end": 4}, "end comes before start"),
        ({"mode": "slice", "end": 0}, "end comes before start"),
        ({"lines": 0}, "lines must be 1 or more"),
        ({"context": 21}, "context must be from 0 to 20"),
        ({"query": "x"}, 'query is for mode="search", not for "head"'),
        ({"mode": "search"}, 'mode="search" takes a query'),
        ({"mode": "search", "query": "x" * 501}, "query has more than 500 characters"),
        ({"mode": "search", "query": "(", "regex": True}, "query is nothing that RE2 can search for: missing )"),
        ({"mode": "search", "query": "(?=a)", "regex": True}, "RE2 has no look-around"),
    ],
)
def test_arguments_that_make_no_sense_say_what_would(
    thousand: tuple[Any, str], options: dict[str, Any], words: str
) -> None:
    kept, ref = thousand
    with pytest.raises(ToolError) as caught:
        kept.read(ref, **options)
    assert words in str(caught.value)


@pytest.mark.requirement("C5")
def test_binary_data_is_read_as_rows_of_hex(reader: Any) -> None:
    kept = reader()
    data = b"\x00" + random.Random(1).randbytes(99_999)
    ref = kept.keep(data).ref
    answer = kept.read(ref, lines=2)
    rows = answer.splitlines()
    assert rows[1].startswith("00000010  " + data[16:32].hex(" "))
    assert rows[2].startswith("[Bytes 0 to 32 of 100,000. Read on: ")
    assert kept.read(ref, mode="slice", start=2, end=2).startswith("00000010  ")
    assert kept.read(ref, mode="tail", lines=1).startswith(f"0001869{'0'}  {data[-16:].hex(' ')}")
    collected, answer = b"", kept.read(ref, mode="slice", unit="bytes")
    while True:
        collected += b"".join(bytes.fromhex(row[10:57]) for row in answer.splitlines()[:-1])
        following = kept.following(answer)
        if following is None:
            break
        answer = kept.read(**following)
    assert collected == data


# Properties --------------------------------------------------------------------------------------------------------

TEXTS = st.lists(
    st.sampled_from(["\n", "\n\n", "\r\n", "word ", "дом", "𝄞𝄞𝄞", "x" * 700, "щ" * 900, "[", "]", "\ufeff"]),
    max_size=40,
).map("".join)


@pytest.mark.requirement("C5")
@given(text=TEXTS, lines=st.sampled_from([1, 2, 7, 100]), by_bytes=st.booleans())
@settings(deadline=None, max_examples=200)
def test_reading_on_from_the_start_to_the_end_gives_the_whole(
    reader: Any, text: str, lines: int, by_bytes: bool
) -> None:
    kept = reader(2_500)
    data = text.encode()
    ref = kept.keep(data).ref
    collected = ""
    options: dict[str, Any] | None = {"ref": ref, "lines": lines}
    options |= {"mode": "slice", "unit": "bytes"} if by_bytes else {}
    for _ in range(1_000):
        answer = kept.read(**options)
        body = answer[: answer.rindex("[")]
        collected = take(collected, body, text)
        options = kept.following(answer)
        if options is None:
            break
    assert collected == text


def take(collected: str, body: str, text: str) -> str:
    """An answer ends the text with a newline where it had none; what comes next tells which it was."""
    longer = collected + body
    return longer if text.startswith(longer) else longer.removesuffix("\n")


@pytest.mark.requirement("C5")
@given(text=TEXTS, lines=st.sampled_from([1, 3, 100]))
@settings(deadline=None, max_examples=100)
def test_reading_back_from_the_end_gives_the_whole(reader: Any, text: str, lines: int) -> None:
    kept = reader(2_500)
    ref = kept.keep(text.encode()).ref
    answer = kept.read(ref, mode="tail", lines=lines)
    body = answer[: answer.rindex("[")]
    assert text.endswith((body, body.removesuffix("\n")))


NUMBERS = st.none() | st.integers(-3, 60) | st.integers(0, 10**20)


@pytest.mark.requirement("C5")
@given(
    data=st.binary(max_size=400) | TEXTS.map(str.encode),
    options=st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(["head", "tail", "slice", "search", "all"]),
            "lines": st.integers(-1, 50) | st.integers(0, 10**20),
            "start": NUMBERS,
            "end": NUMBERS,
            "unit": st.sampled_from(["lines", "bytes"]),
            "query": st.sampled_from(["", "o", "ДОМ", "x", ".*", "a*", "^", "$", "\n", "(", "\ud800", "[^a]", "\\C"])
            | st.text(max_size=5),
            "regex": st.booleans(),
            "context": st.integers(-1, 21),
        },
    ),
)
@settings(deadline=None, max_examples=600)
def test_any_arguments_on_any_bytes_are_answered_or_refused_in_words(
    reader: Any, data: bytes, options: dict[str, Any]
) -> None:
    kept = reader(2_500)
    ref = kept.keep(data).ref
    with contextlib.suppress(ToolError):
        answer = kept.read(ref, **options)  # which checks its size
        following = kept.following(answer)
        if following is not None:
            kept.read(**following)
