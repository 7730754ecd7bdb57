"""Names what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A remedy that names the nearest of the names; empty where none is near."""
    near = difflib.get_close_matches(name, list(names), 1)
    return f"Did you mean {near[0]!r}?" if near else ""
