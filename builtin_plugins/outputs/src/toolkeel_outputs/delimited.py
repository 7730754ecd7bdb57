"""Tables written with a delimiter: which one, and the rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice

DELIMITERS = ",\t;|"
_LOOKED_AT = 40


def delimiter_of(head: str, *, cut: bool) -> str | None:
    """The delimiter of a table that begins with a header row, ``None`` where the text is none.

    Every row has as many cells as the header, at least three rows of two, and the header reads like one.
    """
    for delimiter in DELIMITERS:
        first = head.partition("\n")[0]
        if delimiter not in first:
            continue
        rows = list(islice(rows_of(head, delimiter), _LOOKED_AT + 1))
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


def rows_of(head: str, delimiter: str) -> Iterator[list[str]]:
    """The rows of a text that may be cut anywhere, without blank ones. Cells may hold quotes and line breaks."""
    reader = csv.reader(io.StringIO(head.removeprefix("\ufeff"), newline=""), delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a NUL, or a cell over 128 KiB
            return
        if row:
            yield row
