"""What selectors say: pins and rankings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Scale = Literal["unit", "open"]


class Pin(msgspec.Struct, frozen=True):
    """A tool that stays in whatever the ranking says, and why."""

    name: str
    reason: str


class Ranking(msgspec.Struct, frozen=True):
    """How well each name fits the request; names that are missing have no score.

    ``scale``: ``unit`` scores lie between 0 and 1 and compare across requests (cosines, probabilities); ``open`` ones
    only order this request (BM25). ``source`` names the ranker in ``explain``.
    """

    scores: Mapping[str, float]
    scale: Scale = "open"
    source: str = ""
