"""Looking at large bytes: lines, counts and characters agree with what Python says of the whole."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel_outputs import content as content_module
from toolkeel_outputs import lines as lines_module
from toolkeel_outputs.content import Content
from toolkeel_outputs.lines import LineIndex

PIECES = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"abc", "дом".encode(), "𝄞".encode(), b"\xff", b"\x80"]), max_size=60
)


def made(kind: str, data: bytes) -> Content:
    if kind == "part of bytes":
        return Content(memoryview(b"\n" + data + b"\n")[1 : 1 + len(data)])
    return Content(
        {"bytes": data, "view of bytes": memoryview(data), "writable bytes": memoryview(bytearray(data))}[kind]
    )


@given(pieces=PIECES)
@settings(deadline=None, max_examples=150)
@pytest.mark.parametrize("kind", ["bytes", "view of bytes", "part of bytes", "writable bytes"])
def test_outputs_lines_start_where_python_splits_them(kind: str, pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    content = made(kind, data)
    lines = data.split(b"\n")
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    with pytest.MonkeyPatch.context() as patch:  # small steps, so that small data has many of them
        patch.setattr(content_module, "STEP", 8)
        patch.setattr(lines_module, "BLOCK", 16)
        patch.setattr(lines_module, "_FINE", 4)
        index = LineIndex(content)
        assert index.count == data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
        for number in range(index.count):
            assert index.start_of(number) == starts[number]
        assert index.start_of(index.count) == len(data)
        for position in range(len(data)):
            assert index.line_at(position) == data.count(b"\n", 0, position)
            after, before = data.find(b"\n", position), data.rfind(b"\n", 0, position)
            assert content.newline_after(position) == (after if after >= 0 else len(data))
            assert content.newline_before(position) == before


@given(text=st.text(max_size=40), at=st.integers(-5, 200))
def test_outputs_characters_are_never_cut(text: str, at: int) -> None:
    data = text.encode()
    content = Content(data)
    start = content.character_start(at)
    assert 0 <= start <= len(data)
    data[:start].decode()
    data[start:].decode()
    assert 0 <= min(max(at, 0), len(data)) - start <= 3


@given(data=st.binary(max_size=40), at=st.integers(-5, 60))
def test_outputs_that_are_not_utf_8_are_cut_near_where_asked(data: bytes, at: int) -> None:
    start = Content(data).character_start(at)
    assert 0 <= min(max(at, 0), len(data)) - start <= 3


def test_a_mapped_file_is_looked_at_like_bytes(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"one\ntwo\nthree")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        index = LineIndex(Content(view))
        assert (index.count, index.start_of(2)) == (3, 8)
        del index
        view.release()


def test_a_view_of_other_items_is_looked_at_as_bytes() -> None:
    view = memoryview(b"a\nb\nc\nd\n")
    assert LineIndex(Content(view.cast("I"))).count == 4
    assert LineIndex(Content(view[::2])).count == 1
