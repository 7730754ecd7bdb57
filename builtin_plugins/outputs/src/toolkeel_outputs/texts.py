"""Shortening and counting in texts that a model and a person read."""

from __future__ import annotations

from .content import Content

_COUNTED = 64 * 1024
"""Bytes up to which the characters of a line are counted."""


def counted(number: int, unit: str) -> str:
    """``1 line``, ``12,345 lines``: ``unit`` is given as a plural in ``s``."""
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"


def cut_end(text: str, limit: int) -> str:
    """At most ``limit`` characters; where some are cut off, an ellipsis is the last."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"[:limit]


def cut_middle(text: str, limit: int) -> str:
    """At most ``limit`` characters: start and end, and between them how many are left out."""
    return "".join(_ends(text, limit))


def _ends(text: str, limit: int) -> tuple[str, str, str]:
    """Start, mark and end of a text that is cut in the middle; mark and end are empty where it is not."""
    if len(text) <= limit:
        return text, "", ""
    kept = limit - 40 - len(f"{len(text):,}")
    if kept < 40:
        return text[: max(0, limit - 1)], "…"[:limit], ""
    tail = kept // 3
    return text[: kept - tail], f" … [{len(text) - kept:,} characters left out] … ", text[len(text) - tail :]


def line_ends(content: Content, start: int, end: int, limit: int) -> tuple[str, str, str]:
    """A line as start, mark and end, together at most ``limit`` characters. Of a long line only the ends are read."""
    if end > start and content.ends_with(b"\r", end):
        end -= 1
    if end - start <= _COUNTED:
        return _ends(content.text(start, end), limit)
    kept = limit - 40 - len(f"{end - start:,}")
    if kept < 40:
        return content.text(start, start + 4 * limit)[: max(0, limit - 1)], "…"[:limit], ""
    tail = kept // 3
    first, last = content.text(start, start + 4 * kept)[: kept - tail], content.text(end - 4 * tail, end)[-tail:]
    left_out = end - start - len((first + last).encode())
    return first, f" … [{left_out:,} bytes left out] … ", last


def duration(seconds: float) -> str:
    """A time in the unit that reads best."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= size and seconds % size == 0:
            return counted(int(seconds // size), unit)
    return f"{seconds:g} seconds"
