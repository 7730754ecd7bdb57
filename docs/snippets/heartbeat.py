"""A background task: note the time of the last beat."""

from __future__ import annotations

import trio
from toolkeel import PluginContext, hookimpl

beats: list[float] = []


@hookimpl
async def plugin_start(context: PluginContext, nursery: trio.Nursery) -> None:
    """Start beating; the nursery ends it with the plugin."""
    nursery.start_soon(beat, context)


async def beat(context: PluginContext) -> None:
    """Beat every ten seconds."""
    while True:
        beats.append(context.clock())
        await trio.sleep(10)
