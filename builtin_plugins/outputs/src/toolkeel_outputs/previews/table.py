"""Previews of CSV and its kin: the header and the first rows."""

from __future__ import annotations

from itertools import islice

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.delimited import DELIMITERS, delimiter_of, rows_of
from toolkeel_outputs.texts import cut_end, cut_middle

from . import plain
from .limits import Limits

_START = 64 * 1024
_COUNTED = 1024 * 1024
_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_WIDTHS = (200, 80, 40, 20, 10)


def preview(content: Content, limits: Limits) -> Preview:
    """Header and rows, cells shortened. A cell's line breaks are shown as ``⏎``."""
    head = content.text(0, _START)
    delimiter = delimiter_of(head, cut=content.size > _START) or _most_frequent(head)
    shown = list(islice(rows_of(head, delimiter), limits.items + 1))
    if not shown:
        return plain.preview(content, limits)
    header, first = shown[0], shown[1:]
    said = f"{len(header):,} columns, separated by {_NAMES[delimiter]}:"
    for width in _WIDTHS:
        lines = [said, *(_line(row, width, None) for row in (header, *first))]
        if sum(len(line) + 1 for line in lines) <= limits.characters:
            break
    else:
        room = max(20, (limits.characters - len(said)) // len(shown) - 1)
        lines = [said, *(_line(row, _WIDTHS[-1], room) for row in (header, *first))]
    text = cut_end("\n".join(lines), limits.characters)
    return Preview(kind="csv", text=text, shown=len(first), total=_total(content, delimiter), unit="rows")


def _most_frequent(head: str) -> str:
    first = head.partition("\n")[0]
    return max(DELIMITERS, key=first.count)


def _line(row: list[str], width: int, room: int | None) -> str:
    cells = [cut_middle(cell.replace("\r\n", "⏎").replace("\n", "⏎").replace("\r", "⏎"), width) for cell in row]
    line = " | ".join(cells)
    if room is None or len(line) <= room:
        return line
    kept = 0
    size = 24
    while kept < len(cells) and size + len(cells[kept]) + 3 <= room:
        size += len(cells[kept]) + 3
        kept += 1
    return cut_end(" | ".join([*cells[:kept], f"… {len(cells) - kept:,} more cells"]), room)


def _total(content: Content, delimiter: str) -> int | None:
    """Rows below the header, where they are lines or few enough to be read."""
    if content.size > _COUNTED:
        return None
    return sum(1 for _ in rows_of(content.text(0, content.size), delimiter)) - 1
