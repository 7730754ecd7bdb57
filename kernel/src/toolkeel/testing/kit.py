"""A kernel that loads what a test hands it, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolkeel.calls import Answer, ToolCall
from toolkeel.config import Config
from toolkeel.errors import PluginError
from toolkeel.kernel import Kernel, Session
from toolkeel.offer import Offer
from toolkeel.scope import Principal


class Kit:
    """An open kernel with one session and one offer.

    ``offer`` is made anew by ``refresh`` (after a plugin was disabled, say).
    """

    def __init__(self, kernel: Kernel, session: Session, offer: Offer) -> None:
        self.kernel = kernel
        self.session = session
        self.offer = offer

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        """Call one tool through all stages."""
        [answer] = await self.offer.call([ToolCall(tool, arguments, "call-1")])
        return answer

    async def batch(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Answer]:
        """Call several tools as one response of a model; the answers come in this order."""
        return await self.offer.call(
            [ToolCall(name, arguments, f"call-{index}") for index, (name, arguments) in enumerate(calls, 1)]
        )

    async def refresh(self, message: str = "") -> Offer:
        """Offer again, for another message."""
        request = self.session.request(message, principal=self.offer.request.principal)
        self.offer = await self.session.offer(request)
        return self.offer


@asynccontextmanager
async def kernel_with(
    *plugins: object,
    settings: Mapping[str, Any] | None = None,
    workspaces: Iterable[Path] = (),
    principal: Principal | None = None,
    message: str = "",
    agent: str = "main",
    session: str = "test",
    channel: str = "test",
    broken: bool = False,
) -> AsyncGenerator[Kit]:
    """Open a kernel with these plugins (modules or classes) and no discovery, and one session in it.

    Args:
        plugins: what to load, named after their modules or their ``NAME``.
        settings: nested settings, as an operator's file would have them.
        workspaces: the session's folders.
        principal: who asks; an administrator where it is not given.
        message: the message of the request.
        agent: the agent's id.
        session: the session's key.
        channel: the session's channel.
        broken: whether a quarantined plugin is expected; else it raises ``PluginError`` with the reason.
    """
    with tempfile.TemporaryDirectory(prefix="toolkeel-") as state:
        config = Config.of(settings or {}, state_folder=Path(state))
        async with (
            Kernel.open(config, plugins=plugins, discover=False) as kernel,
            kernel.session(agent=agent, session=session, channel=channel, workspaces=workspaces) as opened,
        ):
            for plugin in () if broken else kernel.plugins.list():
                if plugin.state == "quarantined":
                    what = f"is quarantined at {plugin.stage}: {plugin.reason}"
                    raise PluginError(what, where=f"plugin {plugin.name!r}", remedy=plugin.remedy)
            asked = opened.request(message, principal=principal or Principal("tester", "admin"))
            yield Kit(kernel, opened, await opened.offer(asked))
