"""Runs a batch of calls through the stages, on the pool."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol, cast

import trio
from trio.lowlevel import checkpoint, checkpoint_if_cancelled

from . import hooks
from .admission import Admission
from .answers import Answers
from .authority import Authority, reason_of
from .calls import FINAL, Answer, Ask, ToolCall, thawed
from .delivery import Delivery
from .errors import Closed, ToolError
from .hooks import HookSet, Report
from .keys import overlap
from .ledger import Ledger
from .live import Batch, Live, Puller, hold
from .offer import Offer, Progress, Table
from .outputs import Failure, Result
from .pool import Pool
from .running import Runner
from .services import Services
from .settings import KernelSettings
from .watch import Watch

_TURN = 0.005
_ASK_ROUNDS = 3
_FEW = 4
"""Validators that are compiled on the loop; more of one batch are in a worker thread."""

_current: ContextVar[Live | None] = ContextVar("toolkeel_call", default=None)


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
        def present() -> HookSet:
            return owner.hooks

        self._owner = owner
        self._settings = settings
        self._pool = pool
        self._watch = watch
        self._delivery = delivery
        self._report = report
        self._ledger = Ledger(present, delivery)
        self._admission = Admission(settings, self._ledger, report)
        self._authority = Authority(settings, watch, self._ledger, report)
        self._runner = Runner(settings, services, self.run_nested, report, log)
        self._answers = Answers(settings, present, report)
        self._idle: trio.Event | None = None
        self._turn = 0.0
        self.running = 0

    def stray_threads(self) -> list[tuple[str, float]]:
        """The tools whose threads were given up and have not returned, each with the time it was given up."""
        return self._runner.stray_threads()

    async def drain(self, limit: float) -> None:
        """Wait until no batch runs, at most ``limit`` seconds."""
        if self.running:
            self._idle = trio.Event()
            with trio.move_on_after(limit):
                await self._idle.wait()

    def run(
        self, offer: Offer, calls: Sequence[ToolCall], progress: Progress | None = None
    ) -> Coroutine[Any, Any, list[Answer]]:
        """Run the calls of one response. The caller waits where the pool is full. See ``Offer.call``."""
        parent = _current.get()
        if parent is not None and parent.runs and parent.batch.dispatcher is self:
            return self._run_lent(offer, calls, progress, parent)
        return self._run(offer, calls, progress)

    async def run_nested(self, parent: Live, name: str, arguments: Mapping[str, Any]) -> Result:
        """A tool's call of another tool: the typed result, whole."""
        if parent.status != "executing":
            raise ToolError("the call that this context belongs to has ended", where=parent.name)
        call = ToolCall(name, arguments, parent.model_id)
        async with self.lent(parent):
            batch = Batch(self, parent.batch.offer, [call], parent, parent.batch.progress)
            await self._run_batch(batch, deliver=False)
        return cast("Result", batch.calls.pop().result)

    @asynccontextmanager
    async def parked(self) -> AsyncGenerator[None]:
        """Give the current call's slot away while it waits for a model, a person or a child run."""
        live = _current.get()
        if live is None or not live.runs:
            yield
            return
        async with self.lent(live):
            yield

    @asynccontextmanager
    async def lent(self, live: Live) -> AsyncGenerator[None]:
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
            while puller is not None and puller.wants_back(live):
                if puller.regaining is None:
                    await self._regain(puller, live)
                else:  # another task of the call is at it
                    await puller.regaining.wait()

    async def _regain(self, puller: Puller, live: Live) -> None:
        regaining = puller.regaining = trio.Event()
        try:
            await self._pool.regain()
            if puller.wants_back(live):
                puller.slot = True
                self._watch.arm(puller, live.remaining)
            else:  # lent out again meanwhile, or over
                self._pool.release()
        finally:
            puller.regaining = None
            regaining.set()

    async def _run(self, offer: Offer, calls: Sequence[ToolCall], progress: Progress | None) -> list[Answer]:
        if not self._pool.try_enter():
            await self._pool.enter()
        batch = Batch(self, offer, calls, None, progress)
        batch.entered = True
        await self._run_batch(batch, deliver=True)
        return batch.answers()

    async def _run_lent(
        self, offer: Offer, calls: Sequence[ToolCall], progress: Progress | None, parent: Live
    ) -> list[Answer]:
        async with self.lent(parent):
            batch = Batch(self, offer, calls, parent, progress)
            await self._run_batch(batch, deliver=True)
            return batch.answers()

    async def _run_batch(self, batch: Batch, *, deliver: bool) -> None:
        if self._owner.closing and batch.parent is None:
            self._settle(batch)
            raise Closed("the kernel is closing", remedy="Open a new one")
        self.running += 1
        calls = batch.calls
        if self._owner.hooks.changed:
            for live in calls:
                self._ledger.changed(live)
        try:
            table = self._owner.present_table(batch.offer.session) or await self._owner.table(batch.offer.session)
            hookset = self._owner.hooks
            if len(calls) > _FEW:
                await _compile(batch, table)
            for live in calls:
                if self._delivery.full:
                    await self._delivery.room()
                if not deliver:
                    live.delivering = True
                if self._admission.admit(live, table):
                    if hookset.rewrite:
                        await self._admission.rewrite(live, hookset)
                    if live.status == "pending":
                        self._admission.declare(live)
            now = calls[0].created if calls else 0.0
            if 0 < self._turn - now < _TURN:
                await checkpoint_if_cancelled()
            else:  # a full checkpoint costs as much as all else of a trivial call
                self._turn = now + _TURN
                await checkpoint()
            if len(calls) == 1 and not hookset.resolve:
                if calls[0].status == "pending":
                    await self._run_inline(calls[0])
            else:
                self._admission.plan(batch)
                if batch.ready:
                    await self._run_pulled(batch)
            for live in calls:
                if not live.delivering and not self._answers.at_once(live):
                    await self._answers.make(live)
        finally:
            for live in calls:
                if live.status not in FINAL:
                    live.reason = live.reason or "the request was cancelled"
                    self._ledger.finish(live, "cancelled")
            self._settle(batch)
            self.running -= 1
            if self._idle is not None and not self.running:
                self._idle.set()

    def _settle(self, batch: Batch) -> None:
        """The batch has its first slot, or has ended: it leaves the waiting room."""
        if batch.entered:
            batch.entered = False
            self._pool.leave()

    async def _run_inline(self, live: Live) -> None:
        """Run a single call in the caller's task."""
        puller = Puller()
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

    async def _run_pulled(self, batch: Batch) -> None:
        """Run a batch by pullers, the caller's task being the first of them."""
        with hooks.single_error():
            async with trio.open_nursery() as nursery:
                batch.nursery = nursery
                batch.pullers += 1
                await self._pull(batch, self._pool.try_acquire())

    def _recruit(self, batch: Batch) -> None:
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

    async def _pull(self, batch: Batch, granted: bool, in_room: bool = False) -> None:
        """Pull until nothing is ready. ``granted``: a slot was taken for it; ``in_room``: a place to wait was."""
        puller = Puller()
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

    async def _wait_for_slot(self, batch: Batch, puller: Puller) -> None:
        batch.recruiting = True
        try:
            await self._pool.acquire(batch.session)
            puller.slot = True
        finally:
            batch.recruiting = False

    async def _pull_scoped(self, batch: Batch, puller: Puller) -> None:
        """Run ready calls inside one cancel scope; a call that is overdue ends the scope, not the puller."""
        live: Live | None = None
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

    async def _conclude(self, live: Live) -> None:
        """Format and spill a call that ended, and let go of those that wait for it."""
        if live.status in FINAL:
            if not live.delivering and not self._answers.at_once(live):
                await self._answers.make(live)
            if live.dependents:
                self._release(live)

    def _release(self, live: Live) -> None:
        batch = live.batch
        for later in live.dependents:
            later.waits -= 1
            if live.blocked_by or (live.abandoned and live.writes):
                later.blocked_by = live.blocked_by or live.name
            if later.waits == 0 and later.status == "pending" and not later.with_person:
                batch.ready.append(later)
        live.dependents = ()

    def _ran_out(self, live: Live, puller: Puller) -> None:
        if live.status in FINAL:
            return
        hook, puller.hook = puller.hook, None
        if live.status == "pending" and hook is not None:
            failure = hook.overdue(self._settings.hook_time_limit)
            self._report(failure)
            self._ledger.refuse(live, f"{failure.what} in {failure.hook}, so the call was not run", hook.plugin)
            return
        limit = self._limit(live)
        layer = live.onion.at if live.onion else None
        if layer is not None:
            failure = layer.overdue(limit)
            self._report(failure)
            done = "finished, but" if live.tool_returned else "ended, but" if live.tool_entered else "was not run:"
            text = f"{live.name} {done} {failure.what} in {failure.hook}"
        elif live.wants_thread:
            text = f"{live.name} was not run: no worker thread was free within {limit:g} s"
        elif live.abandoned:
            text = f"{live.name} did not finish within {limit:g} s; it may still be running"
        else:
            text = f"{live.name} did not finish within {limit:g} s and was stopped"
        live.reason = text
        live.result = Failure(text, "time_limit")
        self._ledger.finish(live, "failed")

    async def _execute(self, live: Live, puller: Puller) -> None:
        """Authorise and run one call; ends with a final status, or with the call waiting for a person."""
        entry = live.bound
        puller.live = live
        live.puller = puller
        live.pulled = True
        hookset = self._owner.hooks
        hookset.holders += 1
        entry.owner.calls += 1
        token = _current.set(live)
        try:
            if hookset.lacking:
                text = f"required plugins are not active: {hookset.lacking}"
                self._ledger.refuse(live, text, "require", "kernel.require")
                return
            if live.blocked_by:
                text = f"{live.blocked_by} was given up and may still change what this call touches"
                self._ledger.refuse(live, text, "resources")
                return
            if not entry.owner.active:
                self._ledger.refuse(live, f"the plugin {entry.owner.name!r} was stopped; call it again", "plugins")
                return
            if hookset.authorize:
                asks = await self._authority.decide(live, puller, hookset)
                if asks:
                    self._ask(live, asks, hookset)
                if asks or asks is None:
                    return
            if self._delivery.full:
                await self._delivery.room()
            live.status = "executing"
            live.started = time.time()
            if hookset.changed or hookset.starting:
                self._ledger.starting(live, hookset)
            self._watch.arm(puller, self._limit(live))
            try:
                if hookset.around:
                    result = await self._runner.wrapped(live, hookset)
                else:
                    result = await self._runner.tool(live)
            finally:
                self._watch.disarm(puller)
            live.result = result
            if isinstance(result, Failure):
                live.reason = str(result.message)[:500]
                self._ledger.finish(live, "failed")
            else:
                self._ledger.finish(live, "completed")
        finally:
            _current.reset(token)
            hookset.let_go()
            entry.owner.call_ended()

    def _limit(self, live: Live) -> float:
        limit = live.bound.tool.time_limit
        return self._settings.time_limit if limit is None else limit

    def _ask(self, live: Live, asks: list[Ask], hookset: HookSet) -> None:
        nursery = live.batch.nursery
        if not hookset.resolve or nursery is None:
            text = f"{live.name} needs a person's approval, and nobody here can give it: {asks[0].question}"
            self._ledger.refuse(live, text, reason_of(asks).rule, reason_of(asks).setting)
            return
        live.rounds += 1
        if live.rounds > _ASK_ROUNDS:
            reason = reason_of(asks)
            self._ledger.refuse(live, "it was asked for again and again", reason.rule, reason.setting)
            return
        live.puller = None
        live.pulled = False
        live.with_person = True
        nursery.start_soon(self._await_answer, live, asks, hookset)

    async def _await_answer(self, live: Live, asks: list[Ask], hookset: HookSet) -> None:
        """Wait for a person, holding no slot; then the call is ready again, or refused."""
        batch = live.batch
        answer = await self._authority.ask(live, asks, hookset)
        edited = thawed(answer.arguments) if answer is not None and answer.arguments is not None else None
        if edited is not None and edited != thawed(live.arguments):
            self._edited(live, edited)
        live.with_person = False
        if live.status in FINAL:
            await self._conclude(live)
        elif live.waits == 0:
            batch.ready.appendleft(live)
        if batch.ready:
            batch.pullers += 1
            await self._pull(batch, self._pool.try_acquire())

    def _edited(self, live: Live, arguments: Mapping[str, Any]) -> None:
        """Take over edited arguments: validated anew, and in line with the calls that they now touch."""
        live.call = None
        live.asked = ()
        if not self._admission.validate(live, arguments):
            return
        self._admission.declare(live)
        for other in live.batch.calls:
            if other is live or other.status in FINAL or live.holds_up(other) or other.holds_up(live):
                continue
            clash = overlap(live.writes, (*other.reads, *other.writes)) or overlap(live.reads, other.writes)
            if not clash:
                continue
            if other.index < live.index or other.pulled:
                hold(live, other)
            else:
                hold(other, live)
                if other in live.batch.ready:
                    live.batch.ready.remove(other)


async def _compile(batch: Batch, table: Table) -> None:
    """Compile the validators of a batch off the loop, where more than a few are due."""
    entries = {live.name: table.entries[live.name] for live in batch.calls if live.name in table.entries}
    due = [entry.validator for entry in entries.values() if not entry.validator.ready]
    if len(due) <= _FEW:
        return

    def prepare() -> None:
        for validator in due:
            validator.prepare()

    await trio.to_thread.run_sync(prepare)
