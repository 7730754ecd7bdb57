"""Hiding what is, or looks like, a secret in settings that are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

HIDDEN = "********"

_NAMES = re.compile(
    r"(password|passphrase|passwd|secret|token|api_?key|private_?key|credential|authorization|cookie|headers)s?$",
    re.IGNORECASE,
)
"""Names of settings whose values are secrets, theirs and those below them."""
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{10,}|\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\b(Bearer|Basic)\s+[\w.~+/=-]{8,}"
)
"""Values with the shape of a well-known kind of key, whatever the setting is called."""


def shown(value: object, names: Iterable[str] = ()) -> object:
    """A value as it may be shown under the given names, from the outermost to its own."""
    if value not in (None, "") and any(_NAMES.search(name) for name in names):
        return HIDDEN
    if isinstance(value, str):
        return HIDDEN if _SHAPES.search(value) else _USER.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {key: shown(inner, (str(key),)) for key, inner in members.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in cast("Iterable[Any]", value)]
    return value
