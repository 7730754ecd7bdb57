"""The options that every command takes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from toolkeel.scope import Role


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a command was asked for beside its own arguments.

    A command's function gets it through a parameter annotated ``Options``, which is no argument of the command line.
    ``settings`` are ``path=value`` pairs; ``workspaces`` is empty where none was named. ``verbose`` counts ``-v``.
    """

    json: bool = False
    workspaces: tuple[Path, ...] = ()
    agent: str = "main"
    session: str = "main"
    role: Role = "admin"
    settings: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    verbose: int = 0
    trace: bool = False
