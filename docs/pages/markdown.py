"""From docstrings and values to Markdown."""

from __future__ import annotations

import json


def inline(markup: str) -> str:
    """A docstring's text: it writes code as ``code``, Markdown as `code`."""
    return markup.replace("``", "`").strip()


def line(markup: str) -> str:
    """The text on one line."""
    return " ".join(inline(markup).split())


def cell(markup: str) -> str:
    """The text for a cell of a table."""
    return line(markup).replace("|", "\\|")


def quoted(markup: str) -> str:
    """The text as a quotation, in its own lines."""
    return "\n".join(f"> {row}".rstrip() for row in inline(markup).splitlines())


def as_json(value: object) -> str:
    """A default value as it would stand in a file."""
    return json.dumps(value, ensure_ascii=False)
