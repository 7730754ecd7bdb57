"""Cancelling a request: every call ends once, every slot comes back, nothing stays behind."""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from toolkeel import Answered, Ask, Call, Principal, Reason, Refuse, Result, ToolCall, ToolContext, tool
from toolkeel.live import Live
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]
STAGES = ["rewrite", "decider", "ask", "around before", "tool", "around after", "spill", "queue", "door", "observers"]


@pytest.mark.requirement("K13")
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_request_cancelled_at_any_stage_ends_every_call_once(
    make_plugin: MakePlugin, observer: Any, stage: str, size: int
) -> None:
    here = trio.Event()
    ran = 0

    async def stay(at: str) -> None:
        if at == stage:
            here.set()
            await trio.sleep_forever()

    @tool(writes=lambda arguments, scope: [("file", "a")])
    async def work() -> str:
        """Pass the stages."""
        nonlocal ran
        ran += 1
        await stay("tool")
        return "x" * 10_000

    @tool(effect="read")
    async def block() -> None:
        """Hold the slot."""
        await stay("queue")
        await stay("door")

    async def rewrite_tool_call(call: Call) -> None:
        await stay("rewrite")

    async def authorize_tool_call(call: Call) -> Any:
        await stay("decider")
        return Ask("sure?", Reason("careful")) if stage == "ask" else None

    async def resolve_ask(call: Call) -> Answered:
        await stay("ask")
        return Answered(allowed=True, by="ann")

    async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        if call.tool.name == "work":
            await stay("around before")
        result = await call_next()
        if call.tool.name == "work":
            await stay("around after")
        return result

    async def spill_result(call: Call) -> None:
        await stay("spill")

    hooks = [rewrite_tool_call, authorize_tool_call, resolve_ask, around_tool_call, spill_result]
    settings = {"kernel": {"workers": 1 if stage in ("queue", "door") else 8, "waiting": 1, "event_queue": 8}}
    async with kernel_with(make_plugin(work, block, hooks=hooks), observer, settings=settings) as kit:
        async with trio.open_nursery() as nursery:
            if stage in ("queue", "door"):
                nursery.start_soon(kit.call, "block")
                await here.wait()
            if stage == "door":
                nursery.start_soon(kit.call, "work")
                await wait_all_tasks_blocked()
            nursery.start_soon(kit.batch, [("work", {})] * size)
            if stage != "observers":
                await here.wait()
                await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        load = kit.kernel.load
        assert (load["running"], load["waiting"], load["at_door"]) == (0, 0, 0)
        assert load["free"] == kit.kernel.settings.workers
        with trio.fail_after(30):  # and the kernel is as good as new
            stage = "none"
            assert (await kit.batch([("work", {})] * 3))[2].status == "completed"
    observer.check()
    ended = [record for record in observer.ends if record.status == "cancelled"]
    for record in ended:
        assert record.reason == "the request was cancelled"


async def test_cancelling_one_request_leaves_the_others(make_plugin: MakePlugin, observer: Any) -> None:
    gate = trio.Event()

    @tool(effect="read")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "done"

    answers: list[Any] = []

    async def other() -> None:
        answers.extend(await kit.batch([("wait", {})] * 10))

    async with kernel_with(make_plugin(wait), observer) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(other)
        async with trio.open_nursery() as doomed:
            doomed.start_soon(kit.batch, [("wait", {})] * 10)
            await wait_all_tasks_blocked()
            doomed.cancel_scope.cancel()
        gate.set()
    assert [answer.text for answer in answers] == ["done"] * 10
    observer.check()


async def test_cancelling_raises_and_nothing_else_does(make_plugin: MakePlugin) -> None:
    async def clean_up_badly() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("in the clean-up")

    @tool(effect="read")
    async def untidy() -> None:
        """Fail in the clean-up."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clean_up_badly)
            await trio.sleep_forever()

    async with kernel_with(make_plugin(untidy)) as kit:
        for size in (1, 3):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(kit.batch, [("untidy", {})] * size)
                    await wait_all_tasks_blocked()
                    scope.cancel()
            assert scope.cancelled_caught
        assert kit.kernel.load["free"] == 8


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def living() -> set[int]:
    """The live records of calls, their batches and pullers that somebody still holds."""
    gc.collect()
    return {id(one) for one in gc.get_objects() if type(one).__module__ == Live.__module__}


@pytest.mark.requirement("K8")
@pytest.mark.requirement("K13")
@pytest.mark.parametrize("seed", range(3))
async def test_two_hundred_requests_cancelled_at_random_leave_nothing_behind(
    make_plugin: MakePlugin, observer: Any, seed: int
) -> None:
    chance = random.Random(seed)
    release = threading.Event()

    async def turns() -> None:
        for _ in range(chance.randrange(4)):
            await trio.lowlevel.checkpoint()

    @tool(effect="read")
    async def read(number: int) -> int:
        """Read for some turns."""
        await turns()
        return number

    @tool(writes=lambda arguments, scope: [("file", str(arguments["number"] % 3))])
    async def write(number: int) -> str:
        """Write for some turns, or fail."""
        await turns()
        if number % 5 == 0:
            raise ValueError("unlucky")
        return "x" * chance.choice((5, 9_000))

    @tool(effect="read")
    def thread(number: int) -> int:
        """Work in a thread, now and then until the test is over."""
        if number % 50 == 0:
            release.wait(60)
        return number

    @tool(effect="read")
    async def nest(number: int, context: ToolContext) -> str:
        """Call another tool, or wait for it to be over."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(context.call, "write", {"number": number})
            async with kit.kernel.parked():
                await turns()
        return "nested"

    async def rewrite_tool_call(call: Call) -> Any:
        await turns()
        return dict(call.arguments) if chance.random() < 0.1 else None

    async def authorize_tool_call(call: Call) -> Any:
        await turns()
        draw = chance.random()
        if draw < 0.05:
            raise KeyError("a broken rule")
        if draw < 0.1:
            return Refuse(Reason("unlucky"))
        return Ask("sure?", Reason("careful")) if draw < 0.25 else None

    async def resolve_ask(call: Call) -> Answered | None:
        await turns()
        arguments = {"number": chance.randrange(1, 9)} if chance.random() < 0.3 else None
        return Answered(allowed=chance.random() < 0.8, by="ann", arguments=arguments)

    async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        await turns()
        result = await call_next()
        await turns()
        if chance.random() < 0.05:
            raise OSError("a torn trace")
        return result

    async def spill_result(call: Call) -> None:
        await turns()

    async def on_tool_call_end(event: Any) -> None:
        await turns()
        if chance.random() < 0.05:
            raise OSError("a torn log")

    hooks = [rewrite_tool_call, authorize_tool_call, resolve_ask, around_tool_call, spill_result, on_tool_call_end]
    tools = (read, write, thread, nest)
    answered = given_up = 0

    async def request(number: int) -> None:
        nonlocal answered, given_up
        chosen = [chance.choice(("read", "write", "nest", "nest", "write", "thread")) for _ in range(8)]
        calls = [ToolCall(name, {"number": number + index + 1}, str(index)) for index, name in enumerate(chosen)]
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel_some_time, scope)
                async with kit.kernel.session(session=str(number % 20)) as session:
                    asked = session.request(principal=Principal("ann"))
                    answers = await session.call(calls, asked)
                nursery.cancel_scope.cancel()
            assert [answer.id for answer in answers] == [str(index) for index in range(8)]
            answered += 1
        given_up += scope.cancelled_caught

    async def cancel_some_time(scope: trio.CancelScope) -> None:
        if chance.random() < 0.5:
            await trio.sleep_forever()
        for _ in range(chance.randrange(300)):
            await trio.sleep(0)
        scope.cancel()

    before = living()
    files, threads, tasks = open_files(), set(threading.enumerate()), trio.lowlevel.current_statistics().tasks_living
    try:
        async with kernel_with(make_plugin(*tools, hooks=hooks), observer) as kit:
            async with trio.open_nursery() as nursery:
                for number in range(200):
                    nursery.start_soon(request, number)
                await wait_all_tasks_blocked(0.02)
                release.set()
            with trio.fail_after(30):
                while kit.kernel.load["stray_threads"]:
                    await trio.sleep(0.001)
            load = kit.kernel.load
            assert load == {**load, "free": 8, "running": 0, "waiting": 0, "at_door": 0}
            fine = await kit.batch([("read", {"number": 1})] * 8)
            assert len(fine) == 8
    finally:
        release.set()
    observer.check()
    assert answered + given_up == 200
    assert answered > 20
    assert given_up > 20
    statuses = {record.status for record in observer.ends}
    assert statuses - {"cancelled"} == {"completed", "failed", "refused"}, "where a cancel strikes is up to the machine"
    assert living() <= before, "nothing of a call outlives it"
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert open_files() <= files
    with trio.fail_after(30):
        while names := [one.name for one in set(threading.enumerate()) - threads if "Trio" not in one.name]:
            assert names == ["toolkeel-watchdog"]
            await trio.sleep(0.001)
