"""Calls that call: a slot is lent out, nobody waits for one while holding one, and the pool comes out even."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import Call, Data, Failure, Reason, Refuse, Text, ToolCall, ToolContext, ToolError, tool
from toolkeel.testing import Kit, kernel_with

MakePlugin = Callable[..., ModuleType]


@tool(effect="read")
async def leaf(number: int) -> int:
    """Answer with the number."""
    await trio.lowlevel.checkpoint()
    return number


@tool(effect="read")
async def branch(number: int, context: ToolContext) -> Any:
    """Call a leaf."""
    result = await context.call("leaf", {"number": number})
    assert isinstance(result, Data)
    return result.value


@tool(effect="read")
async def tree(depth: int, context: ToolContext) -> Any:
    """Call oneself."""
    if depth == 0:
        return "bottom"
    result = await context.call("tree", {"depth": depth - 1})
    if isinstance(result, Failure):
        raise ToolError(result.message)
    assert isinstance(result, Text)
    return f"{result.content}, {depth}"


@pytest.mark.requirement("K8")
@pytest.mark.parametrize("workers", [1, 2, 8])
async def test_tools_that_each_call_a_tool_on_a_full_pool_do_not_deadlock(
    make_plugin: MakePlugin, observer: Any, workers: int
) -> None:
    settings = {"kernel": {"workers": workers}}
    async with kernel_with(make_plugin(leaf, branch, tree), observer, settings=settings) as kit:
        with trio.fail_after(20):
            answers = await kit.batch([("branch", {"number": number}) for number in range(100)])
            deep = await kit.batch([("tree", {"depth": 7})] * 20)
        assert kit.kernel.load["free"] == workers
    assert [answer.text for answer in answers] == [str(number) for number in range(100)]
    assert {answer.text for answer in deep} == {"bottom, 1, 2, 3, 4, 5, 6, 7"}
    observer.check()


async def test_callers_of_many_sessions_that_nest_on_one_worker_all_end(make_plugin: MakePlugin) -> None:
    settings = {"kernel": {"workers": 1, "waiting": 2}}
    async with kernel_with(make_plugin(leaf, branch, tree), settings=settings) as kit:
        ended = 0

        async def converse(number: int) -> None:
            nonlocal ended
            async with kit.kernel.session(session=str(number)) as session:
                calls = [ToolCall("tree", {"depth": 3}, ""), ToolCall("branch", {"number": number}, "")]
                answers = await session.call(calls, session.request(principal=kit.offer.request.principal))
                assert all(answer.status == "completed" for answer in answers)
                ended += 1

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for number in range(30):
                    nursery.start_soon(converse, number)
        assert ended == 30
        assert kit.kernel.load == {**kit.kernel.load, "free": 1, "waiting": 0, "at_door": 0, "running": 0}


async def test_a_nested_call_passes_all_stages_and_gives_the_typed_result_whole(make_plugin: MakePlugin) -> None:
    judged: list[tuple[str, str]] = []

    @tool(effect="read")
    async def large() -> Any:
        """Give a lot."""
        return {"rows": ["x" * 100] * 1_000}

    @tool(effect="read")
    async def count(context: ToolContext) -> Any:
        """Count what large gives, and see what a refusal and a mistake look like."""
        whole = await context.call("large", {})
        refused = await context.call("forbidden", {})
        unknown = await context.call("larg", {})
        mistaken = await context.call("large", {"more": 1})
        assert isinstance(whole, Data)
        failures = [result.kind for result in (refused, unknown, mistaken) if isinstance(result, Failure)]
        return [len(whole.value["rows"]), *failures]  # type: ignore[index]

    @tool(effect="read")
    async def forbidden() -> None:
        """Never run."""

    async def authorize_tool_call(call: Call) -> Refuse | None:
        judged.append((call.tool.name, call.parent))
        return Refuse(Reason("no")) if call.tool.name == "forbidden" else None

    async with kernel_with(make_plugin(large, count, forbidden, hooks=[authorize_tool_call])) as kit:
        answer = await kit.call("count")
    assert answer.text == '[1000,"refused","refused","arguments"]'
    assert judged == [("count", ""), ("large", answer.record.id), ("forbidden", answer.record.id)]


@pytest.mark.parametrize(("cap", "depth", "fits"), [(3, 3, True), (3, 4, False), (0, 0, True), (0, 1, False)])
async def test_nesting_has_a_cap_that_the_refusal_names(
    make_plugin: MakePlugin, cap: int, depth: int, fits: bool
) -> None:
    async with kernel_with(make_plugin(tree), settings={"kernel": {"max_nesting": cap}}) as kit:
        answer = await kit.call("tree", depth=depth)
    assert (answer.status == "completed") == fits
    if not fits:
        assert "kernel.max_nesting" in answer.text


async def test_endless_recursion_ends_at_the_cap(make_plugin: MakePlugin, observer: Any) -> None:
    async with kernel_with(make_plugin(tree), observer) as kit:
        answer = await kit.call("tree", depth=10**6)
        assert kit.kernel.load["free"] == 8
    assert answer.status == "failed"
    assert "nested more than 8 deep" in answer.text
    observer.check()


async def test_nested_and_waiting_time_is_not_the_callers_running_time(
    make_plugin: MakePlugin, clock: MockClock
) -> None:
    @tool(effect="read", time_limit=50)
    async def long() -> str:
        """Take forty seconds."""
        await trio.sleep(40)
        return "long"

    @tool(effect="read", time_limit=10)
    async def patient(context: ToolContext) -> str:
        """Work two seconds, call, work two more, park, work two more."""
        await trio.sleep(2)
        await context.call("long", {})
        await trio.sleep(2)
        async with kit.kernel.parked():
            await trio.sleep(40)
        await trio.sleep(2)
        return "patient"

    @tool(effect="read", time_limit=10)
    async def slow(context: ToolContext) -> None:
        """Work six seconds twice, with a call between."""
        await trio.sleep(6)
        await context.call("long", {})
        await trio.sleep(6)

    async with kernel_with(make_plugin(long, patient, slow)) as kit:
        clock.autojump_threshold = 0
        patient_answer, slow_answer = await kit.batch([("patient", {}), ("slow", {})])
        clock.autojump_threshold = float("inf")
    assert (patient_answer.status, patient_answer.text) == ("completed", "patient")
    assert slow_answer.status == "failed"
    assert "within 10 s" in slow_answer.text


async def test_a_parked_call_holds_no_slot_and_comes_back_before_newcomers(make_plugin: MakePlugin) -> None:
    order: list[str] = []
    back = trio.Event()
    busy = trio.Event()

    @tool(effect="read")
    async def wait() -> None:
        """Wait for a person."""
        async with kit.kernel.parked():
            order.append("parked")
            await back.wait()
        order.append("back")

    @tool(effect="read")
    async def block() -> None:
        """Hold a slot."""
        await busy.wait()
        order.append("block")

    @tool(effect="read")
    async def newcomer() -> None:
        """Come later."""
        order.append("newcomer")

    settings = {"kernel": {"workers": 1}}
    async with (
        kernel_with(make_plugin(wait, block, newcomer), settings=settings) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.call, "wait")
        await wait_all_tasks_blocked()
        assert kit.kernel.load["free"] == 1
        nursery.start_soon(kit.call, "block")
        await wait_all_tasks_blocked()
        nursery.start_soon(kit.call, "newcomer")
        await wait_all_tasks_blocked()
        back.set()
        await wait_all_tasks_blocked()
        busy.set()
    assert order == ["parked", "block", "back", "newcomer"]


async def test_parking_outside_of_a_call_does_nothing(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(leaf)) as kit:
        async with kit.kernel.parked():
            assert kit.kernel.load["free"] == 8
        assert kit.kernel.load["free"] == 8


@asynccontextmanager
async def held(kit: Kit, holder: str) -> AsyncIterator[None]:
    """While the block runs another caller has the only slot."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kit.call, holder)
        await wait_all_tasks_blocked()
        yield


async def test_two_tasks_of_one_call_that_call_at_once_share_one_slot(make_plugin: MakePlugin) -> None:
    """One waits to come back while the other calls again: the call must not hold a slot while it waits for one."""
    let_go = trio.Event()
    second = trio.Event()

    @tool(effect="read")
    async def block() -> None:
        """Hold the slot."""
        await let_go.wait()

    @tool(effect="read")
    async def forked(context: ToolContext) -> str:
        """Call from two tasks."""
        parked = trio.Event()

        async def first_task() -> None:
            async with kit.kernel.parked():
                parked.set()
                await second.wait()

        async def second_task() -> None:
            await second.wait()
            await wait_all_tasks_blocked(0.001)
            await context.call("leaf", {"number": 2})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first_task)
            nursery.start_soon(second_task)
        return "done"

    answers: list[Any] = []

    async def call() -> None:
        answers.append(await kit.call("forked"))

    settings = {"kernel": {"workers": 1}}
    async with kernel_with(make_plugin(block, forked, leaf), settings=settings) as kit:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await wait_all_tasks_blocked()
                nursery.start_soon(kit.call, "block")
                await wait_all_tasks_blocked()
                second.set()
                await wait_all_tasks_blocked(0.01)
                let_go.set()
        assert answers[0].text == "done"
        assert kit.kernel.load["free"] == 1


async def test_parking_while_another_task_of_the_call_comes_back_loses_no_slot(make_plugin: MakePlugin) -> None:
    let_go = trio.Event()
    leave = trio.Event()

    @tool(effect="read")
    async def block() -> None:
        """Hold the slot."""
        await let_go.wait()

    @tool(effect="read")
    async def forked() -> str:
        """Park in one task; park shortly in another while the first waits to come back."""

        async def first_task() -> None:
            async with kit.kernel.parked():
                await leave.wait()

        async def second_task() -> None:
            await leave.wait()
            await wait_all_tasks_blocked(0.001)
            async with kit.kernel.parked():
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first_task)
            nursery.start_soon(second_task)
        return "done"

    settings = {"kernel": {"workers": 1}}
    async with kernel_with(make_plugin(block, forked, leaf), settings=settings) as kit:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(kit.call, "forked")
                await wait_all_tasks_blocked()
                nursery.start_soon(kit.call, "block")
                await wait_all_tasks_blocked()
                leave.set()
                await wait_all_tasks_blocked(0.01)
                let_go.set()
            assert kit.kernel.load["free"] == 1
            assert (await kit.call("leaf", number=1)).text == "1"


async def test_many_nested_calls_at_once_from_one_call(make_plugin: MakePlugin, observer: Any) -> None:
    @tool(effect="read")
    async def fan(context: ToolContext) -> int:
        """Call twenty leaves at once."""
        total = 0

        async def one(number: int) -> None:
            nonlocal total
            result = await context.call("leaf", {"number": number})
            assert isinstance(result, Data)
            total += result.value  # type: ignore[operator]

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(one, number)
        return total

    async with kernel_with(make_plugin(leaf, fan), observer, settings={"kernel": {"workers": 2}}) as kit:
        with trio.fail_after(20):
            answers = await kit.batch([("fan", {})] * 10)
        assert kit.kernel.load["free"] == 2
    assert {answer.text for answer in answers} == {"190"}
    observer.check()


async def test_an_offer_called_from_within_a_call_is_nested_too(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    async def agent() -> str:
        """Run a batch of one's own, as a subagent does."""
        answers = await kit.batch([("leaf", {"number": number}) for number in range(5)])
        return ",".join(answer.text for answer in answers)

    async with kernel_with(make_plugin(leaf, agent), settings={"kernel": {"workers": 1}}) as kit:
        with trio.fail_after(10):
            answer = await kit.call("agent")
        assert kit.kernel.load["free"] == 1
    assert answer.text == "0,1,2,3,4"


@pytest.mark.parametrize("hook", ["authorize_tool_call", "around_tool_call"])
async def test_a_decider_that_calls_a_tool_waits_for_no_slot_while_holding_one(
    make_plugin: MakePlugin, hook: str
) -> None:
    @tool(effect="read")
    async def work(number: int) -> int:
        """Work."""
        return number

    async def judge(call: Call) -> None:
        if call.tool.name == "work":
            [answer] = await kit.offer.call([ToolCall("leaf", {"number": 7}, "")])
            assert answer.text == "7"

    async def authorize_tool_call(call: Call) -> None:
        await judge(call)

    async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Any]]) -> Any:
        await judge(call)
        return await call_next()

    hooks = [one for one in (authorize_tool_call, around_tool_call) if one.__name__ == hook]
    settings = {"kernel": {"workers": 2, "hook_time_limit": 60}}
    async with kernel_with(make_plugin(work, leaf, hooks=hooks), settings=settings) as kit:
        with trio.fail_after(10):
            answers = await kit.batch([("work", {"number": number}) for number in range(8)])
            alone = await kit.call("work", number=9)
        assert kit.kernel.load["free"] == 2
    assert [answer.text for answer in [*answers, alone]] == [*map(str, range(8)), "9"]


async def test_a_sync_tool_calls_others_from_its_thread(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    def sync(context: ToolContext) -> Any:
        """Call a leaf from a thread."""
        result: Data = trio.from_thread.run(context.call, "leaf", {"number": 3})
        return result.value

    async with kernel_with(make_plugin(leaf, sync), settings={"kernel": {"workers": 1}}) as kit:
        with trio.fail_after(10):
            answers = await kit.batch([("sync", {})] * 4)
        assert kit.kernel.load["free"] == 1
    assert [answer.text for answer in answers] == ["3"] * 4


async def test_a_context_that_outlived_its_call_cannot_call_nor_take_anothers_slot(make_plugin: MakePlugin) -> None:
    kept: list[ToolContext] = []
    stay = trio.Event()

    @tool(effect="read")
    async def keep(context: ToolContext) -> None:
        """Keep the context."""
        kept.append(context)

    @tool(effect="read")
    async def hold() -> None:
        """Hold a slot."""
        await stay.wait()

    async with (
        kernel_with(make_plugin(keep, hold, leaf), settings={"kernel": {"workers": 1}}) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, [("keep", {}), ("hold", {})])
        await wait_all_tasks_blocked()
        with pytest.raises(ToolError, match="has ended"):
            await kept[0].call("leaf", {"number": 1})
        assert kit.kernel.load["free"] == 0
        stay.set()


async def test_a_nested_call_is_cancelled_with_its_caller(make_plugin: MakePlugin, observer: Any) -> None:
    @tool(effect="read")
    async def forever() -> None:
        """Never end."""
        await trio.sleep_forever()

    @tool(effect="read")
    async def caller(context: ToolContext) -> None:
        """Call what never ends."""
        await context.call("forever", {})

    async with kernel_with(make_plugin(forever, caller), observer) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kit.batch, [("caller", {}), ("caller", {})])
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert kit.kernel.load["free"] == 8
    observer.check()
    assert [record.status for record in observer.ends] == ["cancelled"] * 4
    assert {bool(record.parent) for record in observer.ends} == {True, False}
