"""From docstrings and values to Markdown."""

from __future__ import annotations

import json
import re

_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~^]")


def inline(markup: str) -> str:
    """A docstring's text: it writes code as ``code``, Markdown as `code`."""
    return markup.replace("``", "`").strip()


def line(markup: str) -> str:
    """The text on one line."""
    return " ".join(inline(markup).split())


def cell(markup: str) -> str:
    """The text for a cell of a table."""
    return line(markup).replace("|", "\\|")


def literal(text: str) -> str:
    """Text that is no markup, such as what a model reads, for a cell of a table: every character stands for itself."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\g<0>", plain)


def as_json(value: object) -> str:
    """A default value as it would stand in a file."""
    return json.dumps(value, ensure_ascii=False)
