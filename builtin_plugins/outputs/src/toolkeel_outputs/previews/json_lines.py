"""Previews of JSON lines: the first objects with shortened values."""

from __future__ import annotations

import msgspec

from toolkeel import Preview
from toolkeel_outputs.content import Content

from .json_value import PARTS, WHOLE, fitted
from .limits import Limits
from .outline import DETAILS, Node, Reader, written

_START = 64 * 1024


def preview(content: Content, limits: Limits) -> Preview:
    """The first objects; up to 16 MiB every line is checked and counted."""
    starts: list[str] = []
    position = 3 if content.part(0, 3) == b"\xef\xbb\xbf" else 0
    begin = position
    while len(starts) < limits.items and position < content.size:
        end = content.newline_after(position)
        text = content.text(position, min(end, position + _START))
        if text.strip():
            starts.append(text)
        position = end + 1
    total, note = _checked(content, begin)
    nodes: list[Node] = [Reader(text).value(1) for text in starts]
    hidden = None if total is None else total - len(nodes)

    def write(level: int) -> str:
        parts = [written(node, DETAILS[level], width=limits.characters) for node in nodes]
        if hidden:
            parts.append(f"… {hidden:,} more")
        elif hidden is None:
            parts.append("… more")
        return "\n".join([note, *parts] if note else parts)

    return Preview(kind="jsonl", text=fitted(write, limits.characters), shown=len(nodes), total=total, unit="objects")


def _checked(content: Content, start: int) -> tuple[int | None, str]:
    """How many values there are, and a note where that cannot be said."""
    if content.size > WHOLE or content.count(b",", 0, content.size) + content.newlines(0, content.size) > PARTS:
        return None, ""
    try:
        return len(_LINES.decode_lines(content.view(start, content.size))), ""
    except msgspec.DecodeError:
        return None, "Not every line is valid JSON."
    except RecursionError:
        return None, "Some lines are nested too deeply to be checked."


_LINES = msgspec.json.Decoder(msgspec.Raw)
