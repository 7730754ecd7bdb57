"""The mutable records of calls while they live: a call, its batch, the task that pulls it."""

from __future__ import annotations

import itertools
import secrets
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import trio

from .calls import Answer, Call, CallRecord, Repair, Status, ToolCall, encodable
from .hooks import Implementation
from .offer import Entry, Offer, Progress
from .outputs import Result
from .tools import Key
from .watch import Watched

if TYPE_CHECKING:
    from .dispatch import Dispatcher

FOREVER = float("inf")
_PREFIX = secrets.token_hex(4)
_ids = itertools.count(1)


class Live:
    """The mutable record of one call while it lives; observers get frozen copies."""

    # What most calls never change stands on the class: a call is made of as few assignments as can be.
    status: Status = "pending"
    started: float | None = None
    ended: float | None = None
    entry: Entry | None = None
    repairs: tuple[Repair, ...] = ()
    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()
    call: Call | None = None
    result: Result | None = None
    answer: Answer | None = None
    reason = ""
    refused_by = ""
    setting = ""
    parent = ""
    depth = 0
    puller: Puller | None = None
    lent = 0
    remaining = FOREVER
    waits = 0
    dependents: Sequence[Live] = ()
    tool_returned = False
    delivering = False
    abandoned = False
    wants_thread = False
    blocked_by = ""
    asked: tuple[tuple[str, str], ...] = ()
    rounds = 0
    pulled = False
    with_person = False

    def __init__(self, batch: Batch, index: int, call: ToolCall) -> None:
        self.batch = batch
        self.index = index
        self.id = f"{_PREFIX}-{next(_ids):x}"
        self.model_id = encodable(call.id)
        self.name = encodable(call.name)
        self.arguments: Any = call.arguments
        if isinstance(call.arguments, str):
            self.arguments = encodable(call.arguments)
        self.values: dict[str, Any] = {}
        self.created = time.time()
        if batch.parent is not None:
            self.parent = batch.parent.id
            self.depth = batch.parent.depth + 1

    def holds_up(self, other: Live) -> bool:
        """Whether another call waits for this one, directly or through others."""
        todo, seen = list(self.dependents), set[int]()
        while todo:
            one = todo.pop()
            if one is other:
                return True
            if id(one) not in seen:
                seen.add(id(one))
                todo.extend(one.dependents)
        return False

    def record(self) -> CallRecord:
        """The state of this moment, frozen."""
        request = self.batch.offer.request
        scope, principal = request.scope, request.principal
        return CallRecord(
            id=self.id,
            model_id=self.model_id,
            tool=self.name,
            plugin=self.entry.owner.name if self.entry else "",
            arguments=self.arguments,
            status=self.status,
            agent=scope.agent,
            session=scope.session,
            principal=principal.name,
            role=principal.role,
            parent=self.parent,
            created=self.created,
            started=self.started,
            ended=self.ended,
            reason=encodable(self.reason),
            refused_by=self.refused_by,
            setting=self.setting,
            repairs=self.repairs,
            reads=self.reads,
            writes=self.writes,
        )


class Batch:
    """The calls of one response: what is ready, who pulls."""

    __slots__ = (
        "calls", "dispatcher", "entered", "nursery", "offer", "parent", "progress", "pullers", "ready", "recruiting",
        "session",
    )  # fmt: skip

    def __init__(
        self,
        dispatcher: Dispatcher,
        offer: Offer,
        calls: Sequence[ToolCall],
        parent: Live | None,
        progress: Progress | None,
    ) -> None:
        self.dispatcher = dispatcher
        self.offer = offer
        self.parent = parent
        self.progress = progress
        self.session = offer.queue
        self.calls = [Live(self, index, call) for index, call in enumerate(calls)]
        self.ready: deque[Live] = deque()
        self.pullers = 0
        self.recruiting = False
        self.entered = False
        self.nursery: trio.Nursery | None = None


class Puller(Watched):
    """A task that pulls ready calls and runs them one after another, in one slot of the pool."""

    __slots__ = ("hook", "live", "regaining", "slot", "turn")

    def __init__(self) -> None:
        super().__init__()
        self.live: Live | None = None
        self.hook: Implementation | None = None
        self.slot = False
        self.turn = 0.0
        self.regaining: trio.Event | None = None

    def wants_back(self, live: Live) -> bool:
        """Whether the slot that it lent out for a call is due again."""
        return live.lent == 0 and self.live is live and not self.slot


def hold(later: Live, earlier: Live) -> None:
    """Let a call wait for an earlier one."""
    earlier.dependents = [*earlier.dependents, later]
    later.waits += 1
