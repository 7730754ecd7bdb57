"""What the plugins of this repository bring, as a kernel that loaded them knows it."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import trio
from pydantic import BaseModel
from toolkeel import Config, Kernel, Tool

ROOT = Path(__file__).resolve().parent.parent.parent


class Shipped(NamedTuple):
    """What a plugin of this repository brings, as a kernel that loaded it knows it."""

    name: str
    section: str
    settings: type[BaseModel] | None
    tools: tuple[Tool, ...]
    hookspecs: ModuleType | None


@functools.cache
def shipped() -> tuple[Shipped, ...]:
    """The plugins of this repository, by name, loaded by a kernel with default settings."""
    return trio.run(_load)


async def _load() -> tuple[Shipped, ...]:
    names = sorted(path.parent.name for path in (ROOT / "builtin_plugins").glob("*/pyproject.toml"))
    with tempfile.TemporaryDirectory() as place:
        config = Config.of({"kernel": {"only": names}}, state_folder=Path(place))
        async with Kernel.open(config) as kernel, kernel.session(workspaces=[Path(place)]) as session:
            entries = (await session.table()).entries.values()
            found: list[Shipped] = []
            for name in names:
                plugin = kernel.plugins.get(name)
                if plugin is None or not plugin.active or plugin.context is None:
                    raise SystemExit(f"plugin {name!r} is not active; `toolkeel plugins` says why")
                settings = plugin.context.settings
                declare = getattr(plugin.implementer, "declare_hookspecs", None)
                found.append(
                    Shipped(
                        name,
                        plugin.section,
                        None if settings is None else type(settings),
                        tuple(entry.tool for entry in entries if entry.owner is plugin),
                        None if declare is None else declare(),
                    )
                )
    return tuple(found)
