"""Faults at every place where a call waits: whatever breaks, each call ends once and the kernel goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from toolkeel import Answered, Ask, Call, Reason, Result, Spilled, Text, hookimpl, tool
from toolkeel.calls import FINAL
from toolkeel.testing import Kit, kernel_with

MakePlugin = Callable[..., ModuleType]
LIMITS = {"hook_time_limit": 5, "time_limit": 5, "ask_time_limit": 5, "event_queue": 8}
BEFORE = ("rewrite", "authorize", "ask")
"""The stages that judge: a fault in one of them never lets the tool run."""
STAGES = (*BEFORE, "around in", "tool", "around out", "spill", "start told", "end told", "change told")
FAULTS = ("raises", "exits", "bare", "group", "hangs", "hangs deaf", "hangs and raises", "hangs and fails in a group")


class Bare(BaseException):
    """Not even an Exception."""


async def fails() -> None:
    raise ValueError("in a task")


async def fails_when_cancelled() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("in the clean-up")


async def commit(fault: str) -> None:
    """Fail in this way."""
    match fault:
        case "raises":
            raise ValueError("out of cheese")
        case "exits":
            raise SystemExit(3)
        case "bare":
            raise Bare
        case "group":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fails)
                await trio.sleep_forever()
        case "hangs":
            await trio.sleep_forever()
        case "hangs deaf":
            with contextlib.suppress(BaseException):
                await trio.sleep_forever()
        case "hangs and raises":
            await fails_when_cancelled()
        case "hangs and fails in a group":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fails_when_cancelled)
                await trio.sleep_forever()


class Stack:
    """A plugin that passes every stage, with faults that are committed once each."""

    NAME = "stack"

    def __init__(self, faults: dict[str, str]) -> None:
        self.left = dict(faults)
        self.committed: dict[str, str] = {}
        self.ran: list[str] = []
        stack = self

        @tool(writes=lambda arguments, scope: [("file", str(arguments["number"] % 2))])
        async def work(number: int) -> Any:
            """Do some work."""
            await stack.at("tool", str(number))
            stack.ran.append(str(number))
            return Text("x" * 9_000)

        self.work = work

    async def at(self, stage: str, who: str) -> None:
        await trio.lowlevel.checkpoint()
        fault = self.left.pop(stage, "")
        if fault:
            self.committed[who] = stage
            await commit(fault)

    @hookimpl
    def register_tools(self) -> Any:
        return self.work

    @hookimpl
    async def rewrite_tool_call(self, call: Call) -> Any:
        await self.at("rewrite", str(call.arguments["number"]))

    @hookimpl
    async def authorize_tool_call(self, call: Call) -> Any:
        await self.at("authorize", str(call.arguments["number"]))
        return Ask("sure?", Reason("careful"))

    @hookimpl
    async def resolve_ask(self, call: Call) -> Answered:
        await self.at("ask", str(call.arguments["number"]))
        return Answered(allowed=True, by="ann")

    @hookimpl
    async def around_tool_call(self, call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        await self.at("around in", str(call.arguments["number"]))
        result = await call_next()
        await self.at("around out", str(call.arguments["number"]))
        return result

    @hookimpl
    async def spill_result(self, call: Call, content: bytes) -> Spilled:
        await self.at("spill", str(call.arguments["number"]))
        return Spilled("stored", "ref", len(content))

    @hookimpl
    async def on_tool_call_start(self, event: Any) -> None:
        await self.at("start told", "")

    @hookimpl
    async def on_tool_call_end(self, event: Any) -> None:
        await self.at("end told", "")

    @hookimpl
    async def on_call_changed(self, event: Any) -> None:
        await self.at("change told", "")


async def run(kit: Kit, stack: Stack, size: int) -> None:
    """Run a batch through the stack and hold what must hold whatever breaks."""
    answers = await kit.batch([("work", {"number": number}) for number in range(size)])
    for number, answer in enumerate(answers):
        stage = stack.committed.get(str(number))
        if stage in BEFORE:
            assert (answer.status, str(number) in stack.ran) == ("refused", False), (stage, answer)
            assert "stack" in answer.text, "the answer names the plugin"
        elif stage in ("around in", "tool", "around out"):
            assert answer.status in ("failed", "completed"), (stage, answer)
            if stage == "around out" and answer.status == "failed":
                assert "finished" in answer.text
        else:
            assert answer.status == "completed", (stage, answer)
            assert answer.ref == ("" if stage == "spill" else "ref")
    assert kit.kernel.load["free"] == 8


async def recovered(kit: Kit, stack: Stack) -> None:
    """The kernel is as good as new: the next batch passes, and observers were told everything."""
    stack.left.clear()
    answers = await kit.batch([("work", {"number": 100 + number}) for number in range(4)])
    assert [answer.status for answer in answers] == ["completed"] * 4
    assert kit.kernel.plugins.get("stack").active  # type: ignore[union-attr]


@pytest.mark.requirement("K10")
@pytest.mark.requirement("K13")
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", STAGES)
async def test_a_fault_at_any_stage_ends_that_call_and_no_other(
    clock: MockClock, observer: Any, stage: str, fault: str, size: int
) -> None:
    stack = Stack({stage: fault})
    async with kernel_with(stack, observer, settings={"kernel": LIMITS}) as kit:
        clock.autojump_threshold = 0  # time passes when nothing else is left to do
        await run(kit, stack, size)
        await recovered(kit, stack)
        clock.autojump_threshold = float("inf")
        if "told" not in stage:
            assert stack.committed
    observer.check()
    assert len(observer.ends) == size + 4


@pytest.mark.requirement("K10")
@settings(max_examples=40, deadline=None)
@given(faults=st.dictionaries(st.sampled_from(STAGES), st.sampled_from(FAULTS[:4]), min_size=2))
def test_many_faults_at_once_still_end_every_call_once(faults: dict[str, str]) -> None:
    """Each stage fails once, in whatever call comes first; more than one may meet the same call."""
    records: list[tuple[str, str]] = []

    class Audit:
        NAME = "audit"

        @hookimpl
        async def on_call_changed(self, event: Any) -> None:
            records.append((event.record.id, event.record.status))

    async def go() -> None:
        stack = Stack(faults)
        async with kernel_with(stack, Audit, settings={"kernel": LIMITS}) as kit:
            answers = await kit.batch([("work", {"number": number}) for number in range(6)])
            assert len(answers) == 6
            for number, stage in stack.committed.items():
                if stage in BEFORE:
                    assert number not in stack.ran
            assert kit.kernel.load["free"] == 8
            await recovered(kit, stack)

    trio.run(go)
    final = [identifier for identifier, status in records if status in FINAL]
    assert len(final) == len(set(final)) == 10


STEPS = range(1, 250)
"""More task steps than a batch of three takes."""


class Countdown(trio.abc.Instrument):
    """Cancels a scope just before the so many-th step of any task."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.scope: trio.CancelScope | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.scope is not None:
            self.left -= 1
            if self.left == 0:
                self.scope.cancel()


@pytest.mark.requirement("K13")
@pytest.mark.parametrize("size", [1, 3])
async def test_a_request_cancelled_at_any_step_ends_every_call_once(clock: MockClock, observer: Any, size: int) -> None:
    """Not only where hooks wait: at every point where the kernel itself does."""
    finished = 0
    stack = Stack({})
    async with kernel_with(stack, observer, settings={"kernel": LIMITS}) as kit:
        for step in STEPS:
            countdown = Countdown(step)
            trio.lowlevel.add_instrument(countdown)
            try:
                with trio.CancelScope() as countdown.scope:
                    await kit.batch([("work", {"number": number}) for number in range(size)])
                    countdown.scope = None
                    finished += 1
            finally:
                trio.lowlevel.remove_instrument(countdown)
            load = kit.kernel.load
            assert load == {**load, "free": 8, "running": 0, "waiting": 0, "at_door": 0}, step
        await recovered(kit, stack)
    observer.check()
    assert 0 < finished < len(STEPS), "some were cancelled and some were done"
    assert {"completed", "cancelled"} <= {record.status for record in observer.ends}
