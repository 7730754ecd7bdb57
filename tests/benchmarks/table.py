"""What a benchmark reports: rows against their limits, as text and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Direction = Literal["at most", "at least"]


@dataclass(frozen=True)
class Row:
    """One measured figure.

    ``value`` is in ``unit`` (``µs``, ``ms``, ``s``, ``×`` …) and is what the limit is about; ``median`` is the median
    over the rounds where ``value`` is their best. ``limit`` is ``None`` for figures that only inform. ``note`` says
    what was measured, or why a figure is what it is. ``value`` is ``None`` where it could not be measured; ``note``
    then says why.
    """

    name: str
    value: float | None
    unit: str
    limit: float | None = None
    direction: Direction = "at most"
    median: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the value is inside its limit; ``None`` where there is no limit or no value."""
        if self.limit is None or self.value is None:
            return None
        return self.value <= self.limit if self.direction == "at most" else self.value >= self.limit


@dataclass(frozen=True)
class Section:
    """Rows that belong together, with a sentence on how they were measured."""

    title: str
    text: str
    rows: Sequence[Row]


def figure(value: float | None, unit: str) -> str:
    """A value with its unit, in three significant digits or so."""
    if value is None:
        return "–"
    digits = 0 if value >= 100 or not unit else 1 if value >= 10 else 2
    number = f"{value:,.{digits}f}"
    return f"{number}{unit}" if unit in ("×", "%") else f"{number} {unit}".strip()


def cells(row: Row) -> tuple[str, str, str, str, str, str]:
    """A row as the columns of ``HEAD``."""
    sign = {"at most": "≤", "at least": "≥"}[row.direction]
    limit = "" if row.limit is None else f"{sign} {figure(row.limit, row.unit)}"
    mark = {True: "✓", False: "✗", None: "" if row.limit is None else "–"}[row.holds]
    median = "" if row.median is None else figure(row.median, row.unit)
    return row.name, figure(row.value, row.unit), median, limit, mark, row.note


HEAD = ("what", "value", "median", "limit", "", "note")


def as_text(sections: Iterable[Section]) -> str:
    """Sections as plain tables, for a terminal."""
    parts: list[str] = []
    for section in sections:
        rows = [HEAD, *map(cells, section.rows)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
        parts.append(f"{section.title}\n{'=' * len(section.title)}")
        parts += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        parts.append("")
    return "\n".join(parts)


def paragraph(text: str) -> str:
    """Running text in lines."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def as_markdown(sections: Iterable[Section]) -> str:
    """Sections as Markdown, each a heading, a sentence and a table."""
    parts: list[str] = []
    for section in sections:
        parts += [f"## {section.title}", "", paragraph(section.text), ""]
        parts += [f"| {' | '.join(HEAD)} |", "|---|---:|---:|---:|:---:|---|"]
        parts += [f"| {' | '.join(cell.replace('|', '/') for cell in cells(row))} |" for row in section.rows]
        parts.append("")
    return "\n".join(parts)
