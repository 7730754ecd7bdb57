"""May the call run? Every decider in order, and the person who is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trio.lowlevel import checkpoint_if_cancelled

from . import hooks
from .admission import call_of
from .calls import Allow, Answered, Ask, Reason, Refuse
from .hooks import HookFailure, HookSet, Report
from .ledger import Ledger
from .live import Live, Puller
from .settings import KernelSettings
from .watch import Watch


class Authority:
    """Runs the deciders. An error, a time-out or a wrong type refuses."""

    def __init__(self, settings: KernelSettings, watch: Watch, ledger: Ledger, report: Report) -> None:
        self._settings = settings
        self._watch = watch
        self._ledger = ledger
        self._report = report

    async def decide(self, live: Live, puller: Puller, hookset: HookSet) -> list[Ask] | None:
        """Ask every decider in order; answers what a person must be asked first, or ``None``: the call is refused."""
        call = call_of(live)
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
                self._ledger.refuse(live, f"{failure.what} in {one.hook}, so the call was not run", one.plugin)
                return None
            finally:
                self._watch.disarm(puller)
            if verdict is None or isinstance(verdict, Allow):
                continue
            if isinstance(verdict, Refuse) and (reason := _reason(verdict.reason)):
                self._ledger.refuse(live, str(reason.text), reason.rule or one.plugin, reason.setting, one.plugin)
                return None
            if isinstance(verdict, Ask) and (reason := _reason(verdict.reason)):
                question = (one.plugin, verdict.question)
                if question not in live.asked:
                    live.asked = (*live.asked, question)
                    asks.append(Ask(verdict.question, reason))
                continue
            what = f"gave a {type(verdict).__name__} that is no verdict"
            failure = HookFailure(one.plugin, one.hook, what)
            self._report(failure)
            self._ledger.refuse(live, f"{failure.what}, so the call was not run", one.plugin)
            return None
        puller.hook = None
        if not asks:
            await checkpoint_if_cancelled()  # a decider may have swallowed the request's end
        return asks

    async def ask(self, live: Live, asks: list[Ask], hookset: HookSet) -> Answered | None:
        """Ask whoever answers asks; ``None``: the call is refused."""
        call = call_of(live)
        why = "nobody answered"
        for one in hookset.resolve:
            try:
                said = await one.run_async(self._settings.ask_time_limit, call, tuple(asks))
                if said is None:
                    continue
                answer: Answered = one.read(_answered, said)
            except HookFailure as failure:
                self._report(failure)
                why = failure.what
                continue
            if answer.allowed is True:
                return answer
            why = f"{answer.by} refused it" + (f": {answer.reason}" if answer.reason else "")
            break
        self._ledger.refuse(live, f"{live.name} was not approved: {why}", "approval", reason_of(asks).setting)
        return None


def _answered(answer: Any) -> Answered:
    if not isinstance(answer, Answered):
        raise hooks.wrong(answer)
    arguments: Any = answer.arguments
    if arguments is not None and not isinstance(arguments, Mapping):
        raise hooks.wrong(arguments)
    return answer


def _reason(value: object) -> Reason | None:
    """A reason, also one given in plain words; ``None`` where it is neither."""
    return Reason(value) if isinstance(value, str) else value if isinstance(value, Reason) else None


def reason_of(asks: list[Ask]) -> Reason:
    """The reason of the first ask."""
    return _reason(asks[0].reason) or Reason("")
