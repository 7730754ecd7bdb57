"""The tool `read_output`: parts of a stored output, each answer bounded and saying how to read on."""

from __future__ import annotations

from typing import Literal

from toolkeel import Text, ToolContext, ToolError

from .answers import quoted
from .parts import Parts
from .store import Gone, Output, OutputStore
from .texts import duration

Mode = Literal["head", "tail", "slice", "search", "all"]
Unit = Literal["lines", "bytes"]

_MANY = 10**15
_CONTEXT = 20


class Reading:
    """Reads outputs of one store. ``limit`` bounds every answer, in bytes of UTF-8."""

    def __init__(self, store: OutputStore, limit: int) -> None:
        self._store = store
        self._limit = limit

    def read_output(
        self,
        call: ToolContext,
        ref: str,
        mode: Mode = "head",
        lines: int = 100,
        start: int | None = None,
        end: int | None = None,
        unit: Unit = "lines",
        query: str = "",
        regex: bool = False,
        context: int = 2,
    ) -> Text:
        """Read parts of a large output that was stored under a ref. Every answer ends with the call that reads on.

        Args:
            ref: The ref in the output's header, such as "out_7f3k2a9qzm4xw".
            mode: "head" and "tail": the first or last lines. "slice": from start to end. "search": the lines that hold
                query, with some lines around each. "all": the whole, up to 80 KB.
            lines: How many lines head, tail and a slice without end give; how many matching lines search gives.
            start: First line of a slice or search, counted from 1 (with unit "bytes": first byte, counted from 0).
            end: Last line of a slice or search (with unit "bytes": the byte behind the last one).
            unit: What start and end count. "bytes" is for very long lines.
            query: What to search for: the words themselves, in any letter case.
            regex: Take query as an RE2 regular expression, matched within a line.
            context: Lines to show before and after each matching line, up to 20.
        """
        output = self._find((call.scope.agent, call.scope.session), ref.strip())
        lowest = 1 if unit == "lines" else 0
        _check(lines, start, end, context, lowest, unit)
        lines, start, end = min(lines, _MANY), start and min(start, _MANY), end and min(end, _MANY)
        if mode == "search":
            from .search import Query, search

            return Text(search(output, Query(query, regex, lines, start, end, unit, context), self._limit))
        if query:
            raise ToolError(f'query is for mode="search", not for "{mode}"', remedy='Use mode="search", or no query')
        parts = Parts(output, self._limit)
        if output.content.size == 0 or mode == "all":
            return Text(parts.whole())
        first = (start or lowest) - lowest if mode == "slice" else 0
        last = end if end is not None and mode == "slice" else None
        if mode == "tail":
            return Text(parts.last_rows(lines) if output.binary else parts.tail(lines))
        if unit == "bytes" and mode == "slice":
            return Text(parts.bytes(first, last))
        last = first + lines if last is None else last
        return Text(parts.rows(first, last) if output.binary else parts.lines(first, last, lines))

    def _find(self, session: tuple[str, str], ref: str) -> Output:
        found = self._store.find(session, ref)
        if found is None:
            raise ToolError(
                f"there is no output {quoted(ref[:60])} in this session",
                remedy="Take the ref from the header of an earlier result; if there is none, call that tool again",
            )
        if isinstance(found, Gone):
            why = {
                "old": f"outputs are kept for {duration(self._store.ttl)}",
                "many": f"it made room for newer ones, {self._store.max_entries:,} are kept for each agent",
                "large": f"it made room for newer ones, {self._store.max_bytes:,} bytes are kept in all",
            }[found.why]
            raise ToolError(
                f"the output {ref} of {found.call} has expired: {why}",
                remedy=f"Call {found.tool} again and use the ref of its new result",
            )
        return found


def _check(lines: int, start: int | None, end: int | None, context: int, lowest: int, unit: Unit) -> None:
    if lines < 1:
        raise ToolError("lines must be 1 or more")
    if not 0 <= context <= _CONTEXT:
        raise ToolError(f"context must be from 0 to {_CONTEXT}")
    if start is not None and start < lowest:
        raise ToolError(f"start counts {unit} from {lowest}", remedy='mode="tail" reads the end')
    if end is not None and end < max(lowest, start or lowest):
        raise ToolError("end comes before start", remedy="Give the larger number as end")
