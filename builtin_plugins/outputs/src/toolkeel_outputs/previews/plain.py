"""Previews of plain text: the first lines, long ones cut in the middle."""

from __future__ import annotations

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.texts import cut_end, line_ends

from .limits import Limits

_LINE = 400
_COUNTED = 1024 * 1024


def preview(content: Content, limits: Limits, note: str = "") -> Preview:
    """The first lines. ``total`` is counted up to 1 MB; ``note`` is put before them."""
    return first_lines(content, "text", limits.lines, limits.characters, note)


def first_lines(content: Content, kind: str, lines: int, characters: int, note: str = "") -> Preview:
    """The first ``lines`` lines of any kind of text, as far as they fit into ``characters``."""
    room = characters - len(note) - 1 if note else characters
    bounds = _bounds(content, lines)
    width = min(room, max(_LINE, room // max(1, len(bounds)) - 1))
    texts: list[str] = []
    shortened, shown = False, 0
    for start, end in bounds:
        first, mark, last = line_ends(content, start, end, width)
        text = first + mark + last
        if texts and len(text) + 1 > room:
            break
        texts.append(text)
        room -= len(text) + 1
        shortened = shortened or bool(mark)
        shown += len((first + last).encode()) + (end < content.size)
    text = cut_end("\n".join([note, *texts] if note else texts), characters)
    total = _total(content) if content.size <= _COUNTED else None
    every_line = len(texts) == len(bounds) and (not bounds or bounds[-1][1] + 1 >= content.size)
    if every_line and shortened:  # "1 of 1 lines" would say that nothing is hidden
        return Preview(kind=kind, text=text, shown=min(shown, content.size), total=content.size, unit="bytes")
    return Preview(kind=kind, text=text, shown=len(texts), total=total, unit="lines")


def _bounds(content: Content, lines: int) -> list[tuple[int, int]]:
    """Start and end of each of the first lines."""
    bounds: list[tuple[int, int]] = []
    start = 0
    while len(bounds) < lines and start < content.size:
        end = content.newline_after(start)
        bounds.append((start, end))
        start = end + 1
    return bounds


def _total(content: Content) -> int:
    newlines = content.newlines(0, content.size)
    return newlines + (content.size > 0 and not content.ends_with(b"\n", content.size))
