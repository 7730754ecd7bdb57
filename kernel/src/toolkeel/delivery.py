"""Delivery of lifecycle events to observers, off the path of the calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import trio

from .events import Event
from .hooks import HookFailure, HookSet, Implementation, Report
from .pool import EventGate
from .watch import Watch, Watched

_PATIENCE = 3
_LINGER = 0.002
"""Seconds that the task stays near after a delivery: under load events are taken in bundles, not one wake-up each."""


class Delivery(Watched):
    """A bounded queue and the one task that empties it, in order, observer by observer.

    Nothing is dropped: while the queue is full no call starts (``room``). An observer that runs into its time limit
    three times in a row is suspended and reported, until its plugin is loaded anew.
    """

    def __init__(self, hooks: Callable[[], HookSet], watch: Watch, report: Report, size: int, limit: float) -> None:
        super().__init__()
        self.running = False
        self._hooks = hooks
        self._watch = watch
        self._report = report
        self._size = size
        self._limit = limit
        self._queue: deque[tuple[str, Event]] = deque()
        self._event: Event | None = None
        self._left: Iterator[Implementation] = iter(())
        self._at: Implementation | None = None
        self._gate = EventGate()
        self._urgent = EventGate()
        self._parked = False
        self._room: trio.Event | None = None
        self._empty: trio.Event | None = None
        self._strikes: dict[Implementation, int] = {}

    @property
    def full(self) -> bool:
        """Whether calls must wait for observers."""
        return len(self._queue) >= self._size

    @property
    def idle(self) -> bool:
        """Whether every event was delivered."""
        return not self._queue and self._at is None

    def emit(self, hook: str, event: Event) -> None:
        """Queue an event for the observers of ``hook``. Never waits."""
        self._queue.append((hook, event))
        if self._parked:
            self._gate.open()

    async def room(self) -> None:
        """Wait until the queue is not full."""
        while self.full:
            self._urgent.open()
            if self._room is None:
                self._room = trio.Event()
            await self._room.wait()

    async def run(self) -> None:
        """Deliver until cancelled."""
        self.running = True
        try:
            while True:
                self.overdue = False
                with trio.CancelScope() as self.scope:
                    await self._deliver()
                if not self.overdue:
                    return
        finally:
            self.running = False
            self._parked = False
            self._watch.disarm(self)

    async def drain(self, limit: float) -> bool:
        """Wait until all is delivered, at most ``limit`` seconds; returns whether it was."""
        with trio.move_on_after(limit):
            while not self.idle:
                self._urgent.open()
                if self._empty is None:
                    self._empty = trio.Event()
                await self._empty.wait()
        return self.idle

    async def _deliver(self) -> None:
        if self._at is not None:  # it was overdue; the others of its event go on
            self._struck(self._at)
        delivered = False
        while True:
            for one in self._left:
                self._at = one
                await self._tell(one, self._event)
                if self.overdue:  # the observer swallowed its time-out; the scope is spent all the same
                    return
            self._at = None
            if self._room is not None and not self.full:
                self._room.set()
                self._room = None
            if self._queue:
                delivered = True
                hook, self._event = self._queue.popleft()
                self._left = iter(self._hooks()[hook])
                continue
            self._watch.disarm(self)
            if self._empty is not None:
                self._empty.set()
                self._empty = None
            await self._rest(delivered)
            delivered = False

    async def _rest(self, delivered: bool) -> None:
        """Wait for the next event: at first only for what is urgent, then for anything."""
        if delivered:
            with trio.move_on_after(_LINGER):
                await self._urgent.wait()
            if self._queue:
                return
        self._parked = True
        await self._gate.wait()
        self._parked = False

    async def _tell(self, one: Implementation, event: Event | None) -> None:
        strikes = self._strikes
        if strikes and strikes.get(one, 0) >= _PATIENCE:
            return
        self._watch.arm(self, self._limit)
        try:
            await one.function(event)
        except BaseException as error:  # noqa: BLE001 - failure() lets interrupts and cancellation through
            self._report(one.failure(error))
        else:
            if strikes and not self.overdue:
                strikes.pop(one, None)

    def _struck(self, one: Implementation) -> None:
        strikes = self._strikes[one] = self._strikes.get(one, 0) + 1
        self._report(one.overdue(self._limit))
        if strikes == _PATIENCE:
            what = f"is suspended after {_PATIENCE} time-outs in a row; reload the plugin to try again"
            self._report(HookFailure(one.plugin, one.hook, what))
