"""Previews of CSV and its kin: the header and the first rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.texts import cut_end, cut_middle

from . import plain
from .limits import Limits

_START = 64 * 1024
_COUNTED = 1024 * 1024
_DELIMITERS = ",\t;|"
_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_LOOKED_AT = 40
_WIDTHS = (200, 80, 40, 20, 10)


def preview(content: Content, limits: Limits) -> Preview:
    """Header and rows, cells shortened. A cell's line breaks are shown as ``⏎``."""
    head = content.text(0, _START)
    delimiter = delimiter_of(head, cut=content.size > _START) or _most_frequent(head)
    rows = _rows(head, delimiter)
    shown = [row for _, row in zip(range(limits.items + 1), rows, strict=False)]
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


def delimiter_of(head: str, *, cut: bool) -> str | None:
    """The delimiter of a table that begins with a header row, ``None`` where the text is none.

    Every row has as many cells as the header, at least three rows of two, and the header reads like one.
    """
    for delimiter in _DELIMITERS:
        first = head.partition("\n")[0]
        if delimiter not in first:
            continue
        rows = [row for _, row in zip(range(_LOOKED_AT + 1), _rows(head, delimiter), strict=False)]
        if cut and len(rows) <= _LOOKED_AT:
            del rows[-1:]  # it may end inside
        if len(rows) >= 3 and len({len(row) for row in rows}) == 1 and _is_header(rows[0], rows[1]):
            return delimiter
    return None


def _is_header(header: list[str], row: list[str]) -> bool:
    named = [cell.strip() for cell in header if cell.strip()]
    if len(header) < 2 or len(named) < len(header) - 1 or len(set(named)) < len(named):
        return False
    if len(header) == 2 and header[1][:1] == " ":  # a comma in prose
        return False
    if all(set(cell.strip()) <= set("-:=+") for cell in row):  # a table drawn with lines
        return False
    return all(len(cell) <= 80 for cell in named) and sum(cell[0].isdigit() for cell in named) * 2 < len(named)


def _rows(head: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(head.removeprefix("\ufeff"), newline=""), delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a cell over 128 KiB cannot be in the start; a NUL or a stray return can
            return
        if row:
            yield row


def _most_frequent(head: str) -> str:
    first = head.partition("\n")[0]
    return max(_DELIMITERS, key=first.count)


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
    return sum(1 for _ in _rows(content.text(0, content.size), delimiter)) - 1
