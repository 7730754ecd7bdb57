"""Call records and lifecycle events: what observers are told, in which order, and that they hold nothing up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import Call, CallRecord, Reason, Refuse, ToolCall, ToolError, hookimpl, tool
from toolkeel.events import CallChanged, Event, ToolCallEnded
from toolkeel.testing import Kit, kernel_with

MakePlugin = Callable[..., ModuleType]
HOOK_LIMIT = 5.0


@tool(effect="read", inline=True)
def quick(number: int = 0) -> int:
    """Answer at once."""
    return number


@tool(effect="read")
async def fail() -> None:
    """Fail on purpose."""
    raise ToolError("the disk is full")


def listener(name: str, hook: str, listen: Callable[[Any], Any], priority: int = 100) -> ModuleType:
    async def implementation(event: Any) -> Any:
        return await listen(event)

    module = ModuleType(name)
    module.PRIORITY = priority  # type: ignore[attr-defined]
    implementation.__name__ = hook
    setattr(module, hook, hookimpl(implementation))
    return module


def notes(kit: Kit, plugin: str) -> tuple[str, ...]:
    [info] = [info for info in kit.kernel.plugins.list() if info.name == plugin]
    return info.notes


# Records -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K13")
async def test_every_change_of_a_call_is_told_in_order_and_its_end_once(make_plugin: MakePlugin, observer: Any) -> None:
    async def authorize_tool_call(call: Call) -> Refuse | None:
        return Refuse(Reason("no", "rules.no")) if call.arguments.get("number") == 13 else None

    calls = [
        ToolCall("quick", '{"number": "7"}', "a"),
        ToolCall("fail", {}, "b"),
        ToolCall("quick", {"number": 13}, "c"),
        ToolCall("quik", {}, "d"),
        ToolCall("quick", "{broken", "e"),
    ]
    async with kernel_with(make_plugin(quick, fail, hooks=[authorize_tool_call]), observer, session="s1") as kit:
        answers = await kit.offer.call(calls)
    observer.check()
    lives = observer.lives()
    by_model_id = {record.model_id: lives[record.id] for record in observer.changes}
    assert by_model_id == {
        "a": ["pending", "executing", "completed"],
        "b": ["pending", "executing", "failed"],
        "c": ["pending", "refused"],
        "d": ["pending", "refused"],
        "e": ["pending", "failed"],
    }
    ends = {record.model_id: record for record in observer.ends}
    assert {answer.id: answer.record for answer in answers} == ends, "the answer carries the same record"
    assert [record.model_id for record in observer.starts] == ["a", "b"]


@pytest.mark.requirement("K13")
async def test_a_record_says_who_what_when_and_why(make_plugin: MakePlugin, observer: Any) -> None:
    async def authorize_tool_call(call: Call) -> Refuse:
        return Refuse(Reason("not on a Friday", "rules.friday", "rules"))

    guard = make_plugin(name="guard", hooks=[authorize_tool_call])
    async with kernel_with(make_plugin(quick), guard, observer, agent="helper", session="s1") as kit:
        await kit.offer.call([ToolCall("quick", '{"number": "7"}', "m1")])
    [record] = observer.ends
    assert (record.tool, record.plugin, record.model_id, record.status) == ("quick", "tools", "m1", "refused")
    assert (record.agent, record.session, record.principal, record.role) == ("helper", "s1", "tester", "admin")
    assert (record.reason, record.refused_by, record.setting) == ("not on a Friday", "rules (guard)", "rules.friday")
    assert record.arguments == {"number": 7}
    assert [(repair.path, repair.what) for repair in record.repairs] == [("number", "a string read as an integer")]
    assert record.started is None
    assert record.ended is not None
    assert record.created <= record.ended


@pytest.mark.requirement("K13")
async def test_times_of_a_call_go_forward_and_events_bear_them(make_plugin: MakePlugin) -> None:
    told: list[tuple[str, Event]] = []

    def noting(hook: str) -> ModuleType:
        async def listen(event: Event) -> None:
            told.append((hook, event))

        return listener(hook, hook, listen)

    @tool(effect="read")
    async def slow() -> None:
        """Let time pass."""
        await trio.sleep(0.01)

    hooks = ["on_tool_call_start", "on_tool_call_end", "on_call_changed"]
    async with kernel_with(make_plugin(slow), *map(noting, hooks)) as kit:
        answer = await kit.call("slow")
    record = answer.record
    assert record.started is not None
    assert record.ended is not None
    assert record.created <= record.started < record.ended
    times = {hook: event.time for hook, event in told if hook != "on_call_changed"}
    assert times == {"on_tool_call_start": record.started, "on_tool_call_end": record.ended}
    changed = [event.time for hook, event in told if hook == "on_call_changed"]
    assert changed == [record.created, record.started, record.ended]


@pytest.mark.requirement("K13")
async def test_what_observers_get_is_frozen(make_plugin: MakePlugin) -> None:
    refused = 0

    async def meddle(event: CallChanged) -> None:
        nonlocal refused
        for change in (
            lambda: setattr(event.record, "status", "completed"),
            lambda: setattr(event, "time", 0.0),
            lambda: event.record.arguments.update(number=8),  # type: ignore[attr-defined]
            lambda: event.record.arguments.__setitem__("number", 8),  # type: ignore[attr-defined]
        ):
            try:
                change()
            except (AttributeError, TypeError):
                refused += 1

    async with kernel_with(make_plugin(quick), listener("meddler", "on_call_changed", meddle)) as kit:
        [answer] = await kit.offer.call([ToolCall("quick", '{"number": 7}', "m1")])
    assert answer.text == "7"
    assert answer.record.arguments == {"number": 7}
    assert refused >= 8, "of executing and completed, each in every way"


async def test_ids_of_calls_are_unique_even_where_a_model_repeats_its_own(
    make_plugin: MakePlugin, observer: Any
) -> None:
    async with kernel_with(make_plugin(quick), observer) as kit:
        answers = await kit.offer.call([ToolCall("quick", {"number": number}, "same") for number in range(50)])
    assert [answer.text for answer in answers] == [str(number) for number in range(50)]
    assert {answer.id for answer in answers} == {"same"}
    assert len({answer.record.id for answer in answers}) == 50
    observer.check()


# Observers ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K14")
async def test_observers_are_told_by_priority(make_plugin: MakePlugin) -> None:
    told: list[str] = []

    def noting(name: str, priority: int) -> ModuleType:
        async def listen(event: Event) -> None:
            told.append(name)

        return listener(name, "on_tool_call_end", listen, priority)

    plugins = [noting("late", 300), noting("b", 100), noting("a", 100), noting("early", 5)]
    async with kernel_with(make_plugin(quick), *plugins) as kit:
        await kit.batch([("quick", {}), ("quick", {})])
    assert told == ["early", "a", "b", "late"] * 2


@pytest.mark.requirement("K14")
async def test_the_life_of_kernel_and_sessions_is_told(make_plugin: MakePlugin) -> None:
    told: list[str] = []

    def noting(hook: str) -> ModuleType:
        async def listen(event: Any) -> None:
            scope = getattr(event, "scope", None)
            told.append(f"{hook} {scope.session}" if scope else hook)

        return listener(hook, hook, listen)

    hooks = ["on_gateway_start", "on_gateway_stop", "on_session_start", "on_session_end", "on_tool_call_end"]
    async with kernel_with(make_plugin(quick), *map(noting, hooks), session="one") as kit:
        await kit.call("quick")
        async with kit.kernel.session(session="two"):
            pass
    assert told == [
        "on_gateway_start",
        "on_session_start one",
        "on_tool_call_end",
        "on_session_start two",
        "on_session_end two",
        "on_session_end one",
        "on_gateway_stop",
    ]


async def test_a_slow_observer_holds_up_no_call(make_plugin: MakePlugin, clock: MockClock) -> None:
    gate = trio.Event()
    told = 0

    async def slow(event: Event) -> None:
        nonlocal told
        await gate.wait()
        told += 1

    async with kernel_with(make_plugin(quick), listener("slow", "on_tool_call_end", slow)) as kit:
        answers = await kit.batch([("quick", {"number": number}) for number in range(300)])
        assert told == 0
        gate.set()
    assert [answer.text for answer in answers] == [str(number) for number in range(300)]
    assert told == 300, "closing waits until every event was taken"


@pytest.mark.requirement("K14")
@pytest.mark.parametrize("fault", ["raises", "exits", "in a task", "gives something"])
async def test_a_failing_observer_is_recorded_and_stops_nothing(
    make_plugin: MakePlugin, observer: Any, fault: str
) -> None:
    async def child() -> None:
        raise ValueError("torn")

    async def listen(event: Event) -> Any:
        if fault == "raises":
            raise ValueError("torn")
        if fault == "exits":
            raise SystemExit(3)
        if fault == "in a task":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)
        return 5

    bad = listener("bad", "on_tool_call_end", listen, 1)
    async with kernel_with(make_plugin(quick), bad, observer) as kit:
        answers = await kit.batch([("quick", {})] * 10)
        await wait_all_tasks_blocked(0.01)
        said = notes(kit, "bad")
    assert {answer.status for answer in answers} == {"completed"}
    observer.check()
    assert len(observer.ends) == 10
    if fault != "gives something":
        assert said == (f"on_tool_call_end: {'SystemExit: 3' if fault == 'exits' else 'ValueError: torn'}",)


@pytest.mark.requirement("K14")
@pytest.mark.parametrize("manner", ["hangs", "swallows its time-out", "fails in the clean-up", "fails in a group"])
async def test_an_observer_that_hangs_is_suspended_after_three_time_outs(
    make_plugin: MakePlugin, observer: Any, clock: MockClock, manner: str
) -> None:
    tried = 0

    async def fails_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("in the clean-up")

    async def hang(event: Event) -> None:
        nonlocal tried
        tried += 1
        clock.jump(HOOK_LIMIT + 1)
        match manner:
            case "swallows its time-out":
                with contextlib.suppress(BaseException):
                    await trio.sleep_forever()
            case "fails in the clean-up":
                await fails_when_cancelled()
            case "fails in a group":
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(fails_when_cancelled)
                    await trio.sleep_forever()
            case _:
                await trio.sleep_forever()

    bad = listener("bad", "on_tool_call_end", hang, 1)
    async with kernel_with(make_plugin(quick), bad, observer) as kit:
        await kit.batch([("quick", {})] * 10)
        with trio.fail_after(60):
            while len(observer.ends) < 10:
                await trio.lowlevel.checkpoint()
        said = notes(kit, "bad")
        assert (await kit.call("quick", number=5)).text == "5"
    assert tried == 3
    assert any("no answer within 5 s" in note or "in the clean-up" in note for note in said)
    assert any("is suspended after 3 time-outs in a row" in note for note in said)
    observer.check()


async def test_time_outs_that_are_not_in_a_row_suspend_nobody(make_plugin: MakePlugin, clock: MockClock) -> None:
    tried = 0

    async def sometimes(event: Event) -> None:
        nonlocal tried
        tried += 1
        if tried % 3:
            clock.jump(HOOK_LIMIT + 1)
            await trio.sleep_forever()

    async with kernel_with(make_plugin(quick), listener("shaky", "on_tool_call_end", sometimes)) as kit:
        await kit.batch([("quick", {})] * 9)
        with trio.fail_after(100):
            while tried < 9:
                await trio.lowlevel.checkpoint()
    assert tried == 9


async def test_a_reload_lifts_a_suspension(make_plugin: MakePlugin, clock: MockClock) -> None:
    heard: list[int] = []
    hanging = True

    class Listener:
        NAME = "listener"

        @hookimpl
        async def on_tool_call_end(self, event: ToolCallEnded) -> None:
            if hanging:
                clock.jump(HOOK_LIMIT + 1)
                await trio.sleep_forever()
            heard.append(1)

    async with kernel_with(make_plugin(quick), Listener) as kit:
        await kit.batch([("quick", {})] * 4)
        await wait_all_tasks_blocked(0.01)
        hanging = False
        await kit.call("quick")
        await wait_all_tasks_blocked(0.01)
        assert heard == []
        await kit.kernel.plugins.reload("listener")
        await kit.call("quick")
    assert heard == [1]


@pytest.mark.requirement("K14")
@pytest.mark.parametrize(("batches", "size"), [(50, 4), (1, 200), (200, 1)])
async def test_calls_wait_while_the_queue_is_full_and_nothing_is_dropped(
    make_plugin: MakePlugin, batches: int, size: int
) -> None:
    gate = trio.Event()
    told: list[CallRecord] = []
    ran = 0

    @tool(effect="read", inline=True)
    def count() -> None:
        """Count."""
        nonlocal ran
        ran += 1

    async def slow(event: ToolCallEnded) -> None:
        await gate.wait()
        told.append(event.record)

    settings = {"kernel": {"event_queue": 8}}
    async with kernel_with(make_plugin(count), listener("slow", "on_tool_call_end", slow), settings=settings) as kit:
        async with trio.open_nursery() as nursery:
            for _ in range(batches):
                nursery.start_soon(kit.batch, [("count", {})] * size)
            await wait_all_tasks_blocked()
            assert 8 <= ran <= 8 + 8 + 1, "a queue of eight, a call on each worker, an event in hand"
            gate.set()
        assert kit.kernel.load["free"] == 8
    assert ran == 200
    assert len(told) == len({record.id for record in told}) == 200


@pytest.mark.requirement("K8")
async def test_refused_calls_wait_for_observers_too(make_plugin: MakePlugin) -> None:
    """Else a loop of refusals would fill the memory."""
    gate = trio.Event()
    answered = 0

    async def slow(event: ToolCallEnded) -> None:
        await gate.wait()

    async def ask() -> None:
        nonlocal answered
        for _ in range(500):
            await kit.call("nothing")
            answered += 1

    settings = {"kernel": {"event_queue": 8}}
    async with (
        kernel_with(make_plugin(quick), listener("slow", "on_tool_call_end", slow), settings=settings) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(ask)
        await wait_all_tasks_blocked(0.01)
        assert answered < 50
        gate.set()
    assert answered == 500


async def test_an_observer_that_calls_a_tool_does_not_block_itself(make_plugin: MakePlugin) -> None:
    answers: list[str] = []

    async def curious(event: ToolCallEnded) -> None:
        if event.record.model_id == "call-1":
            [answer] = await kit.offer.call([ToolCall("quick", {"number": 2}, "own")])
            answers.append(answer.text)

    async with kernel_with(make_plugin(quick), listener("curious", "on_tool_call_end", curious)) as kit:
        await kit.call("quick", number=1)
        await wait_all_tasks_blocked(0.01)
    assert answers == ["2"]


async def test_events_cost_nothing_where_nobody_listens(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(quick), settings={"kernel": {"event_queue": 8}}) as kit:
        answers = await kit.batch([("quick", {})] * 1_000)
    assert len(answers) == 1_000


@pytest.mark.requirement("K14")
async def test_a_change_of_the_plugin_set_is_told(make_plugin: MakePlugin) -> None:
    told: list[str] = []

    async def listen(event: Any) -> None:
        told.append(event.reason)

    async with kernel_with(make_plugin(quick), listener("watcher", "on_tools_changed", listen)) as kit:
        await kit.kernel.plugins.disable("tools")
        await kit.kernel.plugins.enable("tools")
    assert [reason for reason in told if "'tools'" in reason] == [
        "plugin 'tools' was disabled",
        "plugin 'tools' was enabled",
    ]


def test_every_event_is_frozen() -> None:
    for kind in Event.__subclasses__():
        assert kind.__struct_config__.frozen, kind
    assert CallRecord.__struct_config__.frozen
    assert issubclass(CallRecord, msgspec.Struct)
