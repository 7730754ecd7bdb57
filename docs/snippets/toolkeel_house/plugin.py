"""The hooks of toolkeel-house."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkeel import hookimpl

if TYPE_CHECKING:
    from toolkeel_cli import Command


@hookimpl(optionalhook=True)
def cli_commands() -> Command:
    """Add ``toolkeel house``; without toolkeel-cli nobody asks."""
    from toolkeel_cli import Command

    return Command("house", "Show who is in the house", "toolkeel_house.commands:house")
