"""Reading a window of a text file, of any size, without reading the whole."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from typing import NamedTuple

from toolkeel import Text, ToolError

from .binary import hex_dump, kind_of_data
from .charset import SAMPLE, Charset, detect
from .shown import count, reason, shown, size
from .stopping import Watch

_CHUNK = 1 << 20
_COUNTED = 8 << 20
"""Files up to this size are read to the end to know how many lines they have."""
_MEDIA_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ndjson": "application/jsonl",
    ".csv": "text/csv",
    ".html": "text/html",
    ".htm": "text/html",
    ".xml": "application/xml",
}


class Wanted(NamedTuple):
    """The window that is asked for.

    ``offset`` is its first line, from 1; a negative one counts from the end. It ends after ``limit`` lines or
    ``budget`` bytes, whichever comes first. With ``start_byte`` it begins there, whatever line that is in.
    """

    offset: int
    limit: int
    budget: int
    start_byte: int | None = None
    numbers: bool = False


class _Window(NamedTuple):
    """What was read, in UTF-8. ``passed`` bytes were gone through before it; ``rest`` counts the lines after it.

    ``cut``: its last line goes on. ``rest`` is ``None`` where counting would have cost too much, 0 at the end.
    """

    data: bytes
    lines: int
    passed: int
    cut: bool
    rest: int | None


class _BeyondError(Exception):
    """The file ends before the window begins; its argument is the number of lines it has."""


def read(opened: int, length: int, path: str, wanted: Wanted, watch: Watch) -> Text:
    """Answer a window of an open regular file of ``length`` bytes, which the answer calls ``path``.

    A file that is answered whole, in plain UTF-8, is its text and nothing else. Any other answer begins with a line
    in brackets that says what it is and how to read on. A file that is no text is described.

    Raises:
        ToolError: the window lies outside of the file, does not go with its encoding, or is too far to reach in time.
    """
    try:
        return _Reader(opened, length, path, watch).read(wanted)
    except OSError as error:
        raise ToolError(f"cannot be read: {reason(error)}", where=shown(path)) from None


class _Reader:
    def __init__(self, opened: int, length: int, path: str, watch: Watch) -> None:
        self._opened = opened
        self._length = length
        self._path = path
        self._watch = watch

    def read(self, wanted: Wanted) -> Text:
        sample = os.pread(self._opened, SAMPLE, 0)
        charset = detect(sample, whole=len(sample) >= self._length)
        if charset is None:
            return Text(
                f"[{shown(self._path)} is no text: {kind_of_data(sample)}, {size(self._length)}; it begins with]\n"
                f"{hex_dump(sample)}"
            )
        if len(sample) == len(charset.mark):
            return Text(f"[{shown(self._path)} is empty]")
        wanted = wanted._replace(limit=max(wanted.limit, 1), offset=wanted.offset or 1, budget=max(wanted.budget, 4))
        if wanted.start_byte is not None:
            return self._read_from_byte(wanted, wanted.start_byte, charset)
        if wanted.offset > 0:
            return self._read_from_line(wanted, charset)
        if charset.codec == "utf-8" and self._length > _COUNTED and not wanted.numbers:
            return self._read_from_byte(wanted, self._tail_begin(-wanted.offset), charset)
        total = self._count_lines(charset)
        return self._read_from_line(wanted._replace(offset=max(1, total + 1 + wanted.offset)), charset)

    def _read_from_line(self, wanted: Wanted, charset: Charset) -> Text:
        try:
            window = self._window(self._chunks(charset, len(charset.mark)), wanted.offset - 1, wanted)
        except _BeyondError as error:
            raise ToolError(
                f"the file has {count(error.args[0], 'line')}, so nothing is at line {wanted.offset:,}",
                where=shown(self._path),
                remedy="offset=-100 reads the last 100 lines",
            ) from None
        first, last = wanted.offset, wanted.offset + window.lines - 1
        of = "" if window.rest is None else f" of {last + window.rest:,}"
        span = f"line {first:,}{of}" if first == last else f"lines {first:,}-{last:,}{of}"
        whole = first == 1 and window.rest == 0 and not window.cut
        end = len(charset.mark) + window.passed + len(window.data)
        on = "" if window.rest == 0 and not window.cut else f"offset={last + 1}"
        return self._answer(window, span, self._read_on(window, charset, end, on), charset, first, wanted, whole)

    def _read_from_byte(self, wanted: Wanted, start: int, charset: Charset) -> Text:
        if charset.codec != "utf-8":
            raise ToolError(
                f"start_byte goes with UTF-8, and this file is {charset.name}",
                where=shown(self._path),
                remedy="Give offset, a line",
            )
        if wanted.numbers:
            raise ToolError("lines have no numbers after start_byte", remedy="Leave numbers out, or give offset")
        if not 0 <= start < self._length:
            raise ToolError(f"the file has {self._length:,} bytes, so none is at {start:,}", where=shown(self._path))
        start = max(start, len(charset.mark))
        while start < self._length and os.pread(self._opened, 1, start)[:1] in _CONTINUATIONS:
            start += 1  # into a character: begin with the next one
        window = self._window(self._chunks(charset, start), 0, wanted)
        end = start + len(window.data)
        span = f"bytes {start:,}-{end:,}"
        on = "" if end >= self._length else f"start_byte={end}"
        return self._answer(window, span, self._read_on(window, charset, end, on), charset, 0, wanted, whole=False)

    @staticmethod
    def _read_on(window: _Window, charset: Charset, end: int, on: str) -> str:
        if not window.cut:
            return f"; read on with {on}" if on else ""
        if charset.codec != "utf-8":
            return "; the last line is cut, and code_search finds what is in the rest of it"
        return f"; the last line is cut, read on with start_byte={end}"

    def _answer(
        self, window: _Window, span: str, on: str, charset: Charset, first: int, wanted: Wanted, whole: bool
    ) -> Text:
        data, damaged = _valid(window.data)
        notes = [f"read as {charset.name}"] if charset.name else []
        if damaged:
            notes.append(f"{count(damaged, 'damaged character')} shown as \ufffd")
        if wanted.numbers:
            data = _numbered(data, first)
        if whole and not notes:
            ending = os.path.splitext(self._path)[1].lower()
            return Text(data, "" if wanted.numbers else _MEDIA_TYPES.get(ending, ""))
        about = ", ".join([span, size(self._length), *notes])
        return Text(f"[{shown(self._path)}: {about}{on}]\n".encode() + data)

    def _window(self, chunks: Iterator[bytes], skip: int, wanted: Wanted) -> _Window:
        passed = seen = newlines = 0
        before = _Lines()
        data = bytearray()
        for chunk in chunks:
            begin = 0
            if seen < skip:
                found = chunk.count(b"\n")
                if seen + found < skip:
                    seen += found
                    passed += len(chunk)
                    before.add(chunk)
                    continue
                begin = _after_newline(chunk, skip - seen)
                seen = skip
                passed += begin
            newlines += chunk.count(b"\n", begin)
            data += memoryview(chunk)[begin:]
            if newlines >= wanted.limit or len(data) > wanted.budget:
                break
        if not data:
            raise _BeyondError(before.number if seen < skip else skip)
        end = _after_newline(data, wanted.limit) if newlines >= wanted.limit else len(data)
        cut = False
        if end > wanted.budget:
            end = data.rfind(b"\n", 0, wanted.budget) + 1
            if not end:
                end, cut = _character_boundary(data, wanted.budget), True
        kept = bytes(memoryview(data)[:end])
        lines = kept.count(b"\n") + (not kept.endswith(b"\n"))
        return _Window(kept, lines, passed, cut, self._rest(bytes(memoryview(data)[end:]), chunks, cut))

    def _rest(self, pending: bytes, chunks: Iterator[bytes], cut: bool) -> int | None:
        """How many lines come after the window; a line that it cuts is not one of them."""
        lines = _Lines()
        lines.add(pending)
        if self._length <= _COUNTED:
            for chunk in chunks:
                lines.add(chunk)
        elif pending or next(chunks, b""):
            return None
        return max(lines.number - cut, 0)

    def _count_lines(self, charset: Charset) -> int:
        lines = _Lines()
        for chunk in self._chunks(charset, len(charset.mark)):
            lines.add(chunk)
        return lines.number

    def _chunks(self, charset: Charset, start: int) -> Iterator[bytes]:
        """The file from ``start`` on as UTF-8, in pieces."""
        decoder = None if charset.codec == "utf-8" else codecs.getincrementaldecoder(charset.codec)("replace")
        at = start
        while True:
            if self._watch.over:
                raise ToolError(
                    f"only {size(at)} of {size(self._length)} were gone through in {self._watch.seconds:g} s",
                    where=shown(self._path),
                    remedy="start_byte begins at a byte without reading what is before it",
                )
            chunk = os.pread(self._opened, _CHUNK, at)
            at += len(chunk)
            piece = decoder.decode(chunk, final=not chunk).encode("utf-8", "replace") if decoder else chunk
            if piece:
                yield piece
            if not chunk:
                return

    def _tail_begin(self, lines: int) -> int:
        """The byte at which the last ``lines`` lines begin."""
        at = self._length
        missing = lines + (os.pread(self._opened, 1, at - 1) == b"\n")  # the last newline ends a line and begins none
        while at > 0:
            begin = max(0, at - _CHUNK)
            chunk = os.pread(self._opened, at - begin, begin)
            found = chunk.count(b"\n")
            if found >= missing:
                return begin + _after_newline(chunk, found - missing + 1)
            missing -= found
            at = begin
        return 0


class _Lines:
    """Counts lines over pieces; a last one without its newline counts."""

    def __init__(self) -> None:
        self._newlines = 0
        self._open = False

    def add(self, piece: bytes) -> None:
        self._newlines += piece.count(b"\n")
        if piece:
            self._open = not piece.endswith(b"\n")

    @property
    def number(self) -> int:
        return self._newlines + self._open


_CONTINUATIONS = frozenset(bytes((byte,)) for byte in range(0x80, 0xC0))


def _after_newline(data: bytes | bytearray, number: int) -> int:
    """The index after the ``number``-th newline, of which there are that many."""
    at = 0
    for _ in range(number):
        at = data.find(b"\n", at) + 1
    return at


def _character_boundary(data: bytearray, limit: int) -> int:
    at = limit
    while at > max(limit - 3, 1) and 0x80 <= data[at] < 0xC0:
        at -= 1
    return at


def _valid(data: bytes) -> tuple[bytes, int]:
    """The data as valid UTF-8, and how many characters had to be replaced."""
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        return text.encode(), text.count("\ufffd")
    return data, 0


def _numbered(data: bytes, first: int) -> bytes:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
        end = b"\n"
    else:
        end = b""
    return b"\n".join(b"%6d\t%b" % (number, line) for number, line in enumerate(lines, first)) + end
