"""Skills and prompt sections: passive context that plugins contribute."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

Layer = Literal["system", "session", "message"]


class Skill(msgspec.Struct, frozen=True):
    """Written know-how for a kind of task; nothing in it runs.

    ``description`` is the catalogue line, ``body`` what the model reads when it uses the skill, ``folder`` where its
    files are (``None`` when it has none). ``tools`` names the tools it needs; ``origin`` says who brought it.
    """

    name: str
    description: str
    body: str = ""
    folder: Path | None = None
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: str = ""


class PromptSection(msgspec.Struct, frozen=True):
    """One part of a prompt.

    ``layer``: ``system`` is stable over the session, ``session`` is made once per session, ``message`` follows each
    message of the person. Lower ``priority`` comes first and is dropped last when a layer is over its budget.
    """

    name: str
    text: str
    layer: Layer = "system"
    priority: int = 100
