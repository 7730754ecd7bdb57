"""Unicode normal forms, in bounded time."""

from __future__ import annotations

import unicodedata
from typing import Literal

from toolkeel import ToolError

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_MAX_MARKS = 100


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
    return unicodedata.normalize(form, text)
