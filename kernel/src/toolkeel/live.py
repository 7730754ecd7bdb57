"""The mutable records of calls while they live: a call, its batch, the task that pulls it."""

from __future__ import annotations

import itertools
import secrets
import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import trio

from .calls import Answer, Call, CallRecord, Repair, Status, ToolCall, encodable
from .hooks import Implementation
from .offer import Entry, Offer, Progress
from .onion import Onion
from .outputs import Result
from .tools import Key
from .watch import Watched

if TYPE_CHECKING:
    from .dispatch import Dispatcher

FOREVER = float("inf")
_PREFIX = secrets.token_hex(4) + "-"
_ids = itertools.count(1)


class Live:
    """The mutable record of one call while it lives; observers get frozen copies."""

    # What most calls never change stands on the class: a call is made of as few assignments as can be.
    status: Status = "pending"
    started: float | None = None
    ended: float | None = None
    entry: Entry | None = None
    bound: Entry
    """The entry, from admission on."""
    values: Mapping[str, Any] = MappingProxyType({})
    record_at_end: CallRecord | None = None
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
    onion: Onion | None = None
    lent = 0
    remaining = FOREVER
    waits = 0
    dependents: Sequence[Live] = ()
    tool_entered = False
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
        self.id = _PREFIX + str(next(_ids))
        name, model_id = call.name, call.id
        self.name = name if type(name) is str and name.isascii() else encodable(str(name))
        self.model_id = model_id if type(model_id) is str and model_id.isascii() else encodable(str(model_id))
        self.arguments: Any = call.arguments
        if type(self.arguments) is str and not self.arguments.isascii():
            self.arguments = encodable(self.arguments)
        self.created = time.time()
        if batch.parent is not None:
            self.parent = batch.parent.id
            self.depth = batch.parent.depth + 1

    @property
    def runs(self) -> bool:
        """Whether its puller is at it now: its deciders, its layers or its tool."""
        return self.puller is not None and self.puller.live is self

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
        entry = self.entry
        return CallRecord(
            self.id,
            self.model_id,
            self.name,
            entry.owner.name if entry is not None else "",
            self.arguments,
            self.status,
            scope.agent,
            scope.session,
            principal.name,
            principal.role,
            self.created,
            self.parent,
            self.started,
            self.ended,
            self.reason if self.reason.isascii() else encodable(self.reason),
            self.refused_by,
            self.setting,
            self.repairs,
            self.reads,
            self.writes,
        )


class Batch:
    """The calls of one response: what is ready, who pulls."""

    nursery: trio.Nursery | None = None
    pullers = 0
    recruiting = False
    entered = False

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

    def answers(self) -> list[Answer]:
        """The answers, in the model's order. Calls and batch name each other, and results may be large: let them go."""
        answers = [cast("Answer", live.answer) for live in self.calls]
        self.calls.clear()
        return answers


class Puller(Watched):
    """A task that pulls ready calls and runs them one after another, in one slot of the pool."""

    live: Live | None = None
    hook: Implementation | None = None
    slot = False
    turn = 0.0
    regaining: trio.Event | None = None

    def wants_back(self, live: Live) -> bool:
        """Whether the slot that it lent out for a call is due again."""
        return live.lent == 0 and self.live is live and not self.slot


def hold(later: Live, earlier: Live) -> None:
    """Let a call wait for an earlier one."""
    earlier.dependents = [*earlier.dependents, later]
    later.waits += 1
