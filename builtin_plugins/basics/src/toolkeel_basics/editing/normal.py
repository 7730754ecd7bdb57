"""Unicode normal forms, in bounded time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Literal

from toolkeel import ToolError

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_MAX_MARKS = 100
_PIECE = 10_000
_REACH = 2 * _MAX_MARKS


def normalized(text: str, form: Form) -> str:
    """The text in a normal form.

    Raises:
        ToolError: a character carries more marks than any script uses; sorting them takes the square of their number.
    """
    if text.isascii():
        return text
    run = 0
    for at, character in enumerate(text):
        run = run + 1 if unicodedata.combining(character) else 0
        if run > _MAX_MARKS:
            raise ToolError(
                f"text has over {_MAX_MARKS} combining marks in a row, up to character {at + 1:,}",
                remedy="Leave them out; no script needs so many",
            )
    return "".join(unicodedata.normalize(form, piece) for piece in _pieces(text, form))


def _pieces(text: str, form: Form) -> Iterator[str]:
    """The text in parts that other threads can run between, cut where the normal form does not reach across."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        while end < len(text) and not _apart(text[end - _REACH : end], text[end : end + _REACH], form):
            end += 1
        yield text[start:end]
        start = end


def _apart(before: str, after: str, form: Form) -> bool:
    whole = unicodedata.normalize(form, before + after)
    return whole == unicodedata.normalize(form, before) + unicodedata.normalize(form, after)
