"""Exact replacements in a text: each must match as often as its author says."""

from __future__ import annotations

import difflib
import heapq
import itertools
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from toolkeel import ToolError

from .shown import count

_LINES_NAMED = 20
_NEAR = 3
_CANDIDATES = 200
_COMPARED = 200
_ALIKE = 0.5
_WORD = re.compile(r"\w+")


class Edit(BaseModel):
    """One replacement."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    old: str = Field(description="The exact text to replace; it must occur exactly once")
    new: str = Field(description="The text to put in its place")
    replace_all: bool = Field(False, description="Replace every occurrence instead")


class Edited(NamedTuple):
    """A text after its edits, and for each edit the lines (of the text as it then was) where it replaced."""

    text: str
    lines: tuple[tuple[int, ...], ...]


def apply(text: str, edits: Sequence[Edit], most_chars: int) -> Edited:
    """Apply edits in order, each to what the earlier ones made; all or none.

    A newline in an edit stands for whatever ends the lines of the text, so an author need not know that they end in
    CRLF. An edit that holds a carriage return itself is taken literally.

    Raises:
        ToolError: an edit matches not at all or too often, would change nothing, or makes more than ``most_chars`` of
            the text; says which one, at which lines, and what comes near.
    """
    lines: list[tuple[int, ...]] = []
    for number, edit in enumerate(edits, 1):
        which = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        text, replaced = _apply(text, edit, which, most_chars)
        lines.append(replaced)
    return Edited(text, tuple(lines))


def _apply(text: str, edit: Edit, which: str, most_chars: int) -> tuple[str, tuple[int, ...]]:
    if not edit.old:
        raise ToolError(f"{which}old is empty", remedy="Quote the text to replace; file_write makes new files")
    if edit.old == edit.new:
        raise ToolError(f"{which}old and new are the same, so nothing would change")
    literal = "\r" in edit.old
    view = _View(text, flat="\r\n" in text and not literal)
    starts = list(_occurrences(view.flat, edit.old, overlapping=not edit.replace_all))
    if not starts:
        raise ToolError(f"{which}old does not occur in the file{_nearest(view.flat, edit.old)}")
    if len(starts) > 1 and not edit.replace_all:
        at = [view.line(start) for start in starts[:_LINES_NAMED]]
        more = f" and {len(starts) - _LINES_NAMED} more" if len(starts) > _LINES_NAMED else ""
        raise ToolError(
            f"{which}old occurs {count(len(starts), 'time')}, at lines {', '.join(map(str, at))}{more}",
            remedy="Quote more of the lines around the one that is meant, or say replace_all",
        )
    if len(text) + len(starts) * (len(edit.new) - len(edit.old)) > most_chars:
        raise ToolError(f"{which}the file would grow over {most_chars:,} characters")
    pieces: list[str] = []
    done = 0
    for start in starts:
        begin, end = view.original(start), view.original(start + len(edit.old))
        pieces += (text[done:begin], view.written(edit.new, begin))
        done = end
    return "".join((*pieces, text[done:])), tuple(view.line(start) for start in starts)


class _View:
    """A text with plain newlines, and the way back from its indices to those of the original."""

    def __init__(self, text: str, *, flat: bool) -> None:
        self._text = text
        self._flattened = flat
        self.flat = text.replace("\r\n", "\n") if flat else text
        # indices in the flat text of the newlines that were CRLF
        crlf = re.finditer("\r\n", text) if flat else ()
        self._crlf = [found.start() - before for before, found in enumerate(crlf)]
        self._newlines = [found.start() for found in re.finditer("\n", self.flat)]

    def original(self, index: int) -> int:
        return index + bisect_left(self._crlf, index)

    def line(self, index: int) -> int:
        return bisect_left(self._newlines, index) + 1

    def written(self, new: str, near: int) -> str:
        """The replacement with the line ends of its surroundings, unless it brings its own."""
        if not self._flattened or "\r" in new or "\n" not in new:
            return new
        newline = self._text.find("\n", near)
        if newline < 0:
            newline = self._text.rfind("\n", 0, near)
        return new.replace("\n", "\r\n") if self._text[newline - 1 : newline] == "\r" else new


def _occurrences(text: str, old: str, *, overlapping: bool) -> Iterator[int]:
    step = 1 if overlapping else len(old)
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + step)


def _nearest(text: str, old: str) -> str:
    """What in the text comes near ``old``, as the end of a sentence on one line."""
    lines, wanted = text.split("\n"), old.split("\n")
    for differing, key in (("in blanks", str), ("in case or blanks", str.casefold)):
        at = _find_squeezed(lines, old, key)
        if at is None:
            continue
        for number, (there, asked) in enumerate(zip(lines[at:], wanted, strict=False), at + 1):
            if there != asked:
                return (
                    f", but text that differs only {differing} is at line {at + 1}: "
                    f"line {number} is {_quoted(there)} where old has {_quoted(asked)}"
                )
        return f", but text that differs only {differing} is at line {at + 1}"
    near = _like(lines, max(wanted, key=len))
    return f"; nearest: {', '.join(f'line {number} {_quoted(line)}' for number, line in near)}" if near else ""


def _find_squeezed(lines: list[str], old: str, key: Callable[[str], str]) -> int | None:
    """The index of the line where the text holds ``old`` if blanks do not count."""
    squeezed = [key("".join(line.split())) for line in lines]
    wanted = key("".join(old.split()))
    at = "".join(squeezed).find(wanted) if wanted else -1
    if at < 0:
        return None
    ends = list(itertools.accumulate(map(len, squeezed)))
    return bisect_right(ends, at)


def _like(lines: list[str], wanted: str) -> list[tuple[int, str]]:
    """The lines most like one line, by number: first by shared words over all, then by difflib over the best."""
    words = set(_WORD.findall(wanted))
    if not words:
        return []
    sharing = ((len(words.intersection(_WORD.findall(line[:_COMPARED]))), -index) for index, line in enumerate(lines))
    best = heapq.nlargest(_CANDIDATES, (item for item in sharing if item[0]))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted.strip()[:_COMPARED])
    scored: list[tuple[float, int]] = []
    for _, index in best:
        matcher.set_seq1(lines[-index].strip()[:_COMPARED])
        if matcher.quick_ratio() >= _ALIKE:
            scored.append((matcher.ratio(), index))
    return [(1 - index, lines[-index]) for ratio, index in heapq.nlargest(_NEAR, scored) if ratio >= _ALIKE]


def _quoted(line: str) -> str:
    return json.dumps(line if len(line) <= _COMPARED else f"{line[:_COMPARED]}…", ensure_ascii=False)
