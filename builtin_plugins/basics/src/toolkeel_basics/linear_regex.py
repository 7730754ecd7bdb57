"""Regular expressions in linear time: google-re2, typed, with its errors explained and its cost bounded."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import Any, Protocol

from toolkeel import ToolError

MAX_PATTERN = 5_000
MAX_WORK = 200_000_000
"""Steps of the compiled pattern times bytes of the text: what one search may take at worst, some two seconds.

Hardly a search comes near it: the worst case is a pattern that has more states than fit into memory.
"""
TIME_LIMIT = 2.0
"""Seconds that all searches of one call may take together, checked between two of them."""

_PACE = MAX_WORK / TIME_LIMIT
_FIRST = TIME_LIMIT / 4
_MAX_MEMORY = 8 << 20
_FREE_GROUPS = 30  # a search keeps the place of every group; thirty of them double its cost
_UNSUPPORTED = {
    "(?=": "look-ahead",
    "(?!": "look-ahead",
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?>": "an atomic group",
    "(?#": "a comment",
    "(?x": "the flag x",
    "(?(": "a condition",
    "(?|": "a branch reset",
}
_ESCAPES = {
    r"\Z": r"Write \z for the end of the text",
    r"\u": r"Write \x{1F600} for a character by its number",
    r"\N": "Write the character itself",
    r"\h": r"Write [ \t] instead",
    r"\R": r"Write (?:\r\n|\n|\r) instead",
    r"\K": "Capture the part you need in a group instead",
}


class Match(Protocol):
    """One match, as google-re2 gives it: the interface of ``re.Match``; offsets count characters."""

    def group(self, group: int | str = 0, /) -> str | None:
        """The text of a group, ``None`` where it took no part."""
        ...

    def groups(self) -> tuple[str | None, ...]:
        """The texts of all groups."""
        ...

    def groupdict(self) -> dict[str, str | None]:
        """The texts of the named groups."""
        ...

    def start(self, group: int = 0, /) -> int:
        """Where the group starts."""
        ...

    def end(self, group: int = 0, /) -> int:
        """Where the group ends."""
        ...


class _Expression(Protocol):
    @property
    def groups(self) -> int: ...
    @property
    def groupindex(self) -> dict[str, int]: ...
    @property
    def programsize(self) -> int: ...
    @property
    def reverseprogramsize(self) -> int: ...
    def finditer(self, text: str, /) -> Iterator[Match]: ...
    def fullmatch(self, text: str, /) -> Match | None: ...


class Pattern:
    """A compiled pattern. No search takes more time than the product of pattern and text, whatever they are.

    ``trusted``: its states are known to fit into memory, so that it runs on any text in the text's length alone.
    """

    def __init__(self, expression: _Expression, *, trusted: bool = False) -> None:
        self._expression = expression
        self._trusted = trusted
        self.groups = expression.groups
        self.names = dict(expression.groupindex)

    def matches(self, text: str) -> Iterator[Match]:
        """All matches that do not overlap, from left to right.

        Raises:
            ToolError: pattern and text together are too much work, or the matches took longer than the time limit.
        """
        work = self._check(text)
        begin = time.monotonic()
        for count, match in enumerate(self._expression.finditer(text)):
            taken = time.monotonic() - begin
            # The next search cannot be interrupted: past the first quarter, the worst of the rest must fit in too.
            if taken > _FIRST and taken + work * (1 - match.end() / len(text)) / _PACE > TIME_LIMIT:
                raise ToolError(
                    f"searching took longer than {TIME_LIMIT:g} s and was ended after {count:,} matches",
                    remedy="Use a shorter text, a limit, or a pattern that does not look far ahead",
                )
            yield match

    def full_match(self, text: str) -> Match | None:
        """The match of the whole text, if it does match; raises as ``matches`` does."""
        self._check(text)
        return self._expression.fullmatch(text)

    def _check(self, text: str) -> int:
        """What a search may take at worst, in steps."""
        if self._trusted:
            return 0
        steps = max(self._expression.programsize, self._expression.reverseprogramsize)
        size = len(text.encode())
        work = steps * size * (_FREE_GROUPS + self.groups) // _FREE_GROUPS
        if work > MAX_WORK:
            raise ToolError(
                f"this pattern on this text is too much work: it compiles to {steps:,} steps and the text has {size:,} "
                f"bytes, and the limit of their product is {MAX_WORK:,}, less with many groups",
                remedy="Use a shorter text, smaller repetitions, fewer groups, or ASCII classes in place of \\p{L}",
            )
        return work


def compile_pattern(
    pattern: str,
    *,
    ignore_case: bool = False,
    multiline: bool = False,
    dot_all: bool = False,
    literal: bool = False,
    trusted: bool = False,
) -> Pattern:
    """Compile a pattern in RE2 syntax; ``trusted`` as ``Pattern`` says, for patterns of our own.

    Raises:
        ToolError: it is too long or not valid; look-around and back-references are named as what they are.
    """
    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"the pattern is too long: {len(pattern):,} characters, and the limit is {MAX_PATTERN:,}")
    # Imported by name: the library has no types, and nothing of it should load before a pattern is used.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.case_sensitive = not ignore_case
    options.dot_nl = dot_all
    options.literal = literal
    # The option for line anchors works in POSIX syntax alone, so they are asked for in the pattern.
    source = f"(?m:{pattern})" if multiline and not literal else pattern
    try:
        expression: _Expression = re2.compile(source, options)
    except re2.error as error:
        raise _explained(error, pattern) from error
    if expression.programsize > 10_000:
        re2.purge()  # the library keeps 128 patterns, each with megabytes of states
    return Pattern(expression, trusted=trusted)


def _explained(error: Exception, pattern: str) -> ToolError:
    said = error.args[0] if error.args else b""
    message = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    what, _, part = message.partition(": ")
    if part.startswith("(?P") and "(?P=" in pattern:
        part = "(?P="
    where = f"pattern, column {pattern.index(part) + 1}" if part and pattern.count(part) == 1 else "pattern"
    if what == "pattern too large - compile failed":
        return ToolError("the pattern is too large once its repetitions are written out", where=where)
    if part in _UNSUPPORTED:
        return ToolError(
            f"{part!r} is {_UNSUPPORTED[part]}, which this linear-time engine (RE2) does not support",
            where=where,
            remedy="Match the surroundings too and capture the part you need in a group",
        )
    if (what == "invalid escape sequence" and part[1:2].isdigit()) or part in (r"\k", r"\g", "(?P="):
        return ToolError(
            f"{part!r} is a back-reference, which this linear-time engine (RE2) does not support",
            where=where,
            remedy="Match without it and compare the groups of the result",
        )
    if what == "bad repetition operator":
        return ToolError(
            f"{part!r} repeats a repetition", where=where, remedy="Possessive quantifiers are not supported"
        )
    shown = f"{what}: {part[:80]}" if part else what
    return ToolError(f"the pattern is not valid: {shown}", where=where, remedy=_ESCAPES.get(part, ""))
