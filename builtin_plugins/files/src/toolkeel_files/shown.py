"""How names, sizes and counts are written in answers."""

from __future__ import annotations

import json

from toolkeel import ToolError

_NAME_LIMIT = 300


def shown(path: str) -> str:
    """A path that prints on one line and as what it is; odd ones as a JSON string that a model can send back."""
    text = path if path.isprintable() else _quoted(path)
    return text if len(text) <= _NAME_LIMIT else f"{text[:_NAME_LIMIT]}… ({len(path):,} characters)"


def _quoted(path: str) -> str:
    plain = json.dumps(path, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in plain)


def count(number: int, thing: str, things: str = "") -> str:
    """``1 line``, ``2,000 lines``, ``3 matches``."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def size(number: int) -> str:
    """A size for people: exact up to 10,000 bytes, rounded above."""
    if number < 10_000:
        return count(number, "byte")
    amount = float(number)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1_024
        if amount < 1_000:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1_024:,.1f} TiB"


def trouble(error: OSError, path: str, *, doing: str) -> ToolError:
    """What the system said, as an answer: what was tried, where, and what to do where that is known."""
    return ToolError(f"cannot be {doing}: {reason(error)}", where=shown(path))


def reason(error: OSError) -> str:
    """The system's words for an error, without its paths."""
    return (error.strerror or type(error).__name__).lower()
