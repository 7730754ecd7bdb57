"""Runs a batch of calls through the stages."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import trio
from trio.lowlevel import checkpoint, checkpoint_if_cancelled

from . import events, hooks, rendering
from .calls import (
    FINAL,
    Allow,
    Answer,
    Answered,
    Ask,
    Call,
    CallRecord,
    Reason,
    Refuse,
    Repair,
    Status,
    ToolCall,
    frozen,
    thawed,
)
from .config import KernelSettings
from .delivery import Delivery
from .errors import ArgumentError, Closed, ToolError
from .hooks import HookFailure, HookSet, Report, describe
from .keys import Planner, overlap
from .offer import Entry, Offer, Progress
from .outputs import Failure, Media, Result, Spilled, Text
from .pool import Pool
from .scope import Principal, Request, Scope
from .services import Services
from .tools import EVERYTHING, Key
from .watch import Watch, Watched

if TYPE_CHECKING:
    from .offer import Table

_FOREVER = float("inf")
_TURN = 0.005
_SPILL_LIMIT = 30.0
_ASK_ROUNDS = 3
_PREFIX = secrets.token_hex(4)
_ids = itertools.count(1)

_current: ContextVar[_Live | None] = ContextVar("toolkeel_call", default=None)


class Owner(Protocol):
    """What the dispatcher asks of the kernel: the present hooks, and a session's present table."""

    @property
    def hooks(self) -> HookSet:
        """The compiled hooks."""
        ...

    @property
    def closing(self) -> bool:
        """Whether no further call may start."""
        ...

    def present_table(self, session: Any) -> Table | None:
        """The session's tools, where they are of the present plugin set."""
        ...

    async def table(self, session: Any) -> Table:
        """The session's tools, registered anew where the plugin set changed."""
        ...


class _Live:
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
    puller: _Puller | None = None
    lent = 0
    remaining = _FOREVER
    waits = 0
    dependents: Sequence[_Live] = ()
    tool_returned = False
    delivering = False
    abandoned = False
    blocked_by = ""
    asked: tuple[tuple[str, str], ...] = ()
    rounds = 0
    pulled = False
    with_person = False

    def __init__(self, batch: _Batch, index: int, call: ToolCall) -> None:
        self.batch = batch
        self.index = index
        self.id = f"{_PREFIX}-{next(_ids):x}"
        self.model_id = call.id
        self.name = call.name
        self.arguments: Any = call.arguments
        self.values: dict[str, Any] = {}
        self.created = time.time()
        if batch.parent is not None:
            self.parent = batch.parent.id
            self.depth = batch.parent.depth + 1

    def record(self) -> CallRecord:
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
            reason=self.reason,
            refused_by=self.refused_by,
            setting=self.setting,
            repairs=self.repairs,
            reads=self.reads,
            writes=self.writes,
        )


class _Batch:
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
        parent: _Live | None,
        progress: Progress | None,
    ) -> None:
        self.dispatcher = dispatcher
        self.offer = offer
        self.parent = parent
        self.progress = progress
        scope = offer.request.scope
        self.session = f"{scope.agent}\0{scope.session}"
        self.calls = [_Live(self, index, call) for index, call in enumerate(calls)]
        self.ready: deque[_Live] = deque()
        self.pullers = 0
        self.recruiting = False
        self.entered = False
        self.nursery: trio.Nursery | None = None


class _Puller(Watched):
    """A task that pulls ready calls and runs them one after another, in one slot of the pool."""

    __slots__ = ("hook", "live", "slot", "turn")

    def __init__(self) -> None:
        super().__init__()
        self.live: _Live | None = None
        self.hook: hooks.Implementation | None = None
        self.slot = False
        self.turn = 0.0


class Dispatcher:
    """Runs batches: K10's stages, on the pool, ordered by resource keys. One per kernel."""

    def __init__(
        self,
        owner: Owner,
        settings: KernelSettings,
        pool: Pool,
        watch: Watch,
        delivery: Delivery,
        services: Services,
        report: Report,
        log: logging.Logger,
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._pool = pool
        self._watch = watch
        self._delivery = delivery
        self._services = services
        self._report = report
        self._log = log
        self._threads = trio.CapacityLimiter(settings.threads)
        self._stray: dict[int, tuple[str, float]] = {}
        self.running = 0
        self._idle: trio.Event | None = None

    async def drain(self, limit: float) -> None:
        """Wait until no batch runs, at most ``limit`` seconds."""
        if self.running:
            self._idle = trio.Event()
            with trio.move_on_after(limit):
                await self._idle.wait()

    def stray_threads(self) -> list[tuple[str, float]]:
        """The tools whose threads were given up and have not returned, each with the time it was given up."""
        return list(self._stray.values())

    async def run(self, offer: Offer, calls: Sequence[ToolCall], progress: Progress | None = None) -> list[Answer]:
        """Run the calls of one response. The caller waits where the pool is full. See ``Offer.call``."""
        parent = _current.get()
        if parent is not None and parent.status == "executing" and parent.batch.dispatcher is self:
            async with self.lent(parent):
                return await self._run(offer, calls, progress, parent)
        if not self._pool.try_enter():
            await self._pool.enter()
        return await self._run(offer, calls, progress, None)

    async def run_nested(self, parent: _Live, name: str, arguments: Mapping[str, Any]) -> Result:
        """A tool's call of another tool: the typed result, whole."""
        if parent.status != "executing":
            raise ToolError("the call that this context belongs to has ended", where=parent.name)
        call = ToolCall(name, arguments, parent.model_id)
        async with self.lent(parent):
            batch = _Batch(self, parent.batch.offer, [call], parent, parent.batch.progress)
            await self._run_batch(batch, deliver=False)
        return cast("Result", batch.calls[0].result)

    @asynccontextmanager
    async def parked(self) -> AsyncGenerator[None]:
        """Give the current call's slot away while it waits for a model, a person or a child run."""
        live = _current.get()
        if live is None or live.status != "executing":
            yield
            return
        async with self.lent(live):
            yield

    @asynccontextmanager
    async def lent(self, live: _Live) -> AsyncGenerator[None]:
        """Lend a call's slot out; it is regained at the head of the queue. The call's time stands still meanwhile."""
        puller = live.puller
        live.lent += 1
        if live.lent == 1 and puller is not None and puller.live is live and puller.slot:
            live.remaining = self._watch.disarm(puller) - trio.current_time()
            puller.slot = False
            self._pool.release()
        try:
            yield
        finally:
            live.lent -= 1
            if live.lent == 0 and puller is not None and puller.live is live and not puller.slot:
                await self._pool.regain()
                if live.lent or puller.live is not live:  # lent out again meanwhile, or over
                    self._pool.release()
                else:
                    puller.slot = True
                    self._watch.arm(puller, live.remaining)

    # A batch

    async def _run(
        self, offer: Offer, calls: Sequence[ToolCall], progress: Progress | None, parent: _Live | None
    ) -> list[Answer]:
        batch = _Batch(self, offer, calls, parent, progress)
        batch.entered = parent is None
        await self._run_batch(batch, deliver=True)
        return [cast("Answer", live.answer) for live in batch.calls]

    async def _run_batch(self, batch: _Batch, *, deliver: bool) -> None:
        self.running += 1
        calls = batch.calls
        try:
            if self._owner.closing and batch.parent is None:
                raise Closed("the kernel is closing", remedy="Open a new one")
            table = self._owner.present_table(batch.offer.session) or await self._owner.table(batch.offer.session)
            hookset = self._owner.hooks
            for live in calls:
                if hookset.changed:
                    self._changed(live)
                if not deliver:
                    live.delivering = True
                if self._admit(live, table):
                    if hookset.rewrite:
                        await self._rewrite(live, hookset)
                    if live.status == "pending":
                        self._declare(live)
            await checkpoint()
            if len(calls) == 1 and not hookset.resolve:
                if calls[0].status == "pending":
                    await self._run_inline(calls[0])
            else:
                self._plan(batch)
                if batch.ready:
                    await self._run_pulled(batch)
            for live in calls:
                if not live.delivering and not self._delivered(live):
                    await self._deliver(live)
        finally:
            for live in calls:
                if live.status not in FINAL:
                    live.reason = live.reason or "the request was cancelled"
                    self._finish(live, "cancelled")
            self._settle(batch)
            self.running -= 1
            if self._idle is not None and not self.running:
                self._idle.set()

    def _settle(self, batch: _Batch) -> None:
        """The batch has its first slot, or has ended: it leaves the waiting room."""
        if batch.entered:
            batch.entered = False
            self._pool.leave()

    async def _run_inline(self, live: _Live) -> None:
        """Run a single call in the caller's task."""
        puller = _Puller()
        pool = self._pool
        if not pool.try_acquire():
            await pool.acquire(live.batch.session)
        puller.slot = True
        self._settle(live.batch)
        try:
            with trio.CancelScope() as puller.scope:
                await self._execute(live, puller)
            if puller.overdue:
                self._ran_out(live, puller)
        finally:
            puller.live = None
            if puller.slot:
                puller.slot = False
                pool.release()

    async def _run_pulled(self, batch: _Batch) -> None:
        """Run a batch by pullers, the caller's task being the first of them."""
        with hooks.single_error():
            async with trio.open_nursery() as nursery:
                batch.nursery = nursery
                batch.pullers += 1
                await self._pull(batch, self._pool.try_acquire())

    # Before the pool: offered? arguments? rewrite, plan

    def _admit(self, live: _Live, table: Table) -> bool:
        offer, name = live.batch.offer, live.name
        if name not in offer.names:
            reason = offer.not_offered(name)
            self._refuse(live, f"{reason.text}", reason.rule, reason.setting)
            return False
        if live.depth > self._settings.max_nesting:
            text = f"calls are nested more than {self._settings.max_nesting} deep"
            self._refuse(live, text, "nesting", "kernel.max_nesting")
            return False
        entry = table.entries.get(name)
        if entry is None:
            self._refuse(live, f"{name} is not available any more: its plugin was stopped", "plugins")
            return False
        live.entry = entry
        return self._validate(live, live.arguments)

    def _validate(self, live: _Live, arguments: Any) -> bool:
        entry = cast("Entry", live.entry)
        try:
            decoded, live.values, repairs = entry.validator(arguments)
            live.arguments = frozen(decoded)
        except ArgumentError as error:
            live.result = Failure(f"{live.name}: {error}", "arguments")
            live.reason = str(error)
            self._finish(live, "failed")
            return False
        if repairs:
            live.repairs = (*live.repairs, *repairs)
        return True

    def _declare(self, live: _Live) -> None:
        """Find the resource keys; a key function that raises counts as undeclared."""
        entry = cast("Entry", live.entry)
        tool = entry.tool
        if tool.reads is None and tool.writes is None:
            if tool.effect != "read":
                live.writes = (("group", entry.group),)
            return
        scope = live.batch.offer.request.scope
        live.call = None
        try:
            live.reads = _keys(tool.reads(live.arguments, scope)) if tool.reads else ()
            live.writes = _keys(tool.writes(live.arguments, scope)) if tool.writes else ()
        except BaseException as error:  # noqa: BLE001 - recorded; the call counts as undeclared
            hooks.pass_through(error)
            self._report(HookFailure(entry.owner.name, f"keys of {tool.name}", describe(error)))
            live.reads, live.writes = (), ()
            if tool.effect == "read":
                live.reads = (EVERYTHING,)
        if not live.writes and tool.effect != "read" and (tool.writes is None or not live.reads):
            live.writes = (("group", entry.group),)

    def _plan(self, batch: _Batch) -> None:
        pending = [live for live in batch.calls if live.status == "pending"]
        if not any(live.writes for live in pending):
            batch.ready.extend(pending)
            return
        planner = Planner()
        for live in pending:
            group: Key = ("group", cast("Entry", live.entry).group)
            for earlier in planner.add(live.index, (*live.reads, group), live.writes):
                _wait(live, batch.calls[earlier])
            if not live.waits:
                batch.ready.append(live)

    async def _rewrite(self, live: _Live, hookset: HookSet) -> None:
        for one in hookset.rewrite:
            try:
                answer = await one.run_async(self._settings.hook_time_limit, self._call(live))
                if answer is None:
                    continue
                hooks.checked(one, answer, Mapping)
            except HookFailure as failure:
                self._report(failure)
                self._refuse(live, f"{failure.what} in rewrite_tool_call, so the call was not run", one.plugin)
                return
            live.call = None
            if not self._validate(live, thawed(answer)):
                return

    def _call(self, live: _Live) -> Call:
        if live.call is None:
            entry = cast("Entry", live.entry)
            live.call = Call(
                live.id,
                live.model_id,
                entry.tool,
                live.arguments,
                live.batch.offer.request,
                entry.owner.name,
                live.parent,
                live.reads,
                live.writes,
            )
        return live.call

    # Pulling

    def _recruit(self, batch: _Batch) -> None:
        """Work is left: up to two more pullers on free slots, else one that waits for a slot."""
        nursery = batch.nursery
        if nursery is None:
            return
        for _ in range(2):
            if batch.pullers >= self._pool.workers or len(batch.ready) < 1:
                return
            granted = self._pool.try_acquire_more()
            if not granted and (batch.recruiting or not self._pool.try_enter()):
                return
            batch.pullers += 1
            batch.recruiting = batch.recruiting or not granted
            nursery.start_soon(self._pull, batch, granted, not granted)
            if not granted:
                return

    async def _pull(self, batch: _Batch, granted: bool, in_room: bool = False) -> None:
        """Pull until nothing is ready. ``granted``: a slot was taken for it; ``in_room``: a place to wait was."""
        puller = _Puller()
        puller.slot = granted
        pool = self._pool
        try:
            try:
                if not granted:
                    await self._wait_for_slot(batch, puller)
            finally:
                if in_room:
                    pool.leave()
            self._settle(batch)
            puller.turn = trio.current_time() + _TURN
            while batch.ready and puller.slot:
                await self._pull_scoped(batch, puller)
        finally:
            self._watch.disarm(puller)
            batch.pullers -= 1
            if puller.slot:
                puller.slot = False
                pool.release()

    async def _wait_for_slot(self, batch: _Batch, puller: _Puller) -> None:
        batch.recruiting = True
        try:
            await self._pool.acquire(batch.session)
            puller.slot = True
        finally:
            batch.recruiting = False

    async def _pull_scoped(self, batch: _Batch, puller: _Puller) -> None:
        """Run ready calls inside one cancel scope; a call that is overdue ends the scope, not the puller."""
        live: _Live | None = None
        puller.overdue = False
        with trio.CancelScope() as scope:
            puller.scope = scope
            while batch.ready:
                if trio.current_time() > puller.turn:
                    await checkpoint()
                    puller.turn = trio.current_time() + _TURN
                else:
                    await checkpoint_if_cancelled()
                if not batch.ready:
                    break
                live = batch.ready.popleft()
                if batch.ready and batch.nursery is not None:
                    self._recruit(batch)
                await self._execute(live, puller)
                if puller.overdue:
                    break
                await self._conclude(live)
                live = None
                if self._pool.contended(batch.session) and batch.ready:
                    puller.slot = False
                    self._pool.release()
                    if batch.recruiting:  # a batch has one waiter; it takes up what is left
                        break
                    await self._wait_for_slot(batch, puller)
        puller.live = None
        if live is not None and puller.overdue:
            self._ran_out(live, puller)
            await self._conclude(live)

    async def _conclude(self, live: _Live) -> None:
        """Format and spill a call that ended, and let go of those that wait for it."""
        if live.status in FINAL:
            if not live.delivering and not self._delivered(live):
                await self._deliver(live)
            if live.dependents:
                self._release(live)

    def _release(self, live: _Live) -> None:
        batch = live.batch
        for later in live.dependents:
            later.waits -= 1
            if live.blocked_by or (live.abandoned and live.writes):
                later.blocked_by = live.blocked_by or live.name
            if later.waits == 0 and later.status == "pending" and not later.with_person:
                batch.ready.append(later)
        live.dependents = ()

    def _ran_out(self, live: _Live, puller: _Puller) -> None:
        if live.status in FINAL:
            return
        hook, puller.hook = puller.hook, None
        if live.status == "pending" and hook is not None:
            failure = hook.overdue(self._settings.hook_time_limit)
            self._report(failure)
            self._refuse(live, f"{failure.what} in {failure.hook}, so the call was not run", hook.plugin)
            return
        limit = self._limit(live)
        if live.tool_returned:
            text = f"{live.name} finished, but what wraps it gave no answer within {limit:g} s"
        elif live.abandoned:
            text = f"{live.name} did not finish within {limit:g} s; it may still be running"
        else:
            text = f"{live.name} did not finish within {limit:g} s and was stopped"
        live.reason = text
        live.result = Failure(text, "time_limit")
        self._finish(live, "failed")

    # One call

    async def _execute(self, live: _Live, puller: _Puller) -> None:
        """Authorise and run one call; ends with a final status, or with the call waiting for a person."""
        entry = cast("Entry", live.entry)
        puller.live = live
        live.puller = puller
        live.pulled = True
        hookset = self._owner.hooks
        hookset.holders += 1
        token = _current.set(live)
        try:
            if live.blocked_by:
                text = f"{live.blocked_by} was given up and may still change what this call touches"
                self._refuse(live, text, "resources")
                return
            if not entry.owner.active:
                self._refuse(live, f"the plugin {entry.owner.name!r} was stopped; call it again", "plugins")
                return
            if hookset.authorize and not await self._authorize(live, puller, hookset):
                return
            if self._delivery.full:
                await self._delivery.room()
            live.status = "executing"
            live.started = time.time()
            if hookset.changed or hookset.starting:
                self._starting(live, hookset)
            self._watch.arm(puller, self._limit(live))
            try:
                if hookset.around:
                    result = await self._wrapped(live, hookset)
                else:
                    result = await self._tool(live)
            finally:
                self._watch.disarm(puller)
            live.result = result
            if isinstance(result, Failure):
                live.reason = str(result.message)[:500]
                self._finish(live, "failed")
            else:
                self._finish(live, "completed")
        finally:
            _current.reset(token)
            hookset.let_go()

    def _limit(self, live: _Live) -> float:
        limit = cast("Entry", live.entry).tool.time_limit
        return self._settings.time_limit if limit is None else limit

    async def _authorize(self, live: _Live, puller: _Puller, hookset: HookSet) -> bool:
        """Ask every decider in order. An error, a time-out or a wrong type refuses."""
        call = self._call(live)
        asks: list[Ask] = []
        for one in hookset.authorize:
            puller.hook = one
            self._watch.arm(puller, self._settings.hook_time_limit)
            try:
                verdict = await one.function(call)
                if puller.overdue:  # it swallowed its time-out; whatever it says comes too late
                    raise one.overdue(self._settings.hook_time_limit)
            except BaseException as error:  # noqa: BLE001 - failure() lets interrupts and cancellation through
                failure = error if isinstance(error, HookFailure) else one.failure(error)
                self._report(failure)
                self._refuse(live, f"{failure.what} in {one.hook}, so the call was not run", one.plugin)
                return False
            finally:
                self._watch.disarm(puller)
            if verdict is None or isinstance(verdict, Allow):
                continue
            reason: Any = getattr(verdict, "reason", None)
            if isinstance(verdict, Refuse) and isinstance(reason, Reason):
                self._refuse(live, str(reason.text), reason.rule or one.plugin, reason.setting, one.plugin)
                return False
            if isinstance(verdict, Ask) and isinstance(reason, Reason):
                question = (one.plugin, verdict.question)
                if question not in live.asked:
                    live.asked = (*live.asked, question)
                    asks.append(verdict)
                continue
            what = f"gave a {type(verdict).__name__} that is no verdict"
            failure = HookFailure(one.plugin, one.hook, what)
            self._report(failure)
            self._refuse(live, f"{failure.what}, so the call was not run", one.plugin)
            return False
        puller.hook = None
        if not asks:
            await checkpoint_if_cancelled()  # a decider may have swallowed the request's end
            return True
        self._ask(live, asks, hookset)
        return False

    def _ask(self, live: _Live, asks: list[Ask], hookset: HookSet) -> None:
        nursery = live.batch.nursery
        if not hookset.resolve or nursery is None:
            text = f"{live.name} needs a person's approval, and nobody here can give it: {asks[0].question}"
            self._refuse(live, text, asks[0].reason.rule, asks[0].reason.setting)
            return
        live.rounds += 1
        if live.rounds > _ASK_ROUNDS:
            self._refuse(live, "it was asked for again and again", asks[0].reason.rule, asks[0].reason.setting)
            return
        live.puller = None
        live.pulled = False
        live.with_person = True
        nursery.start_soon(self._await_answer, live, asks, hookset)

    async def _await_answer(self, live: _Live, asks: list[Ask], hookset: HookSet) -> None:
        """Wait for a person, holding no slot; then the call is ready again, or refused."""
        batch = live.batch
        answer: Answered | None = None
        call = self._call(live)
        why = "nobody answered"
        for one in hookset.resolve:
            try:
                said = await one.run_async(self._settings.ask_time_limit, call, tuple(asks))
                answer = _checked_answer(one, said)
            except HookFailure as failure:
                self._report(failure)
                why = failure.what
                continue
            if answer is not None:
                break
        if answer is None or answer.allowed is not True:
            by = f"{answer.by} refused it" if answer else why
            detail = f": {answer.reason}" if answer and answer.reason else ""
            self._refuse(live, f"{live.name} was not approved: {by}{detail}", "approval", asks[0].reason.setting)
        elif answer.arguments is not None:
            self._edited(live, answer.arguments)
        live.with_person = False
        if live.status in FINAL:
            await self._conclude(live)
        elif live.waits == 0:
            batch.ready.appendleft(live)
        if batch.ready:
            batch.pullers += 1
            await self._pull(batch, self._pool.try_acquire())

    def _edited(self, live: _Live, arguments: Mapping[str, Any]) -> None:
        """Take over edited arguments: validated anew, and in line with the calls that they now touch."""
        live.call = None
        live.asked = ()
        if not self._validate(live, thawed(arguments)):
            return
        self._declare(live)
        for other in live.batch.calls:
            if other is live or other.status in FINAL or other in live.dependents:
                continue
            clash = overlap(live.writes, (*other.reads, *other.writes)) or overlap(live.reads, other.writes)
            if not clash:
                continue
            if other.index < live.index or other.pulled:
                _wait(live, other)
            else:
                _wait(other, live)
                if other in live.batch.ready:
                    live.batch.ready.remove(other)

    async def _wrapped(self, live: _Live, hookset: HookSet) -> Result:
        tool = cast("Entry", live.entry).tool
        layers = hooks.around(
            hookset.around, self._call(live), partial(self._tool, live), tool.effect == "read" or tool.idempotent
        )
        try:
            result = await layers()
        except BaseException as error:  # noqa: BLE001 - it is the call's failure
            hooks.pass_through(error)
            what = error.what if isinstance(error, HookFailure) else describe(error)
            done = f"{live.name} finished, but " if live.tool_returned else ""
            again = ". Do not repeat it" if live.tool_returned and tool.effect != "read" else ""
            self._log.warning("around_tool_call of %s failed: %s", live.name, what)
            return Failure(f"{done}a hook around the call failed: {what}{again}")
        if not isinstance(result, cast("Any", Result)):
            done = f"{live.name} finished, but " if live.tool_returned else ""
            return Failure(f"{done}a hook around the call gave a {type(result).__name__}, which is no result")
        return cast("Result", result)

    async def _tool(self, live: _Live) -> Result:
        """Run the tool's function; whatever it raises is the call's failure."""
        entry = cast("Entry", live.entry)
        tool, values = entry.tool, live.values
        function = tool.function
        try:
            if tool.signature is None:
                value = await function(values, Context(self, live))
            else:
                if entry.context_parameter is not None:
                    values = {**values, entry.context_parameter: Context(self, live)}
                if entry.asynchronous:
                    value = await function(**values)
                elif tool.inline:
                    value = function(**values)
                else:
                    value = await self._in_thread(live, partial(function, **values))
        except ToolError as error:
            return Failure(str(error))
        except BaseException as error:  # noqa: BLE001 - it is the call's failure
            hooks.pass_through(error)
            self._log.info("tool %s raised", live.name, exc_info=error)
            return Failure(f"{live.name} failed: {describe(error)}")
        live.tool_returned = True
        return rendering.to_result(value)

    async def _in_thread(self, live: _Live, function: Callable[[], object]) -> object:
        stray, name, key = self._stray, live.name, id(live)
        began, ended = threading.Event(), threading.Event()

        def run() -> object:
            began.set()
            try:
                return function()
            finally:
                ended.set()
                stray.pop(key, None)

        try:
            return await trio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._threads)
        except trio.Cancelled:
            if began.is_set() and not ended.is_set():
                live.abandoned = True
                stray[key] = (name, time.time())
                if ended.is_set():
                    stray.pop(key, None)
            raise

    # The end of a call

    def _refuse(self, live: _Live, text: str, by: str, setting: str = "", plugin: str = "") -> None:
        live.reason = text
        live.refused_by = f"{by} ({plugin})" if plugin and plugin != by else by
        live.setting = setting
        place = f" [{setting}]" if setting else ""
        live.result = Failure(f"{live.name[:100]} was not run: {text}{place}", "refused")
        self._finish(live, "refused")

    def _finish(self, live: _Live, status: Status) -> None:
        """The only writer of a final status."""
        if live.status in FINAL:
            raise AssertionError(f"call {live.id} ended twice: {live.status}, {status}")
        live.status = status
        live.ended = time.time()
        hookset = self._owner.hooks
        if hookset.changed:
            self._changed(live)
        if hookset.ended:
            self._delivery.emit("on_tool_call_end", events.ToolCallEnded(time=live.ended, record=live.record()))

    def _starting(self, live: _Live, hookset: HookSet) -> None:
        if hookset.changed:
            self._changed(live)
        if hookset.starting:
            record = live.record()
            when = record.started or record.created
            self._delivery.emit("on_tool_call_start", events.ToolCallStarting(time=when, record=record))

    def _changed(self, live: _Live) -> None:
        record = live.record()
        when = record.ended or record.started or record.created
        self._delivery.emit("on_call_changed", events.CallChanged(time=when, record=record))

    # Format and spill

    def _delivered(self, live: _Live) -> bool:
        """Make the answer at once where the result is short text or a scalar, as most are."""
        result = live.result
        text = rendering.render_small(cast("Result", result))
        entry = live.entry
        if not text or len(text) > self._settings.max_result_chars or entry is None or entry.tool.spill == "always":
            return False
        if not text.isascii():
            text = _encodable(text)
        live.delivering = True
        live.answer = Answer(live.model_id, live.name, live.status, text, cast("Result", result), live.record())
        return True

    async def _deliver(self, live: _Live) -> None:
        """Make the answer of a call that ended. Nothing here changes its status."""
        live.delivering = True
        result = cast("Result", live.result)
        ref = ""
        try:
            text = await rendering.render(result, live.batch.offer.request.format)
        except Exception as error:  # noqa: BLE001 - the call ended; only its text cannot be made
            text = f"{live.name} finished, but its result cannot be written as JSON: {describe(error)}"
        limit = self._settings.max_result_chars
        spill = live.entry.tool.spill if live.entry else "large"
        if not isinstance(text, str) or len(text) > limit or (spill == "always" and live.status == "completed"):
            text, ref = await self._shortened(live, text, limit, spill)
        text = _encodable(cast("str", text))
        shown = result if not ref or isinstance(result, Media) else Text(text)
        live.answer = Answer(live.model_id, live.name, live.status, text or rendering.EMPTY, shown, live.record(), ref)

    async def _shortened(self, live: _Live, text: str | bytes, limit: int, spill: str) -> tuple[str, str]:
        if isinstance(text, bytes) and len(text) <= limit and spill != "always":
            return text.decode("utf-8", "replace"), ""
        if spill == "never":
            return (text if isinstance(text, str) else text.decode("utf-8", "replace")), ""
        content = text.encode("utf-8", "replace") if isinstance(text, str) else text
        if spill != "always" and len(content) <= 4 * limit:
            whole = content.decode("utf-8", "replace")
            if len(whole) <= limit:
                return whole, ""
        if live.entry is not None and live.call is None:
            self._call_for_spill(live)
        if live.call is not None:
            kind = rendering.media_type(cast("Result", live.result))
            spilled = await hooks.serve_async(
                self._owner.hooks["spill_result"], self._report, Spilled, _SPILL_LIMIT, live.call, content, kind
            )
            if spilled is not None:
                return spilled.text, spilled.ref
        if len(content) <= limit:
            return content.decode("utf-8", "replace"), ""
        head = content[: 4 * limit].decode("utf-8", "ignore")[:limit]
        hidden = len(content) - len(head.encode())
        return f"{head}\n[{hidden:,} more bytes were cut: no active plugin stores large results]", ""

    def _call_for_spill(self, live: _Live) -> None:
        if not isinstance(live.arguments, Mapping):  # they were refused as they came
            live.arguments = frozen({})
        self._call(live)


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no surface can send."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _checked_answer(one: hooks.Implementation, said: Any) -> Answered | None:
    answer = cast("Answered | None", hooks.checked(one, said, (Answered, type(None))))
    arguments: Any = answer.arguments if answer else None
    if arguments is not None and not isinstance(arguments, Mapping):
        raise HookFailure(one.plugin, one.hook, f"gave a {type(arguments).__name__} for arguments")
    return answer


def _keys(found: Iterable[Any]) -> tuple[Key, ...]:
    keys = tuple(found)
    for key in keys:
        if not isinstance(key, tuple) or not all(isinstance(part, str) for part in cast("tuple[Any, ...]", key)):
            raise TypeError("a resource key is a tuple of strings")
    return keys


def _wait(later: _Live, earlier: _Live) -> None:
    earlier.dependents = [*earlier.dependents, later]
    later.waits += 1


class Context:
    """The ``ToolContext`` of one call."""

    __slots__ = ("_dispatcher", "_live")

    def __init__(self, dispatcher: Dispatcher, live: _Live) -> None:
        self._dispatcher = dispatcher
        self._live = live

    @property
    def call_id(self) -> str:
        """See ``ToolContext.call_id``."""
        return self._live.id

    @property
    def request(self) -> Request:
        """See ``ToolContext.request``."""
        return self._live.batch.offer.request

    @property
    def scope(self) -> Scope:
        """See ``ToolContext.scope``."""
        return self.request.scope

    @property
    def principal(self) -> Principal:
        """See ``ToolContext.principal``."""
        return self.request.principal

    @property
    def workspaces(self) -> tuple[Path, ...]:
        """See ``ToolContext.workspaces``."""
        return self.request.scope.workspaces

    def service(self, protocol: type[Any]) -> Any:
        """See ``ToolContext.service``."""
        return self._dispatcher._services.get(protocol)

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """See ``ToolContext.progress``."""
        listener = self._live.batch.progress
        if listener is not None:
            listener(self._live.model_id, done, total, text)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Awaitable[Result]:
        """See ``ToolContext.call``."""
        return self._dispatcher.run_nested(self._live, name, arguments)
