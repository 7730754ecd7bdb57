"""The hook by which plugins add commands, and what they add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

import toolkeel


class Command(msgspec.Struct, frozen=True):
    """A command ``toolkeel NAME``.

    ``target`` is ``"package.module:function"``, imported when the command is run or its help is asked for, so that
    offering a command costs nothing; or the function itself. It is a typed function as typer takes them, sync or async
    (an async one runs under trio, and Ctrl-C cancels it); a parameter annotated ``toolkeel_cli.Options`` gets the
    options that every command has. It returns its exit code, or ``None`` for 0. What it raises is shown as toolkeel
    shows its own errors: a ``ToolkeelError`` with place and remedy.

    ``commands`` are those below this one (``toolkeel NAME SUB``); then ``target`` runs where no further one is named.
    """

    name: str
    help: str
    target: str | Callable[..., Any]
    commands: tuple[Command, ...] = ()


@toolkeel.hookspec("collect")
def cli_commands() -> Command | Iterable[Command] | None:
    """Add commands to ``toolkeel``.

    Called when a command is run that toolkeel itself does not have, and for the list of commands. A name that toolkeel
    or an earlier plugin has is not replaced: the later one is left out with a note.

    Returns:
        One command, several, or ``None``.

    Since 1.
    """
