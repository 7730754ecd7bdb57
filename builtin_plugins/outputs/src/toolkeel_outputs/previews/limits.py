"""How much a preview may show."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """``characters`` is for the whole preview; ``items`` counts JSON items, keys and CSV rows."""

    characters: int = 4_000
    items: int = 5
    lines: int = 60
    xml_lines: int = 10
