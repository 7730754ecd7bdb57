"""One life of one plugin: its state, and why it is in it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import trio

from .discovery import Source
from .hookspecs import PluginContext

State = Literal["active", "disabled", "listed", "quarantined"]
Stage = Literal["", "found", "needs", "import", "settings", "create", "hooks", "start", "register", "run"]


class PluginInfo(msgspec.Struct, frozen=True):
    """What lists of plugins show.

    ``stage`` is where a quarantined plugin failed (``import``, ``settings``, ``hooks``, ``start`` …), ``reason`` what
    happened, ``remedy`` what to do. ``notes`` are failures of its hooks that stopped nothing, newest last.
    """

    name: str
    state: State
    source: str
    kind: str
    version: str = ""
    description: str = ""
    priority: int = 100
    stage: Stage = ""
    reason: str = ""
    remedy: str = ""
    hooks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    digest: str = ""


class Plugin:
    """One life of one plugin. A reload makes a new one; calls in flight keep the old."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.name = source.name
        self.state: State = "listed"
        self.stage: Stage = ""
        self.reason = ""
        self.remedy = ""
        self.priority = 100
        self.implementer: object = None
        self.section = ""
        self.context: PluginContext | None = None
        self.notes: list[str] = []
        self.given: dict[str, tuple[Any, ...]] = {}
        self.calls = 0
        self._idle: trio.Event | None = None
        self.stopping = trio.Event()
        self.stopped = trio.Event()

    @property
    def active(self) -> bool:
        """Whether its hooks and tools count."""
        return self.state == "active"

    def enter(self, stage: Stage) -> None:
        """Go on to the next stage of loading; ends a thread that comes back after its plugin was given up."""
        if self.state == "quarantined":
            raise TooLate
        self.stage = stage

    def call_ended(self) -> None:
        """A call of one of its tools ended."""
        self.calls -= 1
        if self._idle is not None and self.calls == 0:
            self._idle.set()

    async def idle(self) -> None:
        """Wait until no call of its tools runs."""
        if self.calls:
            self._idle = trio.Event()
            await self._idle.wait()


class TooLate(Exception):
    """It came back after it was given up."""
