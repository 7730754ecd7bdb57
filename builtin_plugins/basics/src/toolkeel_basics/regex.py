"""The tool ``regex``: search, match, replace and split by a regular expression, in linear time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from toolkeel import Data, ToolError, tool

from .linear_regex import Match, Pattern, compile_pattern
from .texts import checked

Operation = Literal["findall", "match_all", "search", "fullmatch", "replace", "split"]
Flag = Literal["ignore_case", "multiline", "dot_all", "literal"]
Fields = dict[str, object]

MAX_LISTED = 10_000
MAX_REPLACED_TEXT = 5_000_000
_DEFAULT_LISTED = 100
_ESCAPE = re.compile(r"\\(?:g<(\w+)>|([0-9]{1,2})|(.?))", re.DOTALL)
_ESCAPED = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


@tool(effect="read")
def regex(
    operation: Operation,
    pattern: str,
    text: str,
    replacement: str = "",
    flags: Sequence[Flag] = (),
    limit: int | None = None,
) -> Data:
    r"""Search, extract, replace or split text by a regular expression, exactly and in linear time (RE2 syntax).

    Use it rather than reading through text by eye: to pull out all values of a form, to check a format, to rewrite.
    RE2 has no look-around and no back-references in patterns. \d, \w and \b are ASCII; \p{L}, \p{N}, \p{Cyrillic} …
    match letters and digits of any script. \z is the end of the text.

    Args:
        operation: "findall" lists the matched texts (with groups in the pattern: the groups of each match).
            "match_all" lists every match with its position, line, groups and named groups. "search" gives the first
            match so. "fullmatch" says whether the whole text matches. "replace" gives the text with every match
            replaced. "split" cuts the text at every match.
        pattern: The regular expression, such as "(?P<year>\d{4})-(\d{2})". Inline flags such as (?i) work too.
        text: The text to work on, at most 1,000,000 characters.
        replacement: For "replace": the new text. \1 or \g<name> stands for a group, \0 for the whole match, \n for a
            line break, \\ for a backslash.
        flags: "ignore_case"; "multiline": ^ and $ match at every line; "dot_all": . matches line breaks; "literal":
            the pattern is plain text.
        limit: The most matches to list (100 if left out, at most 10,000), or to replace or cut at (all if left out).
    """
    checked(text)
    checked(pattern, "pattern")
    if limit is not None and limit < 1:
        raise ToolError(f"limit is {limit}: it counts matches and is at least 1", remedy="Leave it out for the default")
    compiled = compile_pattern(
        pattern,
        ignore_case="ignore_case" in flags,
        multiline="multiline" in flags,
        dot_all="dot_all" in flags,
        literal="literal" in flags,
    )
    if operation == "findall":
        return Data(_found(compiled, text, limit))
    if operation == "match_all":
        return Data(_matched(compiled, text, limit))
    if operation == "search":
        first = next(compiled.matches(text), None)
        return Data({"found": first is not None, **(_described(compiled, first, _Lines(text)) if first else {})})
    if operation == "fullmatch":
        match = compiled.full_match(text)
        return Data({"matches": match is not None, **(_groups(compiled, match) if match else {})})
    if operation == "replace":
        return Data(_replaced(compiled, text, checked(replacement, "replacement"), limit))
    return Data(_split(compiled, text, limit))


def _found(pattern: Pattern, text: str, limit: int | None) -> Fields:
    def value(match: Match) -> object:
        return match.group() if pattern.groups == 0 else match.group(1) if pattern.groups == 1 else match.groups()

    matches, more = _first(pattern.matches(text), limit)
    return _counted([value(match) for match in matches], more)


def _matched(pattern: Pattern, text: str, limit: int | None) -> Fields:
    lines = _Lines(text)
    matches, more = _first(pattern.matches(text), limit)
    return _counted([_described(pattern, match, lines) for match in matches], more)


def _first(matches: Iterator[Match], limit: int | None) -> tuple[list[Match], bool]:
    """The matches up to the limit, and whether there is another."""
    most = _DEFAULT_LISTED if limit is None else limit
    if most > MAX_LISTED:
        raise ToolError(f"limit is {most:,}: at most {MAX_LISTED:,} matches are listed")
    listed = list(itertools.islice(matches, most))
    return listed, next(matches, None) is not None


def _counted(matches: list[object] | list[Fields], more: bool) -> Fields:
    fields: Fields = {"count": len(matches), "matches": matches}
    if more:
        fields["more"] = f"There are more matches; these are the first {len(matches):,}. Give a larger limit"
    return fields


def _described(pattern: Pattern, match: Match, lines: _Lines) -> Fields:
    start = match.start()
    return {
        "match": match.group(),
        "start": start,
        "end": match.end(),
        "line": lines.line_of(start),
        **_groups(pattern, match),
    }


def _groups(pattern: Pattern, match: Match) -> Fields:
    fields: Fields = {"groups": match.groups()} if pattern.groups else {}
    if pattern.names:
        fields["named"] = match.groupdict()
    return fields


class _Lines:
    """Counts lines along a text, for positions that only grow."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def line_of(self, position: int) -> int:
        """The number of the line, from 1, that a position lies in."""
        self._line += self._text.count("\n", self._at, position)
        self._at = position
        return self._line


def _replaced(pattern: Pattern, text: str, replacement: str, limit: int | None) -> Fields:
    parts = _template(replacement, pattern)
    pieces: list[str] = []
    size = at = count = 0
    for match in itertools.islice(pattern.matches(text), limit):
        new = "".join(part if isinstance(part, str) else match.group(part[0]) or "" for part in parts)
        pieces += (text[at : match.start()], new)
        size += match.start() - at + len(new)
        if size > MAX_REPLACED_TEXT:
            raise ToolError(
                f"the new text is too long: after {count:,} replacements it has over {MAX_REPLACED_TEXT:,} characters",
                remedy="Use a shorter replacement or a limit",
            )
        at = match.end()
        count += 1
    pieces.append(text[at:])
    return {"replacements": count, "text": "".join(pieces)}


def _template(replacement: str, pattern: Pattern) -> list[str | tuple[int]]:
    """The replacement as literal parts and group numbers."""
    parts: list[str | tuple[int]] = []
    at = 0
    for match in _ESCAPE.finditer(replacement):
        parts.append(replacement[at : match.start()])
        at = match.end()
        name, number, escaped = match.groups()
        if escaped is not None and escaped in _ESCAPED:
            parts.append(_ESCAPED[escaped])
            continue
        where = f"replacement, column {match.start() + 1}"
        if escaped is not None:
            raise ToolError(
                f"\\{escaped} means nothing in a replacement", where=where, remedy="Write \\\\ for a backslash"
            )
        reference = name or number
        group = int(reference) if reference.isdigit() else pattern.names.get(reference, -1)
        if not 0 <= group <= pattern.groups:
            known = f"{pattern.groups} groups" + (f", named {', '.join(pattern.names)}" if pattern.names else "")
            raise ToolError(f"there is no group {reference!r}: the pattern has {known}", where=where)
        parts.append((group,))
    parts.append(replacement[at:])
    return parts


def _split(pattern: Pattern, text: str, limit: int | None) -> Fields:
    most = MAX_LISTED if limit is None else min(limit, MAX_LISTED)
    matches = pattern.matches(text)
    pieces: list[str] = []
    at = 0
    for match in itertools.islice((match for match in matches if match.end() > match.start()), most):
        pieces.append(text[at : match.start()])
        at = match.end()
    pieces.append(text[at:])
    fields: Fields = {"count": len(pieces), "pieces": pieces}
    if limit is None and len(pieces) > MAX_LISTED:
        fields["more"] = f"The text was cut {MAX_LISTED:,} times, which is the limit; the last piece is the rest"
    return fields
