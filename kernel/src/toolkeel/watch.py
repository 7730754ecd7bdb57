"""The watch: one task that ends what is overdue."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import logging
import math
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import trio

_FOREVER = math.inf


class Watched:
    """Work that the watch may end: it cancels ``scope`` once ``deadline`` is past, and sets ``overdue`` first."""

    scope: trio.CancelScope | None = None
    deadline = _FOREVER
    overdue = False


class Watch:
    """Ends overdue work without a deadline of trio's per piece: setting one is an assignment.

    The task sleeps until the earliest deadline it knows; later deadlines never wake it.
    """

    def __init__(self) -> None:
        self._watched: set[Watched] = set()
        self._sleep: trio.CancelScope | None = None
        self._next = _FOREVER
        self._now: Callable[[], float] = trio.current_time

    def arm(self, watched: Watched, seconds: float) -> None:
        """Give it so many seconds from now."""
        deadline = self._now() + seconds
        watched.deadline = deadline
        self._watched.add(watched)
        if deadline < self._next:
            self._next = deadline
            if self._sleep is not None:
                self._sleep.deadline = deadline

    def disarm(self, watched: Watched) -> float:
        """Watch it no more; answers the deadline that it had."""
        deadline = watched.deadline
        watched.deadline = _FOREVER
        self._watched.discard(watched)
        return deadline

    async def run(self) -> None:
        """Keep watch until cancelled."""
        self._now = trio.lowlevel.current_clock().current_time  # the same, without asking for the loop each time
        while True:
            with trio.CancelScope(deadline=self._next) as self._sleep:
                await trio.sleep_forever()
            now = trio.current_time()
            for watched in [one for one in self._watched if one.deadline <= now]:
                self.disarm(watched)
                watched.overdue = True
                if watched.scope is not None:
                    watched.scope.cancel()
            self._next = min((watched.deadline for watched in self._watched), default=_FOREVER)


class Watchdog:
    """Names sync code that blocks the loop, by its stack: a thread asks the loop for a sign of life.

    A loop that does not answer within ``patience`` seconds is reported once per stall.
    """

    def __init__(self, log: logging.Logger, report: Callable[[str], None], patience: float = 1.0) -> None:
        self._log = log
        self._report = report
        self._patience = patience
        self._stop = threading.Event()

    def start(self) -> None:
        """Watch the loop of the calling task until ``stop``."""
        token = trio.lowlevel.current_trio_token()
        arguments = (token, threading.get_ident())
        threading.Thread(target=self._watch, args=arguments, name="toolkeel-watchdog", daemon=True).start()

    def stop(self) -> None:
        """End the watch."""
        self._stop.set()

    def _watch(self, token: trio.lowlevel.TrioToken, thread: int) -> None:
        while not self._stop.wait(self._patience):
            answered = threading.Event()
            try:
                token.run_sync_soon(answered.set, idempotent=True)
            except trio.RunFinishedError:
                return
            if answered.wait(self._patience):
                continue
            frames = traceback.extract_stack(sys._current_frames().get(thread))
            start = _culprit(frames)
            if answered.is_set() or not frames:
                continue
            stack = "".join(traceback.format_list(frames[start:]))
            self._log.warning("the loop has been blocked for %.1f s by:\n%s", self._patience, stack)
            self._report(f"{frames[start].filename}:{frames[start].lineno} in {frames[start].name}")
            while not answered.wait(self._patience):
                if self._stop.is_set():
                    return


def _culprit(frames: list[traceback.FrameSummary]) -> int:
    """The first frame inside the innermost one of ours: whose code it is that does not come back."""
    ours = (str(Path(__file__).parent), str(Path(trio.__file__).parent))
    last = max((index for index, frame in enumerate(frames) if frame.filename.startswith(ours)), default=-1)
    return min(last + 1, len(frames) - 1)
