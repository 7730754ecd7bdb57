"""The difference of two texts as a unified diff, in bounded time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import cast

from toolkeel import ToolError

from .lines import split_lines

MAX_WORK = 5_000_000
"""Pairs of lines that one comparison looks at: some second and a half."""
MAX_LINES = 50_000
_CONTEXT = 3
_NO_END = "\\ No newline at end of file"


def unified(before: str, after: str) -> str:
    """A unified diff of two texts; empty where they are equal but for the kind of their line breaks.

    Raises:
        ToolError: they have too many lines, or are too different to compare within the limit.
    """
    (old, old_end), (new, new_end) = split_lines(before), split_lines(after)
    for name, lines in (("text", old), ("other", new)):
        if len(lines) > MAX_LINES:
            raise ToolError(f"{name} has {len(lines):,} lines, and the limit for diff is {MAX_LINES:,}")
    # A last line without its break differs from the same line with one.
    first = _marked(old, old_end)
    second = _marked(new, new_end)
    output: list[str] = []
    for group in _Matcher(first, second).get_grouped_opcodes(_CONTEXT):
        output.extend(_hunk(group, first, second))
    if not output:
        return ""
    return "\n".join(["--- text", "+++ other", *output])


def _marked(lines: list[str], end: str) -> list[str]:
    return lines if end or not lines else [*lines[:-1], f"{lines[-1]}\n{_NO_END}"]


def _hunk(group: Sequence[tuple[str, int, int, int, int]], old: list[str], new: list[str]) -> Iterator[str]:
    old_range = _range(group[0][1], group[-1][2])
    new_range = _range(group[0][3], group[-1][4])
    yield f"@@ -{old_range} +{new_range} @@"
    for kind, old_start, old_stop, new_start, new_stop in group:
        if kind == "equal":
            yield from (f" {line}" for line in old[old_start:old_stop])
        else:
            yield from (f"-{line}" for line in old[old_start:old_stop])
            yield from (f"+{line}" for line in new[new_start:new_stop])


def _range(start: int, stop: int) -> str:
    """A range of lines as unified diffs write it: from 1, and an empty one at the line before it."""
    count = stop - start
    return str(start + 1) if count == 1 else f"{start + 1 if count else start},{count}"


class _Matcher(difflib.SequenceMatcher[str]):
    """The library's matcher, ended when it has looked at too many pairs of lines."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, before, after)
        self._before = before
        # Where each line of ``after`` stands: a documented attribute that the types do not know.
        self._places = cast("dict[str, list[int]]", vars(self)["b2j"])
        self._left = MAX_WORK

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        lines = self._before[alo:ahi]
        self._left -= len(lines) + sum(len(self._places[line]) for line in lines if line in self._places)
        if self._left < 0:
            raise ToolError(
                "the texts are too long and too different to compare within the limit",
                remedy="Compare parts of them, or look for what you need with regex",
            )
        return super().find_longest_match(alo, ahi, blo, bhi)
