"""Sync tools in worker threads: exits, threads that never return, context variables."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import Call, Result, Scope, ToolCall, ToolContext, tool
from toolkeel.testing import check_plugin, kernel_with

MakePlugin = Callable[..., ModuleType]


def path_key(arguments: Mapping[str, Any], scope: Scope) -> list[tuple[str, ...]]:
    return [("file", arguments["path"])]


class Stuck:
    """Tools whose threads stay until the test is over, and others that touch the same."""

    def __init__(self, clock: MockClock) -> None:
        self.release = threading.Event()
        self.ran: list[str] = []

        def hang() -> None:
            trio.from_thread.run_sync(clock.jump, 31)
            assert self.release.wait(60)

        @tool(time_limit=30, writes=path_key)
        def stuck_write(path: str) -> None:
            """Never come back from writing."""
            hang()

        @tool(time_limit=30, effect="read", reads=path_key)
        def stuck_read(path: str) -> None:
            """Never come back from reading."""
            hang()

        @tool(time_limit=30)
        def stuck_change() -> None:
            """Never come back from an undeclared change."""
            hang()

        @tool(writes=path_key)
        async def write(path: str, who: str = "") -> None:
            """Write."""
            self.ran.append(who or path)

        @tool(effect="read", reads=path_key)
        async def read(path: str) -> None:
            """Read."""
            self.ran.append(f"read {path}")

        self.tools = (stuck_write, stuck_read, stuck_change, write, read)


@pytest.fixture
def stuck(clock: MockClock) -> Iterator[Stuck]:
    stuck = Stuck(clock)
    yield stuck
    stuck.release.set()


@pytest.mark.requirement("K1")
async def test_a_sync_tool_runs_in_a_worker_thread_and_an_inline_one_on_the_loop(make_plugin: MakePlugin) -> None:
    where: dict[str, int] = {}

    @tool(effect="read")
    def in_thread() -> None:
        """Note the thread."""
        where["thread"] = threading.get_ident()

    @tool(effect="read", inline=True)
    def inline() -> None:
        """Note the thread."""
        where["inline"] = threading.get_ident()

    @tool(effect="read")
    async def on_loop() -> None:
        """Note the thread."""
        where["loop"] = threading.get_ident()

    async with kernel_with(make_plugin(in_thread, inline, on_loop)) as kit:
        await kit.batch([("in_thread", {}), ("inline", {}), ("on_loop", {})])
    assert where["loop"] == where["inline"] == threading.get_ident() != where["thread"]


async def test_sync_tools_of_a_batch_run_at_once(make_plugin: MakePlugin) -> None:
    barrier = threading.Barrier(8)

    @tool(effect="read")
    def meet() -> None:
        """Wait for seven others."""
        barrier.wait(30)

    async with kernel_with(make_plugin(meet)) as kit:
        answers = await kit.batch([("meet", {})] * 8)
    assert {answer.status for answer in answers} == {"completed"}


@pytest.mark.parametrize("how", ["thread", "inline", "loop"])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (SystemExit(), "SystemExit"),
        (GeneratorExit(), "GeneratorExit"),
        (MemoryError(), "MemoryError"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (ExceptionGroup("several", [ValueError("one"), KeyError("two")]), "ValueError: one"),
        (BaseExceptionGroup("several", [SystemExit(4)]), "SystemExit: 4"),
    ],
    ids=str,
)
async def test_whatever_a_tool_raises_is_the_failure_of_that_call(
    make_plugin: MakePlugin, how: str, error: BaseException, words: str
) -> None:
    def raises() -> None:
        """Raise."""
        raise error

    async def raises_on_loop() -> None:
        """Raise."""
        raise error

    bad = tool(name="bad", inline=how == "inline")(raises_on_loop if how == "loop" else raises)

    @tool(effect="read")
    def good() -> str:
        """Work."""
        return "fine"

    async with kernel_with(make_plugin(bad, good)) as kit:
        alone = await kit.call("bad")
        first, second = await kit.batch([("bad", {}), ("good", {})])
        assert kit.kernel.load["free"] == 8
    for answer in (alone, first):
        assert (answer.status, answer.text) == ("failed", f"bad failed: {words}")
    assert second.text == "fine"


async def test_a_thread_that_never_returns_is_given_up_at_the_time_limit_and_counted(
    make_plugin: MakePlugin, clock: MockClock, stuck: Stuck, observer: Any
) -> None:
    async with kernel_with(make_plugin(*stuck.tools), observer) as kit:
        answer = await kit.call("stuck_write", path="a")
        assert kit.kernel.load["stray_threads"] == 1
        assert kit.kernel.load["free"] == 8
        assert any("thread of tool 'stuck_write' was given up" in said for said in kit.kernel.diagnostics())
        assert (await kit.call("write", path="b")).status == "completed"
        stuck.release.set()
        with trio.fail_after(30):
            while kit.kernel.load["stray_threads"]:
                await trio.sleep(0.001)
        assert not kit.kernel.diagnostics()
    assert answer.status == "failed"
    assert answer.text == "stuck_write did not finish within 30 s; it may still be running"
    observer.check()


@pytest.mark.requirement("K9")
async def test_later_calls_that_overlap_with_a_write_that_was_given_up_are_refused(
    make_plugin: MakePlugin, clock: MockClock, stuck: Stuck
) -> None:
    batch = [
        ("stuck_write", {"path": "a"}),
        ("write", {"path": "a", "who": "second"}),
        ("read", {"path": "a"}),
        ("write", {"path": "a", "who": "third"}),
        ("write", {"path": "b"}),
    ]
    async with kernel_with(make_plugin(*stuck.tools)) as kit:
        given_up, *blocked, free = await kit.batch(batch)
        anew = await kit.call("write", path="a", who="next batch")
    assert given_up.status == "failed"
    for answer in blocked:
        assert answer.status == "refused"
        assert "stuck_write was given up and may still change what this call touches" in answer.text
    assert free.status == "completed"
    assert anew.status == "completed", "keys order one batch only"
    assert stuck.ran == ["b", "next batch"]


async def test_an_undeclared_write_that_was_given_up_blocks_its_group(
    make_plugin: MakePlugin, clock: MockClock, stuck: Stuck
) -> None:
    @tool(effect="read", group="elsewhere")
    async def outside() -> None:
        """Belong elsewhere."""

    batch: list[tuple[str, dict[str, Any]]] = [("stuck_change", {}), ("read", {"path": "a"}), ("outside", {})]
    async with kernel_with(make_plugin(outside, *stuck.tools)) as kit:
        answers = await kit.batch(batch)
    assert [answer.status for answer in answers] == ["failed", "refused", "completed"]


async def test_a_read_that_was_given_up_blocks_nobody(make_plugin: MakePlugin, clock: MockClock, stuck: Stuck) -> None:
    async with kernel_with(make_plugin(*stuck.tools)) as kit:
        answers = await kit.batch([("stuck_read", {"path": "a"}), ("write", {"path": "a"})])
    assert [answer.status for answer in answers] == ["failed", "completed"]


async def test_a_thread_that_never_returns_keeps_its_token(
    make_plugin: MakePlugin, clock: MockClock, stuck: Stuck
) -> None:
    """With one thread allowed and that one lost, a sync tool does not start, and does not claim that it runs."""
    started: list[str] = []

    @tool(time_limit=0.2, writes=path_key)
    def second(path: str) -> None:
        """Start."""
        started.append(path)

    settings = {"kernel": {"threads": 1}}
    async with kernel_with(make_plugin(second, *stuck.tools), settings=settings) as kit:
        await kit.call("stuck_read", path="a")
        one, two = await kit.batch([("second", {"path": "x"}), ("write", {"path": "x"})])
        assert (await kit.call("write", path="b")).status == "completed", "the loop's tools go on"
        assert kit.kernel.load["stray_threads"] == 1
        stuck.release.set()
        three = await kit.call("second", path="y")
    assert one.status == "failed"
    assert "still be running" not in one.text
    assert "no worker thread was free" in one.text, "the operator reads what to look at"
    assert two.status == "completed"
    assert three.status == "completed", "the token came back with the thread"
    assert started == ["y"]


async def test_cancelling_a_request_leaves_its_threads_behind_and_counts_them(
    make_plugin: MakePlugin, observer: Any
) -> None:
    started, release = threading.Event(), threading.Event()

    @tool(effect="read")
    def wait() -> None:
        """Wait."""
        started.set()
        assert release.wait(60)

    async with kernel_with(make_plugin(wait), observer) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kit.call, "wait")
            await trio.to_thread.run_sync(started.wait)
            nursery.cancel_scope.cancel()
        assert (kit.kernel.load["free"], kit.kernel.load["stray_threads"]) == (8, 1)
        release.set()
        with trio.fail_after(30):
            while kit.kernel.load["stray_threads"]:
                await trio.sleep(0.001)
    assert [record.status for record in observer.ends] == ["cancelled"]
    observer.check()


async def test_progress_may_be_told_from_a_thread(make_plugin: MakePlugin) -> None:
    told: list[tuple[str, float, float | None, str]] = []

    @tool(effect="read")
    def work(context: ToolContext) -> None:
        """Work in steps."""
        for step in range(3):
            context.progress(step, 3, f"step {step}")

    async with kernel_with(make_plugin(work)) as kit:
        await kit.offer.call([ToolCall("work", {}, "c1")], progress=lambda *said: told.append(said))
    assert told == [("c1", step, 3, f"step {step}") for step in range(3)]


# Context variables -------------------------------------------------------------------------------------------------

REQUEST: ContextVar[str] = ContextVar("request", default="nobody's")


async def test_tools_see_the_callers_context_variables(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    def in_thread() -> str:
        """Read the variable."""
        return REQUEST.get()

    @tool(effect="read")
    async def on_loop() -> str:
        """Read the variable."""
        return REQUEST.get()

    async with kernel_with(make_plugin(in_thread, on_loop)) as kit:
        answers: list[str] = []

        async def ask(name: str) -> None:
            REQUEST.set(name)
            answers.extend(answer.text for answer in await kit.batch([("in_thread", {}), ("on_loop", {})] * 5))
            answers.append((await kit.call("in_thread")).text)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "ann's")
            await wait_all_tasks_blocked()
        assert set(answers) == {"ann's"}
    assert REQUEST.get() == "nobody's"


async def test_a_hook_that_resets_its_variable_leaves_no_trace(make_plugin: MakePlugin) -> None:
    seen: list[str] = []

    @tool(effect="read")
    def look() -> None:
        """Read the variable."""
        seen.append(REQUEST.get())

    async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        token = REQUEST.set(f"{call.model_id}'s")
        try:
            return await call_next()
        finally:
            REQUEST.reset(token)

    async with kernel_with(make_plugin(look, hooks=[around_tool_call])) as kit:
        await kit.batch([("look", {})] * 20)
    assert sorted(seen) == sorted(f"call-{number}'s" for number in range(1, 21))
    assert REQUEST.get() == "nobody's"


async def test_a_variable_that_a_sync_tool_sets_stays_in_its_thread(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    def change() -> str:
        """Set the variable and do not reset it."""
        before = REQUEST.get()
        REQUEST.set("changed")
        return before

    async with kernel_with(make_plugin(change)) as kit:
        answers = await kit.batch([("change", {})] * 20)
    assert {answer.text for answer in answers} == {"nobody's"}


@pytest.mark.parametrize("hook", ["rewrite_tool_call", "authorize_tool_call", "around_tool_call"])
async def test_the_conformance_kit_finds_a_hook_that_leaves_a_context_variable_set(
    make_plugin: MakePlugin, hook: str
) -> None:
    async def rewrite_tool_call(call: Call) -> None:
        REQUEST.set("left behind")

    async def authorize_tool_call(call: Call) -> None:
        REQUEST.set("left behind")

    async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        REQUEST.set("left behind")
        return await call_next()

    async def tidy(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        token = REQUEST.set("for a while")
        try:
            return await call_next()
        finally:
            REQUEST.reset(token)

    untidy = [one for one in (rewrite_tool_call, authorize_tool_call, around_tool_call) if one.__name__ == hook]
    tidy.__name__ = "around_tool_call"
    faults = await check_plugin(make_plugin(name="untidy", hooks=untidy))
    assert [fault.where for fault in faults if "context variable" in fault.what] == [hook]
    assert REQUEST.get() == "nobody's"
    assert await check_plugin(make_plugin(name="tidy", hooks=[tidy])) == []
