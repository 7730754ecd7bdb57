"""Turn plugins off and on while calls run."""

from __future__ import annotations

from toolkeel import Kernel


async def take_turns(kernel: Kernel, name: str) -> list[str]:
    """Turn a plugin off, on, and load it anew; give its state after each."""
    states = [await kernel.plugins.disable(name), await kernel.plugins.enable(name), await kernel.plugins.reload(name)]
    return [info.state for info in states]
