"""The bounded pool that calls run on."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

import trio.lowlevel as lowlevel


class Pool:
    """So many slots; who finds none waits, sessions in turn; who finds the waiting room full waits at its door.

    Nothing is dropped: the caller's own task waits, which is the back-pressure. ``workers`` calls run at once and
    ``waiting`` batches wait. Only one loop may use it.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        self.workers = workers
        self.waiting = waiting
        self._free = workers
        self._returning: deque[lowlevel.Task] = deque()
        self._queues: OrderedDict[str, deque[lowlevel.Task]] = OrderedDict()
        self._queued = 0
        self._door: deque[lowlevel.Task] = deque()
        self._inside = 0

    @property
    def free(self) -> int:
        """Slots that nobody holds."""
        return self._free

    @property
    def queued(self) -> int:
        """Batches that wait for a slot."""
        return self._queued

    @property
    def at_door(self) -> int:
        """Batches that wait for a place in the waiting room."""
        return len(self._door)

    def try_enter(self) -> bool:
        """Take a place in the waiting room if there is one: as many as wait, and one for each free slot."""
        if self._inside < self._free + self.waiting and not self._door:
            self._inside += 1
            return True
        return False

    async def enter(self) -> None:
        """Take a place in the waiting room, waiting at the door while it is full."""
        if not self.try_enter():
            await self._wait(self._door)  # whoever admits us takes the place in our name

    def leave(self) -> None:
        """Leave the waiting room: with a first slot, or for good."""
        self._inside -= 1
        self._admit()

    def try_acquire(self) -> bool:
        """Take a slot if one is free and nobody waits for it."""
        if self._free > 0 and not self._queued and not self._returning:
            self._free -= 1
            return True
        return False

    def try_acquire_more(self) -> bool:
        """Take a further slot for a batch that has one: not those that batches without any are about to take."""
        return self._free > self._inside and self.try_acquire()

    async def acquire(self, session: str) -> None:
        """Take a slot, waiting in the session's queue; sessions are served in turn."""
        if self.try_acquire():
            return
        queue = self._queues.get(session)
        if queue is None:
            queue = self._queues[session] = deque()
        self._queued += 1

        def given_up() -> None:
            self._queued -= 1
            if not queue and self._queues.get(session) is queue:
                del self._queues[session]

        await self._wait(queue, given_up)

    async def regain(self) -> None:
        """Take back a slot that was given away for a while: ahead of everyone who never had one."""
        if self._free > 0:
            self._free -= 1
        else:
            await self._wait(self._returning)

    def release(self) -> None:
        """Give a slot back: to one who returns, else to the next session's first, else to nobody."""
        if self._returning:
            lowlevel.reschedule(self._returning.popleft())
        elif self._queues:
            session, queue = self._queues.popitem(last=False)
            task = queue.popleft()
            if queue:
                self._queues[session] = queue
            self._queued -= 1
            lowlevel.reschedule(task)
        else:
            self._free += 1
            self._admit()

    def contended(self, session: str) -> bool:
        """Whether somebody other than ``session`` waits for a slot."""
        if self._returning:
            return True
        queues = self._queues
        return bool(queues) and (len(queues) > 1 or session not in queues)

    def _admit(self) -> None:
        while self._door and self._inside < self._free + self.waiting:
            self._inside += 1
            lowlevel.reschedule(self._door.popleft())

    async def _wait(self, queue: deque[lowlevel.Task], given_up: Callable[[], None] | None = None) -> None:
        task = lowlevel.current_task()
        queue.append(task)

        def abort(_raise_cancel: object) -> lowlevel.Abort:
            queue.remove(task)
            if given_up is not None:
                given_up()
            return lowlevel.Abort.SUCCEEDED

        await lowlevel.wait_task_rescheduled(abort)


class EventGate:
    """A flag that one task waits for and sync code raises; raising it twice is one wake-up."""

    def __init__(self) -> None:
        self._raised = False
        self._waiter: lowlevel.Task | None = None

    def open(self) -> None:
        """Raise the flag."""
        self._raised = True
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            lowlevel.reschedule(waiter)

    async def wait(self) -> None:
        """Wait until the flag is raised, then lower it."""
        if not self._raised:
            self._waiter = lowlevel.current_task()

            def abort(_raise_cancel: object) -> lowlevel.Abort:
                self._waiter = None
                return lowlevel.Abort.SUCCEEDED

            await lowlevel.wait_task_rescheduled(abort)
        self._raised = False
