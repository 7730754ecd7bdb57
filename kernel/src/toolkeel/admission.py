"""What a call passes before the pool: offered? arguments? rewrite, resource keys, plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from . import hooks
from .calls import Call, frozen, thawed
from .errors import ArgumentError
from .hooks import HookFailure, HookSet, Report, describe
from .keys import Planner
from .ledger import Ledger
from .live import Batch, Live, hold
from .offer import Table
from .outputs import Failure
from .settings import KernelSettings
from .tools import EVERYTHING, Key


class Admission:
    """Admits calls one by one, in the model's order, and plans their batch."""

    def __init__(self, settings: KernelSettings, ledger: Ledger, report: Report) -> None:
        self._settings = settings
        self._ledger = ledger
        self._report = report

    def admit(self, live: Live, table: Table) -> bool:
        """Refuse what is not offered, validate the rest; answers whether the call goes on."""
        offer, name = live.batch.offer, live.name
        if name not in offer.names:
            reason = offer.not_offered(name)
            self._ledger.refuse(live, f"{reason.text}", reason.rule, reason.setting)
            return False
        if live.depth > self._settings.max_nesting:
            text = f"calls are nested more than {self._settings.max_nesting} deep"
            self._ledger.refuse(live, text, "nesting", "kernel.max_nesting")
            return False
        entry = table.entries.get(name)
        if entry is None:
            self._ledger.refuse(live, f"{name} is not available any more: its plugin was stopped", "plugins")
            return False
        live.entry = live.bound = entry
        return self.validate(live, live.arguments)

    def validate(self, live: Live, arguments: Any) -> bool:
        """Validate and freeze arguments; answers whether they fit, else the call has failed."""
        entry = live.bound
        try:
            decoded, live.values, repairs = entry.validator(arguments)
            live.arguments = frozen(decoded)
        except ArgumentError as error:
            live.result = Failure(f"{live.name}: {error}", "arguments")
            live.reason = str(error)
            self._ledger.finish(live, "failed")
            return False
        if repairs:
            live.repairs = (*live.repairs, *repairs)
        return True

    def declare(self, live: Live) -> None:
        """Find the resource keys; a key function that raises counts as undeclared."""
        entry = live.bound
        tool = entry.tool
        live.call = None
        if tool.reads is None and tool.writes is None:
            if tool.effect != "read":
                live.writes = (("group", entry.group),)
            return
        scope = live.batch.offer.request.scope
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

    def plan(self, batch: Batch) -> None:
        """Let each call wait for the earlier ones that it must; the others are ready. Reads alone need no plan."""
        pending = [live for live in batch.calls if live.status == "pending"]
        if not any(live.writes for live in pending):
            batch.ready.extend(pending)
            return
        planner = Planner()
        for live in pending:
            for earlier in planner.add(live.index, *_planned(live)):
                hold(live, batch.calls[earlier])
            if not live.waits:
                batch.ready.append(live)

    async def rewrite(self, live: Live, hookset: HookSet) -> None:
        """Let plugins change the arguments, one after the other; each change is validated."""
        for one in hookset.rewrite:
            try:
                answer = await one.run_async(self._settings.hook_time_limit, call_of(live))
                if answer is None:
                    continue
                arguments = one.read(_arguments, answer)
            except HookFailure as failure:
                self._report(failure)
                self._ledger.refuse(live, f"{failure.what} in rewrite_tool_call, so the call was not run", one.plugin)
                return
            live.call = None
            if not self.validate(live, arguments):
                return


def call_of(live: Live) -> Call:
    """The call as hooks see it, made once."""
    if live.call is None:
        entry = live.bound
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


def _arguments(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, Mapping):
        raise hooks.wrong(answer)
    return cast("dict[str, Any]", thawed(answer))


_CALL: Key = ("call",)
"""What every call reads and none writes: so that what touches everything waits for those that touch nothing, too."""


def _planned(live: Live) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """What a call reads and writes, for its order: each key also below the key of its group.

    So a tool of the group that declares nothing, a read or a write, touches everything that the others declare, and two
    that declare different keys do not touch each other.
    """
    entry = live.bound
    group: Key = ("group", entry.group)
    if entry.tool.reads is None and entry.tool.writes is None:
        return (group,), live.writes
    reads = (_CALL, *live.reads, *((*group, *key) for key in live.reads))
    writes = (*live.writes, *((*group, *key) for key in live.writes if key[:1] != ("group",)))
    return reads, writes


def _keys(found: Iterable[Any]) -> tuple[Key, ...]:
    keys = tuple(found)
    for key in keys:
        if not isinstance(key, tuple) or not all(isinstance(part, str) for part in cast("tuple[Any, ...]", key)):
            raise TypeError("a resource key is a tuple of strings")
    return keys
