"""What every tool checks of the texts it is given."""

from __future__ import annotations

from toolkeel import ToolError

MAX_TEXT = 1_000_000
"""Characters of a text that a tool takes as an argument."""


def checked(text: str, name: str = "text", limit: int = MAX_TEXT) -> str:
    """The text itself.

    Raises:
        ToolError: it is longer than the limit, or holds half a surrogate pair, which is no character.
    """
    if len(text) > limit:
        raise ToolError(
            f"{name} is too long: {len(text):,} characters, and the limit is {limit:,}",
            remedy="Work on a part of it at a time",
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name} holds half a surrogate pair (U+{ord(text[error.start]):04X}) as character {error.start + 1:,}",
            remedy="Leave it out; it is not a character",
        ) from error
    return text
