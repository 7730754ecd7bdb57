"""When work in a worker thread has to stop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import trio


class Watch:
    """A deadline that long work asks now and then; it also ends the thread of a call that was cancelled.

    Args:
        seconds: how long the work may take.
        clock: seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    @property
    def over(self) -> bool:
        """Whether the time is up.

        Raises:
            trio.Cancelled: nobody waits for this work any more.
        """
        with contextlib.suppress(RuntimeError):  # a direct call: the thread is not one of trio's
            trio.from_thread.check_cancelled()
        return self._clock() >= self._end
