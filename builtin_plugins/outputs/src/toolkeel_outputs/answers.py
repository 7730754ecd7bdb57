"""How answers about an output are written: how they end and what the call that reads on looks like."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .texts import cut_end, cut_middle

FOOTER = 1_024
"""Bytes of an answer that are kept for its last line."""


def quoted(text: str) -> str:
    """Text in double quotes, as JSON writes it; what does not print is escaped, so that it stays on its line."""
    written = json.dumps(text, ensure_ascii=False)
    return written if written.isprintable() else "".join(map(_printable, written))


def _printable(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def read_call(ref: str, **options: str | int) -> str:
    """A call of ``read_output`` as a model would write it."""
    written = "".join(
        f", {name}={quoted(value) if isinstance(value, str) else json.dumps(value)}" for name, value in options.items()
    )
    return f'read_output(ref="{ref}"{written})'


def ended(text: str, last: str) -> str:
    """An answer: the text as it is stored, then one line in brackets."""
    return f"{text}[{last}]" if not text or text.endswith("\n") else f"{text}\n[{last}]"


def described(tool: str, arguments: Mapping[str, object]) -> str:
    """A call in a few words: the tool and its arguments, shortened."""
    written = ", ".join(f"{name}={_brief(value)}" for name, value in list(arguments.items())[:10])
    return f"{tool}({cut_end(written, 200)})"


def _brief(value: object) -> str:
    if isinstance(value, str):
        return quoted(cut_middle(value, 60))
    if isinstance(value, (bool, int, float)) or value is None:
        return cut_end(json.dumps(value), 60)
    return "{…}" if isinstance(value, Mapping) else "[…]"
