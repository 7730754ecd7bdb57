"""file_read: windows of text of any size and encoding, and what is no text."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolkeel import Text, ToolError
from toolkeel_files import reading
from toolkeel_files.charset import detect
from toolkeel_files.stopping import Watch

pytestmark = pytest.mark.requirement("G4")


def windows(call: Callable[..., str], path: str, **first: int) -> str:
    """The whole file, read on as each answer says."""
    text = ""
    arguments = dict(first)
    for _ in range(1_000):
        header, _, part = call("file_read", path, **arguments).partition("\n")
        text += part
        on = re.search(r"read on with (offset|start_byte)=(\d+)\]$", header)
        if not on:
            return text
        arguments = {**first, on[1]: int(on[2])}
    raise AssertionError("no end")


def test_a_whole_file_is_its_text_and_nothing_else(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\n\nthree")
    assert call("file_read", "a.txt") == "one\r\ntwo\n\nthree"


def test_a_window_says_what_it_is_and_how_to_read_on(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    assert call("file_read", "a.txt", offset=3, limit=2) == (
        "[a.txt: lines 3-4 of 10, 71 bytes; read on with offset=5]\nline 3\nline 4\n"
    )
    assert call("file_read", "a.txt", offset=10) == "[a.txt: line 10 of 10, 71 bytes]\nline 10\n"


def test_a_negative_offset_reads_the_end(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    assert call("file_read", "a.txt", offset=-2) == "[a.txt: lines 9-10 of 10, 71 bytes]\nline 9\nline 10\n"
    assert call("file_read", "a.txt", offset=-99).startswith("line 1\n")


def test_lines_have_numbers_where_they_are_asked_for(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("a\nb")
    assert call("file_read", "a.txt", numbers=True) == "     1\ta\n     2\tb"


def test_a_line_beyond_the_end_is_an_error_that_says_where_the_end_is(
    call: Callable[..., str], workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a\nb\n")
    with pytest.raises(ToolError, match="the file has 2 lines, so nothing is at line 3"):
        call("file_read", "a.txt", offset=3)
    (workspace / "b.txt").write_text("a\nb")
    with pytest.raises(ToolError, match="the file has 2 lines, so nothing is at line 9"):
        call("file_read", "b.txt", offset=9)


def test_an_empty_file_says_that_it_is_empty(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").touch()
    assert call("file_read", "a.txt") == "[a.txt is empty]"


def test_a_line_of_any_length_is_read_on_by_bytes(caller: Callable[..., Callable[..., str]], workspace: Path) -> None:
    call = caller(workspace, read_bytes=1_000)
    text = "€" * 5_000
    (workspace / "a.txt").write_text(text)
    first = call("file_read", "a.txt")
    assert first.startswith("[a.txt: line 1 of 1, 14.6 KiB; the last line is cut, read on with start_byte=999]\n€€€")
    assert windows(call, "a.txt") == text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_other_encodings_are_read_and_named(call: Callable[..., str], workspace: Path, encoding: str) -> None:
    (workspace / "a.txt").write_bytes("Grüße\naus Köln\n".encode(encoding))
    header, _, text = call("file_read", "a.txt").partition("\n")
    assert text == "Grüße\naus Köln\n"
    assert re.search(r"read as (UTF-8 with byte order mark|UTF-16|UTF-32|Latin-1)\]$", header)
    assert call("file_read", "a.txt", offset=2).endswith("\naus Köln\n")
    assert call("file_read", "a.txt", offset=-1).endswith("\naus Köln\n")


def test_utf_16_the_other_way_round_is_read_too(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"\xfe\xff" + "Grüße".encode("utf-16-be"))
    assert call("file_read", "a.txt").endswith("read as UTF-16]\nGrüße")


def test_damaged_characters_are_shown_and_counted(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("Grüße, ".encode() * 9 + b"\xff\n")
    header, _, text = call("file_read", "a.txt").partition("\n")
    assert header.endswith("read as UTF-8 with damaged characters, 1 damaged character shown as \ufffd]")
    assert text.endswith("\ufffd\n")


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG image"),
        (b"\x7fELF\2\1\1\0", "ELF program or library"),
        (b"PK\3\4\0\0", "ZIP archive"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "WebP image"),
        (bytes(range(256)), "binary data"),
        (b"\0" * 257 + b"ustar\0", "tar archive"),
    ],
)
def test_what_is_no_text_is_described(call: Callable[..., str], workspace: Path, start: bytes, kind: str) -> None:
    (workspace / "a.bin").write_bytes(start + b"\0" * 20_000)
    answer = call("file_read", "a.bin")
    assert answer.startswith(f"[a.bin is no text: {kind}")
    assert f"{(20_000 + len(start)) / 1024:.1f} KiB" in answer
    assert start[:4].hex(" ") in answer
    assert len(answer) < 2_000


def test_a_huge_file_is_answered_by_its_window_alone(call: Callable[..., str], workspace: Path) -> None:
    with (workspace / "huge.log").open("wb") as file:
        file.write(b"first\n" * 20_000)
        file.truncate(50 << 30)  # sparse: the system makes up the 50 GiB in between
        file.seek(0, 2)
        file.write(b"\nnext to last\nlast\n")
    started = time.monotonic()
    assert call("file_read", "huge.log", limit=2) == (
        "[huge.log: lines 1-2, 50.0 GiB; read on with offset=3]\nfirst\nfirst\n"
    )
    assert call("file_read", "huge.log", offset=-2).endswith("\nnext to last\nlast\n")
    assert time.monotonic() - started < 5


def test_a_line_that_is_too_far_to_reach_in_time_is_an_error_with_a_way_out(
    caller: Callable[..., Callable[..., str]], workspace: Path
) -> None:
    with (workspace / "huge.log").open("wb") as file:
        file.write(b"first\n" * 20_000)
        file.truncate(50 << 30)
    with pytest.raises(ToolError, match=r"gone through in 0.2 s.*start_byte"):
        caller(workspace, seconds=0.2)("file_read", "huge.log", offset=30_000)


def test_a_whole_json_file_says_what_it_is(workspace: Path, call: Callable[..., str]) -> None:
    (workspace / "a.json").write_text(json.dumps({"a": 1}))
    with (workspace / "a.json").open("rb") as file:
        wanted = reading.Wanted(offset=1, limit=10, budget=1_000)
        answer = reading.read(file.fileno(), 8, "a.json", wanted, Watch(9))
    assert answer == Text(b'{"a": 1}', "application/json")


@pytest.mark.parametrize(
    "arguments", [{"start_byte": -1}, {"start_byte": 4}, {"start_byte": 1, "numbers": True}], ids=str
)
def test_a_window_that_is_not_there_is_an_error(
    call: Callable[..., str], workspace: Path, arguments: dict[str, int]
) -> None:
    (workspace / "a.txt").write_text("abc\n")
    with pytest.raises(ToolError):
        call("file_read", "a.txt", **arguments)


@settings(deadline=None, max_examples=200)
@given(
    lines=st.lists(
        st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs", "Cc"]), max_size=40), min_size=1
    ),
    limit=st.integers(1, 5),
    budget=st.integers(4, 60),
    end=st.sampled_from(["", "\n"]),
)
def test_reading_on_gives_every_byte_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], limit: int, budget: int, end: str
) -> None:
    data = ("\n".join(lines) + end).encode()
    path = tmp_path_factory.getbasetemp() / "window.txt"
    path.write_bytes(data)

    def call(_tool: str, _path: str, offset: int = 1, start_byte: int | None = None) -> str:
        with path.open("rb") as file:
            wanted = reading.Wanted(offset, limit, budget, start_byte)
            answer = reading.read(file.fileno(), len(data), "window.txt", wanted, Watch(60))
        content = answer.content if isinstance(answer.content, str) else answer.content.decode()
        whole = content.encode() == data and not content.startswith("[window.txt")
        return f"[]\n{content}" if whole else content

    assume(data)
    assert windows(call, "window.txt").encode() == data


@given(st.binary(max_size=300))
def test_what_is_taken_for_text_goes_back_to_the_same_bytes(data: bytes) -> None:
    charset = detect(data, whole=True)
    if charset is not None:
        try:
            text = charset.decode(data)
        except UnicodeDecodeError:
            return  # half of a character of UTF-16: file_edit refuses it
        assert charset.encode(text) == data
