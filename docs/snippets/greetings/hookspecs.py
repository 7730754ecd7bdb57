"""What other plugins may add to a greeting."""

from __future__ import annotations

from toolkeel import hookspec


@hookspec("collect")
def greeting_words(name: str) -> str | None:
    """Add words to the greeting of somebody.

    Args:
        name: who is greeted.

    Returns:
        A few words, or ``None``.

    Since 1.
    """
