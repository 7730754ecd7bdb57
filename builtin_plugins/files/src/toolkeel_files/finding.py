"""Finding a text or an expression in bytes, in time linear in their number."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from toolkeel import ToolError

Find = Callable[[bytes, int], tuple[int, int] | None]
"""The first match at or after an index: where it begins and ends."""

_QUERY_BYTES = 10_000
_EXPRESSION_MEMORY = 64 << 20


class _Found(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Expression(Protocol):
    def search(self, text: bytes, pos: int) -> _Found | None: ...


def finder(query: str, *, regex: bool, ignore_case: bool) -> Find:
    """A search for a text as it is, or for an RE2 expression within single lines. Both in UTF-8.

    Raises:
        ToolError: the query is empty, too long, or no expression.
    """
    wanted = query.encode("utf-8", "replace")
    if not wanted:
        raise ToolError("the query is empty", remedy="Say what to look for; file_list lists files")
    if len(wanted) > _QUERY_BYTES:
        raise ToolError(f"the query has {len(wanted):,} bytes, more than {_QUERY_BYTES:,}")
    if regex or ignore_case:
        return _expression(query, regex=regex, ignore_case=ignore_case)

    def find(data: bytes, at: int) -> tuple[int, int] | None:
        found = data.find(wanted, at)
        return (found, found + len(wanted)) if found >= 0 else None

    return find


def _expression(query: str, *, regex: bool, ignore_case: bool) -> Find:
    re2: Any = import_module("re2")  # it has no types
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _EXPRESSION_MEMORY
    options.case_sensitive = not ignore_case
    options.literal = not regex
    options.never_nl = regex
    try:
        expression: _Expression = re2.compile(f"(?m){query}" if regex else query, options)
    except re2.error as error:
        said: object = error.args[0]
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise ToolError(
            f"the query is no regular expression: {words}",
            remedy="RE2 has no look-around and no back-references; leave regex out to look for the text as it is",
        ) from None
    re2.purge()  # the library keeps 128 expressions, each with all states that it has met

    def find(data: bytes, at: int) -> tuple[int, int] | None:
        found = expression.search(data, at)
        return found.span() if found else None

    return find
