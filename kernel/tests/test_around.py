"""The onion around a call: order, repeating, answering in the tool's place, failures that tell what was done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import Call, Data, Failure, Result, Text, ToolError, hookimpl, tool
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]
Next = Callable[[], Awaitable[Result]]
Wrap = Callable[[Call, Next], Awaitable[Any]]


def layer(name: str, wrap: Wrap, priority: int = 100) -> ModuleType:
    async def around_tool_call(call: Call, call_next: Next) -> Any:
        return await wrap(call, call_next)

    module = ModuleType(name)
    module.PRIORITY = priority  # type: ignore[attr-defined]
    module.around_tool_call = hookimpl(around_tool_call)  # type: ignore[attr-defined]
    return module


class Tools:
    """A tool of each kind that counts how often it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

        @tool(effect="read")
        async def read() -> str:
            """Read."""
            self.ran.append("read")
            return "read it"

        @tool(idempotent=True)
        async def put() -> str:
            """Write what may be repeated."""
            self.ran.append("put")
            return "put it"

        @tool
        async def write() -> str:
            """Write what may not be repeated."""
            self.ran.append("write")
            return "wrote it"

        @tool(effect="destructive")
        async def delete() -> str:
            """Lose something."""
            self.ran.append("delete")
            return "deleted it"

        self.tools = (read, put, write, delete)


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.mark.requirement("K10")
async def test_layers_lie_outermost_first_by_priority_then_name(make_plugin: MakePlugin, tools: Tools) -> None:
    order: list[str] = []

    def noting(name: str) -> Wrap:
        async def wrap(call: Call, call_next: Next) -> Result:
            order.append(f"{name} in")
            result = await call_next()
            order.append(f"{name} out")
            return result

        return wrap

    layers = [
        layer("inner", noting("inner"), 300),
        layer("b", noting("b"), 200),
        layer("a", noting("a"), 200),
        layer("outer", noting("outer"), 100),
    ]
    async with kernel_with(make_plugin(*tools.tools), *layers) as kit:
        answer = await kit.call("read")
    assert order == ["outer in", "a in", "b in", "inner in", "inner out", "b out", "a out", "outer out"]
    assert answer.text == "read it"


async def test_an_operator_turns_the_onion_round_by_settings(make_plugin: MakePlugin, tools: Tools) -> None:
    order: list[str] = []

    def noting(name: str) -> Wrap:
        async def wrap(call: Call, call_next: Next) -> Result:
            order.append(name)
            return await call_next()

        return wrap

    settings = {"kernel": {"priority": {"a": 500}}}
    layers = [layer("a", noting("a"), 1), layer("b", noting("b"), 2)]
    async with kernel_with(make_plugin(*tools.tools), *layers, settings=settings) as kit:
        await kit.call("read")
    assert order == ["b", "a"]


async def test_a_layer_may_change_the_result_or_answer_in_the_tools_place(
    make_plugin: MakePlugin, tools: Tools
) -> None:
    async def shout(call: Call, call_next: Next) -> Result:
        result = await call_next()
        assert isinstance(result, Text)
        return Text(str(result.content).upper())

    async def cached(call: Call, call_next: Next) -> Result:
        return Data({"cached": True}) if call.tool.name == "put" else await call_next()

    async with kernel_with(make_plugin(*tools.tools), layer("shout", shout)) as kit:
        assert (await kit.call("read")).text == "READ IT"
    async with kernel_with(make_plugin(*tools.tools), layer("cache", cached)) as kit:
        answer = await kit.call("put")
    assert (answer.status, answer.text) == ("completed", '{"cached":true}')
    assert tools.ran == ["read"]


@pytest.mark.parametrize(("name", "times"), [("read", 3), ("put", 3), ("write", 1), ("delete", 1)])
async def test_call_next_may_be_repeated_for_reads_and_idempotent_tools_only(
    make_plugin: MakePlugin, tools: Tools, name: str, times: int
) -> None:
    async def thrice(call: Call, call_next: Next) -> Result:
        for _ in range(2):
            await call_next()
        return await call_next()

    async with kernel_with(make_plugin(*tools.tools), layer("retry", thrice)) as kit:
        answer = await kit.call(name)
    assert tools.ran == [name] * times
    assert answer.status == ("completed" if times == 3 else "failed")
    if times == 1:
        assert "call_next was awaited a second time" in answer.text
        assert "'retry'" in answer.text
        assert f"{name} finished" in answer.text
        assert "Do not repeat it" in answer.text


async def test_an_inner_layer_cannot_be_made_to_repeat_a_write_by_an_outer_one(
    make_plugin: MakePlugin, tools: Tools
) -> None:
    async def twice(call: Call, call_next: Next) -> Result:
        await call_next()
        return await call_next()

    async def plain(call: Call, call_next: Next) -> Result:
        return await call_next()

    async with kernel_with(make_plugin(*tools.tools), layer("outer", twice, 1), layer("inner", plain, 2)) as kit:
        assert (await kit.call("write")).status == "failed"
        assert (await kit.call("read")).status == "completed"
    assert tools.ran == ["write", "read", "read"]


async def test_call_next_runs_in_turn_never_twice_at_once(make_plugin: MakePlugin, tools: Tools) -> None:
    gate = trio.Event()

    @tool(effect="read")
    async def slow() -> str:
        """Wait."""
        tools.ran.append("slow")
        await gate.wait()
        return "slow"

    async def hasty(call: Call, call_next: Next) -> Result:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call_next)
            await wait_all_tasks_blocked()
            return await call_next()

    async with kernel_with(make_plugin(slow), layer("hasty", hasty)) as kit:
        answer = await kit.call("slow")
    assert tools.ran == ["slow"]
    assert answer.status == "failed"
    assert "while it still runs" in answer.text


async def test_a_retry_recovers_a_failing_read(make_plugin: MakePlugin) -> None:
    tries = 0

    @tool(effect="read")
    async def flaky() -> str:
        """Fail twice."""
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ToolError("busy")
        return "there you are"

    async def retry(call: Call, call_next: Next) -> Result:
        for _ in range(3):
            result = await call_next()
            if not isinstance(result, Failure):
                break
        return result

    async with kernel_with(make_plugin(flaky), layer("retry", retry)) as kit:
        answer = await kit.call("flaky")
    assert (answer.status, answer.text, tries) == ("completed", "there you are", 3)


class Broken(Exception):
    """An exception that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def fails(how: str, after: bool) -> Wrap:
    async def wrap(call: Call, call_next: Next) -> Any:
        if after:
            await call_next()
        match how:
            case "raises":
                raise ValueError("the trace is torn")
            case "exits":
                sys.exit(1)
            case "raises what cannot be printed":
                raise Broken
            case "raises from a task":

                async def child() -> None:
                    raise ValueError("the trace is torn")

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(child)
            case "gives text":
                return "fine"
            case "gives nothing":
                return None
            case "gives a dict":
                return {"fine": True}
        raise AssertionError(how)

    return wrap


@pytest.mark.parametrize("name", ["read", "write"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "how",
    [
        "raises",
        "exits",
        "raises what cannot be printed",
        "raises from a task",
        "gives text",
        "gives nothing",
        "gives a dict",
    ],
)
async def test_a_failing_layer_fails_the_call_and_says_whether_the_tool_finished(
    make_plugin: MakePlugin, tools: Tools, observer: Any, how: str, after: bool, name: str
) -> None:
    async with kernel_with(make_plugin(*tools.tools), layer("torn", fails(how, after)), observer) as kit:
        answer = await kit.call(name)
        answers = await kit.batch([(name, {}), (name, {})])
        assert kit.kernel.load["free"] == 8
    for one in [answer, *answers]:
        assert one.status == "failed"
        assert "a hook around the call" in one.text
        assert ("finished" in one.text) == after, "a model must know, so that it does not repeat a write"
        if after and name == "write":
            assert "Do not repeat it" in one.text
    assert tools.ran == [name] * (3 if after else 0)
    observer.check()


async def test_a_failing_layer_is_named(make_plugin: MakePlugin, tools: Tools) -> None:
    async with kernel_with(make_plugin(*tools.tools), layer("torn", fails("gives text", after=False))) as kit:
        answer = await kit.call("read")
        [plugin] = [plugin for plugin in kit.kernel.plugins.list() if plugin.name == "torn"]
    assert "torn" in answer.text
    assert any("around_tool_call" in note for note in plugin.notes)


async def test_a_failure_in_a_layer_reaches_the_layers_outside_of_it(make_plugin: MakePlugin, tools: Tools) -> None:
    seen: list[str] = []

    async def outer(call: Call, call_next: Next) -> Result:
        try:
            return await call_next()
        except ValueError as error:
            seen.append(str(error))
            return Text("rescued")

    async with kernel_with(
        make_plugin(*tools.tools), layer("outer", outer, 1), layer("torn", fails("raises", after=True), 2)
    ) as kit:
        answer = await kit.call("read")
    assert seen == ["the trace is torn"]
    assert (answer.status, answer.text) == ("completed", "rescued")


async def test_a_tools_failure_is_a_result_to_the_layers(make_plugin: MakePlugin) -> None:
    seen: list[Result] = []

    @tool
    async def explode() -> None:
        """Raise."""
        raise KeyError("k")

    async def look(call: Call, call_next: Next) -> Result:
        seen.append(await call_next())
        return seen[-1]

    async with kernel_with(make_plugin(explode), layer("look", look)) as kit:
        answer = await kit.call("explode")
    assert [type(result) for result in seen] == [Failure]
    assert (answer.status, answer.text) == ("failed", "explode failed: KeyError: 'k'")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("in_thread", [False, True], ids=["async", "thread"])
async def test_a_layer_that_hangs_ends_with_the_calls_time_limit(
    make_plugin: MakePlugin, clock: MockClock, after: bool, in_thread: bool
) -> None:
    ran: list[str] = []

    def work(path: str) -> None:
        """Work."""
        ran.append(path)

    async def work_on_loop(path: str) -> None:
        """Work."""
        ran.append(path)

    def keys(arguments: Any, scope: Any) -> list[tuple[str, ...]]:
        return [("file", "one")]

    write = tool(name="write", time_limit=30, writes=keys)(work if in_thread else work_on_loop)

    async def hang(call: Call, call_next: Next) -> Result:
        if call.arguments["path"] != "first":
            return await call_next()
        if after:
            await call_next()
        clock.jump(31)
        await trio.sleep_forever()
        raise AssertionError

    async with kernel_with(make_plugin(write), layer("hang", hang)) as kit:
        first, second = await kit.batch([("write", {"path": "first"}), ("write", {"path": "second"})])
        load = kit.kernel.load
    assert first.status == "failed"
    assert ("write finished" in first.text) == after
    assert "may still be running" not in first.text
    assert second.status == "completed", "no thread was given up, so the next one may go"
    assert ran == ["first", "second"] if after else ran == ["second"]
    assert (load["free"], load["stray_threads"]) == (8, 0)


async def test_a_layer_cannot_pass_arguments_on(make_plugin: MakePlugin, tools: Tools) -> None:
    async def pushy(call: Call, call_next: Any) -> Result:
        result: Result = await call_next({"path": "elsewhere"})
        return result

    async with kernel_with(make_plugin(*tools.tools), layer("pushy", pushy)) as kit:
        answer = await kit.call("write")
    assert (answer.status, tools.ran) == ("failed", [])


async def test_refused_calls_never_reach_the_onion(make_plugin: MakePlugin, tools: Tools) -> None:
    from toolkeel import Reason, Refuse

    seen: list[str] = []

    async def look(call: Call, call_next: Next) -> Result:
        seen.append(call.tool.name)
        return await call_next()

    async def authorize_tool_call(call: Call) -> Refuse:
        return Refuse(Reason("no"))

    async with kernel_with(make_plugin(*tools.tools, hooks=[authorize_tool_call]), layer("look", look)) as kit:
        await kit.batch([("read", {}), ("nothing", {}), ("write", {"more": 1})])
    assert seen == []


@pytest.mark.requirement("K10")
@pytest.mark.parametrize("sync", [False, True], ids=["async", "thread"])
async def test_a_tool_that_runs_out_of_time_inside_a_layer_is_not_told_as_not_run(
    make_plugin: MakePlugin, sync: bool
) -> None:
    let_go = threading.Event()

    @tool(time_limit=0.2)
    async def slow() -> None:
        """Take long."""
        await trio.sleep_forever()

    @tool(time_limit=0.2)
    def slow_thread() -> None:
        """Take long in a thread."""
        let_go.wait(20)

    async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        return await call_next()

    async with kernel_with(make_plugin(slow, slow_thread, hooks=[around_tool_call])) as kit:
        answer = await kit.call("slow_thread" if sync else "slow")
        let_go.set()
        assert "not run" not in answer.text
        assert ("may still be running" if sync else "was stopped") in answer.text
        [plugin] = kit.kernel.plugins.list()
        assert plugin.notes == ()
