"""Who asks, where, and for what: principal, scope, request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

import msgspec

from .errors import DefinitionError

Role = Literal["admin", "operator", "user", "service"]
Format = Literal["markdown", "plain"]

_NO_CONFIG: Mapping[str, object] = MappingProxyType({})


class Principal(msgspec.Struct, frozen=True):
    """The person or program on whose behalf a request runs.

    ``name`` is stable and safe to log. ``privileged`` is true for the role ``admin`` alone.
    """

    name: str
    role: Role = "user"

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise DefinitionError(f"role {self.role!r} is none of {', '.join(get_args(Role))}", where="Principal")

    @property
    def privileged(self) -> bool:
        """Whether rules for administrators apply."""
        return self.role == "admin"


class Scope(msgspec.Struct, frozen=True):
    """What a tool factory may know: one session of one agent (never a principal: that differs by request).

    ``workspaces`` are the registered folders, absolute and without links. ``channel`` is where the session talks
    (``cli``, ``api``, ``telegram`` …). ``config`` is the effective configuration as nested read-only mappings.
    """

    agent: str = "main"
    session: str = "main"
    channel: str = "cli"
    workspaces: tuple[Path, ...] = ()
    agent_folder: Path | None = None
    sandboxed: bool = False
    config: Mapping[str, object] = _NO_CONFIG


class Request(msgspec.Struct, frozen=True):
    """One message of a person and all that follows from it.

    ``surface`` names what drives the request (``cli``, ``api``, ``cron``, ``subagent`` …). ``tool_cap`` is the cap of a
    subagent run: a tool outside it is never offered, without exception; ``None`` means no cap. ``format`` is how
    results are written for this surface.
    """

    scope: Scope
    principal: Principal
    message: str = ""
    surface: str = "cli"
    attachments: tuple[str, ...] = ()
    tool_cap: frozenset[str] | None = None
    format: Format = "markdown"
    id: str = ""
