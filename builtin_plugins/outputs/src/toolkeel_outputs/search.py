"""Search in a stored output: matching lines with lines around them, and only parts of very long lines."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Literal, Protocol

import msgspec

from toolkeel import ToolError

from .answers import FOOTER, ended, quoted, read_call
from .store import Output
from .texts import counted, cut_end

LONG_LINE = 2_000
"""Lines of more bytes are shown in parts."""
AROUND = 1_000
"""Bytes shown each side of a match in a long line."""
IN_LINE = 10
"""Matches shown of a long line."""
_QUERY = 500
_ALL = 10**15
_START_OF_LINE = 200


class Match(Protocol):
    """What a pattern finds; offsets in bytes."""

    def span(self) -> tuple[int, int]:
        """Start and end."""
        ...


class Pattern(Protocol):
    """A compiled RE2 pattern. It searches buffers in place and lets other threads run meanwhile."""

    def search(self, text: bytes | memoryview, pos: int, endpos: int) -> Match | None:
        """The first match between two positions."""
        ...


def compile_query(query: str, *, regex: bool) -> Pattern:
    """A pattern that ignores letter case in every script; a regular expression never matches over a line's end."""
    re2 = importlib.import_module("re2")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.literal = not regex
    options.never_nl = regex
    try:
        pattern: Pattern = re2.compile(f"(?m){query}".encode() if regex else query.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        said = error.args[0] if error.args else ""
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(error)
        said = said.replace("(?m)", "", 1)
        raise ToolError(
            f"query is nothing that RE2 can search for: {said[:200]}",
            remedy="RE2 has no look-around and no back references; without regex the words themselves are searched for",
        ) from None
    return pattern


class Query(msgspec.Struct, frozen=True):
    """What to search for, how much of it to show, and where: lines from 1 or bytes from 0, as ``unit`` says."""

    text: str
    regex: bool
    lines: int
    start: int | None
    end: int | None
    unit: Literal["lines", "bytes"]
    context: int


def search(output: Output, query: Query, limit: int) -> str:
    """The answer to a query: at most ``query.lines`` matching lines and ``limit`` bytes, and the call that goes on."""
    text, unit = query.text, query.unit
    if not text:
        raise ToolError('mode="search" takes a query', remedy='Say what to look for: query="…"')
    if len(text) > _QUERY:
        raise ToolError(f"query has more than {_QUERY} characters", remedy="Search for a shorter piece of it")
    pattern = compile_query(text, regex=query.regex)
    begin, finish = _bounds(output, query)
    room = limit - FOOTER - 2 * len(quoted(text).encode("utf-8", "replace"))
    found = _Search(output, pattern, query.context).run(begin, finish, query.lines, room)
    where = _where(output, query, begin, finish)
    if not found.lines:
        return f"[No line in {where} matches {quoted(text)}, in any letter case.{_spelling(output, query)}]"
    said = f"{counted(found.lines, 'matching lines')} shown"
    if found.stop is None:
        return ended(found.text, f"{said}; {where} was searched to the end.")
    following: dict[str, str | int] = {"mode": "search", "query": text, **_unusual(query)}
    by_bytes = found.inside or unit == "bytes"
    if by_bytes:
        following["unit"] = "bytes"
    following["start"] = found.stop if by_bytes else output.lines.line_at(found.stop) + 1
    if query.end is not None:
        following["end"] = finish if by_bytes else query.end
    said += f"; stopped before byte {found.stop:,}"
    return ended(found.text, f"{said}. Read on: {read_call(output.ref, **following)}")


def _bounds(output: Output, query: Query) -> tuple[int, int]:
    """The bytes to search, end exclusive."""
    index, size = output.lines, output.content.size
    if query.unit == "bytes":
        return min(query.start or 0, size), size if query.end is None else min(query.end, size)
    return index.start_of((query.start or 1) - 1), size if query.end is None else index.start_of(query.end)


def _where(output: Output, query: Query, begin: int, finish: int) -> str:
    if begin == 0 and finish == output.content.size:
        return "the output"
    if query.unit == "bytes":
        return f"bytes {begin:,} to {finish:,}"
    return f"what stands from line {query.start or 1:,} to line {min(query.end or _ALL, output.lines.count):,}"


def _spelling(output: Output, query: Query) -> str:
    """Why words that were copied from a preview may not stand so in the output."""
    text = query.text
    if "…" in text or "left out]" in text:
        return " In previews … marks what is left out; search for the words on one side of it."
    if "\n" in text:
        return " A match lies within one line; search for a piece of one line."
    start = output.content.text(0, _START_OF_JSON).lstrip("\ufeff \t\r\n")
    member = _MEMBER.search(start) if start[:1] in ("{", "[") else None
    if member is None or query.regex:
        return ""
    hints: list[str] = []
    if _PUNCTUATION.search(text):
        blanks = member[2].replace("\n", "").replace("\r", "")
        hints.append(f" The output is JSON that writes {member[1]}{blanks}…, with line breaks and blanks as stored.")
    if not text.isascii() and start.isascii():
        hints.append(" Its characters outside ASCII are written as \\uXXXX.")
    return "".join(hints)


_START_OF_JSON = 4_096
_MEMBER = re.compile(r'("(?:[^"\\\n]|\\.){1,60}")(\s*:\s*)')
_PUNCTUATION = re.compile(r"[\":,{}\[\]]")


def _unusual(query: Query) -> dict[str, str | int]:
    """The options that are not at their defaults."""
    options: tuple[tuple[str, int, int], ...] = (
        ("regex", query.regex, False),
        ("lines", query.lines, 100),
        ("context", query.context, 2),
    )
    return {name: value for name, value, usual in options if value != usual}


class _Found(msgspec.Struct, frozen=True):
    """``stop`` is where the search has to go on, ``inside`` a line; ``None``: it came to the end."""

    text: str
    lines: int
    stop: int | None = None
    inside: bool = False


class _Line(msgspec.Struct, frozen=True):
    """A matching line: its number from 0, its bounds without the newline, its matches, and where more of them are."""

    number: int
    start: int
    end: int
    spans: tuple[tuple[int, int], ...]
    more: int | None

    @property
    def long(self) -> bool:
        return self.end - self.start > LONG_LINE


class _Search:
    """One run over one output, from match to match; what lies between them is never looked at by Python."""

    def __init__(self, output: Output, pattern: Pattern, context: int) -> None:
        self._content = output.content
        self._index = output.lines
        self._pattern = pattern
        self._context = context

    def run(self, begin: int, finish: int, lines: int, room: int) -> _Found:
        """Matching lines in order until there are ``lines`` of them or the text has ``room`` bytes."""
        texts: list[str] = []
        shown = 0
        next_number, next_start = 0, 0  # the first line that is not written yet
        for line in self._matching(begin, finish):
            if shown == lines:
                return self._stopped(texts, shown, line, begin)
            between = self._between(line, next_number, next_start, after=shown > 0)
            text = self._written(line)
            size = sum(len(piece.encode()) for piece in (*between, text))
            if size > room and not shown:
                between, text = [], cut_end(text, max(1, room // 4))
                size = len(text.encode())
            if size > room:
                return self._stopped(texts, shown, line, begin)
            texts += [*between, text]
            room -= size
            shown += 1
            next_number = line.number + self._content.newlines(line.start, line.end) + 1
            next_start = line.end + 1
            if line.more is not None and line.end >= finish - 1:
                return _Found("".join(texts), shown, line.more, inside=True)
        after = self._following(next_number, next_start, self._context) if shown else []
        for piece in after:
            room -= len(piece.encode())
            if room >= 0:
                texts.append(piece)
        return _Found("".join(texts), shown)

    def _stopped(self, texts: list[str], shown: int, line: _Line, begin: int) -> _Found:
        inside = line.start < begin
        return _Found("".join(texts), shown, line.spans[0][0] if inside else line.start, inside)

    def _matching(self, position: int, finish: int) -> Iterator[_Line]:
        """Every matching line once."""
        while position <= finish and (match := self._pattern.search(self._content.buffer, position, finish)):
            first, last = match.span()
            start = self._content.newline_before(first) + 1
            end = self._content.newline_after(max(first, last - 1))
            if end - start > LONG_LINE:
                spans, more = self._in_line(first, last, min(end, finish))
            else:
                spans, more = ((first, last),), None
            yield _Line(self._index.line_at(start), start, end, spans, more)
            position = end + 1

    def _in_line(self, first: int, last: int, end: int) -> tuple[tuple[tuple[int, int], ...], int | None]:
        """The first matches of a long line, and where the next one starts."""
        spans = [(first, last)]
        while True:
            position = max(last, first + 1)
            match = self._pattern.search(self._content.buffer, position, end) if position < end else None
            if match is None:
                return tuple(spans), None
            first, last = match.span()
            if len(spans) == IN_LINE:
                return tuple(spans), first
            spans.append((first, last))

    def _between(self, line: _Line, number: int, start: int, *, after: bool) -> list[str]:
        """Lines after the last match and before this one; a mark where some are left out."""
        gap = line.number - number
        if after and gap <= 2 * self._context:
            return self._following(number, start, gap)
        following = self._following(number, start, self._context) if after else []
        before: list[str] = []
        end = line.start - 1
        for back in range(1, min(self._context, gap) + 1):
            begin = self._content.newline_before(end) + 1
            before.append(self._context_line(line.number - back, begin, end))
            end = begin - 1
        separator = ["--\n"] if after and gap > 0 else []
        return [*following, *separator, *reversed(before)]

    def _following(self, number: int, start: int, count: int) -> list[str]:
        lines: list[str] = []
        while len(lines) < count and start < self._content.size:
            end = self._content.newline_after(start)
            lines.append(self._context_line(number + len(lines), start, end))
            start = end + 1
        return lines

    def _context_line(self, number: int, start: int, end: int) -> str:
        if end - start > LONG_LINE:
            return f"{number + 1}- {self._content.text(start, start + _START_OF_LINE)} … [{end - start:,} bytes]\n"
        return f"{number + 1}- {self._content.text(start, end).rstrip(chr(13))}\n"

    def _written(self, line: _Line) -> str:
        if not line.long:
            rows = self._content.text(line.start, line.end).split("\n")
            return "".join(f"{line.number + 1 + at}: {row.rstrip(chr(13))}\n" for at, row in enumerate(rows))
        windows: list[list[int]] = []
        for first, last in line.spans:
            begin = max(line.start, first - AROUND)
            stop = min(line.end, min(last, first + AROUND) + AROUND)
            if windows and begin <= windows[-1][1]:
                windows[-1][1] = stop
            else:
                windows.append([begin, stop])
        parts: list[str] = []
        for begin, stop in windows:
            dots = "…" if begin > line.start else "", "…" if stop < line.end else ""
            parts.append(f"  bytes {begin:,} to {stop:,}: {dots[0]}{self._content.text(begin, stop)}{dots[1]}\n")
        number = "1 match" if len(line.spans) == 1 else f"{len(line.spans)} matches"
        more = "" if line.more is None else f', more from unit="bytes", start={line.more}'
        said = f"{line.number + 1}: a line of {line.end - line.start:,} bytes, {number} shown{more}:\n"
        return said + "".join(parts)
