"""The command ``toolkeel house``, imported when it is run."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from toolkeel import ToolkeelError
from toolkeel_cli import Options

FLOORS = {"ground": ["Ann"], "upper": ["Bob", "Cem"]}


def house(options: Options, floor: Annotated[str, typer.Argument(help="Which floor")] = "ground") -> None:
    """Show who is on one floor."""
    if floor not in FLOORS:
        raise ToolkeelError(f"there is no floor {floor!r}", remedy=f"There are: {', '.join(FLOORS)}")
    print(json.dumps(FLOORS[floor]) if options.json else "\n".join(FLOORS[floor]))
