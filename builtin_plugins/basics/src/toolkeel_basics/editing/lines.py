"""Changes that go line by line."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_NO_NUMBER = (1, Decimal(0))


def split_lines(text: str) -> tuple[list[str], str]:
    """The lines without their ends, and the end of the last one: a line break or nothing."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1]:
        return lines, ""
    return lines[:-1], "\n" if len(lines) > 1 else ""


def on_lines(text: str, change: Callable[[list[str]], list[str]]) -> str:
    """The text with its lines changed; line breaks become LF, and the last one stays as it was."""
    lines, end = split_lines(text)
    return "\n".join(change(lines)) + end


def trimmed(text: str) -> str:
    """The text without blanks at the ends of lines and without empty lines around it; indents stay."""
    return "\n".join(line.rstrip() for line in split_lines(text)[0]).strip("\n").rstrip()


def deduplicated(text: str, ignore_case: bool) -> str:
    """Each line once, where it comes first."""

    def change(lines: list[str]) -> list[str]:
        first: dict[str, str] = {}
        for line in lines:
            first.setdefault(line.casefold() if ignore_case else line, line)
        return list(first.values())

    return on_lines(text, change)


def ordered(text: str, ignore_case: bool, numeric: bool, descending: bool) -> str:
    """The lines in order: by code point, without regard to case, or by the first number of each line."""

    def number(line: str) -> tuple[int, Decimal]:
        match = _NUMBER.search(line)
        if match is None:
            return _NO_NUMBER
        value = Decimal(match.group())
        # Lines without a number come last in both directions.
        return 0, value.copy_negate() if descending else value

    def change(lines: list[str]) -> list[str]:
        if numeric:
            return sorted(lines, key=number)
        return sorted(lines, key=str.casefold if ignore_case else None, reverse=descending)

    return on_lines(text, change)


def numbered(text: str) -> str:
    """Each line behind its number."""

    def change(lines: list[str]) -> list[str]:
        width = len(str(len(lines)))
        return [f"{number:>{width}}: {line}" for number, line in enumerate(lines, 1)]

    return on_lines(text, change)


def backwards(text: str) -> str:
    """The last line first."""
    return on_lines(text, lambda lines: lines[::-1])


def wrapped(text: str, width: int) -> str:
    """The text with no line longer than ``width`` characters: broken at blanks, and in words that are longer."""
    return on_lines(text, lambda lines: [piece for line in lines for piece in _wrapped_line(line, width)])


def _wrapped_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    pieces: list[str] = []
    words: list[str] = []
    size = 0  # of the words and the blanks between them
    for part in (part for word in line.split() for part in _parts(word, width)):
        if words and size + 1 + len(part) > width:
            pieces.append(" ".join(words))
            words, size = [], 0
        size += len(part) + (1 if words else 0)
        words.append(part)
    return [*pieces, " ".join(words)]


def _parts(word: str, width: int) -> list[str]:
    return [word[start : start + width] for start in range(0, len(word), width)]
