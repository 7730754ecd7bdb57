"""The life of a call: its stages in their order, what ends it early, and what changes under it while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import (
    Allow,
    Answered,
    Ask,
    Call,
    Data,
    Principal,
    Reason,
    Refuse,
    Request,
    Result,
    Spilled,
    Tool,
    ToolCall,
    ToolContext,
    ToolError,
    hookimpl,
    tool,
)
from toolkeel.errors import Closed
from toolkeel.events import ToolCallEnded, ToolCallStarting
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]
Next = Callable[[], Awaitable[Result]]


@tool(effect="read")
async def echo(text: str = "") -> str:
    """Give the text back."""
    return text


# Stages ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K10")
@pytest.mark.parametrize("size", [1, 3])
async def test_a_call_passes_the_stages_in_their_order(make_plugin: MakePlugin, size: int) -> None:
    stages: list[str] = []
    asked: set[str] = set()

    async def rewrite_tool_call(call: Call) -> None:
        stages.append("rewrite")

    async def authorize_tool_call(call: Call) -> Ask | None:
        stages.append("authorize")
        if call.id in asked:
            return None
        asked.add(call.id)
        return Ask("sure?", Reason("careful"))

    async def resolve_ask(call: Call) -> Answered:
        stages.append("ask")
        return Answered(allowed=True, by="ann")

    async def around_tool_call(call: Call, call_next: Next) -> Result:
        stages.append("around in")
        result = await call_next()
        stages.append("around out")
        return result

    async def on_tool_call_start(event: ToolCallStarting) -> None:
        stages.append("start told")

    async def on_tool_call_end(event: ToolCallEnded) -> None:
        stages.append("end told")

    async def spill_result(call: Call, content: bytes) -> Spilled:
        stages.append("spill")
        return Spilled("stored", "ref", len(content))

    def keys(arguments: Any, scope: Any) -> list[tuple[str, ...]]:
        stages.append("keys")
        return []

    @tool(writes=keys, reads=lambda arguments, scope: [("file", "a")])
    async def large() -> str:
        """Give a lot."""
        stages.append("run")
        return "x" * 10_000

    hooks = [
        spill_result,
        on_tool_call_end,
        on_tool_call_start,
        around_tool_call,
        resolve_ask,
        authorize_tool_call,
        rewrite_tool_call,
    ]
    async with kernel_with(make_plugin(large, hooks=hooks)) as kit:
        answer, *_ = await kit.batch([("large", {})] * size)
    assert answer.ref == "ref"
    observed = [stage for stage in stages if "told" in stage]
    assert observed == ["start told", "end told"] * size or observed == ["start told"] * size + ["end told"] * size
    first = list(dict.fromkeys(stage for stage in stages if "told" not in stage))
    expected = ["rewrite", "keys", "authorize", "ask", "around in", "run", "around out", "spill"]
    assert first == expected
    assert stages.count("authorize") == 2 * size, "the deciders run again after the ask"


@pytest.mark.requirement("K11")
async def test_a_call_of_what_is_not_offered_names_the_nearest_tools(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    async def file_read() -> None:
        """Read."""

    @tool(effect="read")
    async def file_list() -> None:
        """List."""

    async with kernel_with(make_plugin(file_read, file_list, echo)) as kit:
        misspelt, other_word, far = await kit.batch([("file_raed", {}), ("read_the_file", {}), ("zzz", {})])
    assert misspelt.text.startswith("file_raed was not run: there is no tool 'file_raed' here. Nearest: file_read")
    assert "file_list" in other_word.text
    assert "Offered: echo, file_list, file_read." in far.text
    assert {answer.status for answer in (misspelt, other_word, far)} == {"refused"}


@pytest.mark.requirement("K11")
async def test_search_tools_is_named_where_it_is_offered(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    async def search_tools(query: str = "") -> None:
        """Find tools."""

    async with kernel_with(make_plugin(search_tools, echo)) as kit:
        answer = await kit.call("weather")
    assert "search_tools finds others" in answer.text


@pytest.mark.requirement("K11")
async def test_a_withheld_tool_is_refused_in_the_words_of_who_withheld_it(make_plugin: MakePlugin) -> None:
    def withhold_tools(tools: Any, request: Request) -> dict[str, Reason]:
        return {"echo": Reason("echo needs an administrator.", "roles.echo", "role")}

    async with kernel_with(make_plugin(echo, hooks=[withhold_tools])) as kit:
        answer = await kit.call("echo")
    assert answer.text == "echo was not run: echo needs an administrator. [roles.echo]"
    assert (answer.record.refused_by, answer.record.setting) == ("role", "roles.echo")


@pytest.mark.requirement("K11")
async def test_a_run_with_a_cap_cannot_call_outside_of_it(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    async def secret(context: ToolContext) -> Any:
        """Call echo from inside."""
        return (await context.call("echo", {})).message  # type: ignore[union-attr]

    async with kernel_with(make_plugin(echo, secret)) as kit:
        request = kit.session.request(principal=Principal("ann"), tool_cap=["secret"])
        direct, nested = await kit.session.call([ToolCall("echo"), ToolCall("secret")], request)
    assert (direct.status, direct.record.refused_by) == ("refused", "cap")
    assert "echo is outside the tools of this run" in nested.text


# A batch -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K8")
async def test_every_kind_of_call_in_one_batch_gets_its_own_answer(make_plugin: MakePlugin, observer: Any) -> None:
    @tool
    async def broken() -> None:
        """Fail."""
        raise ToolError("the disk is full", where="/srv", remedy="Delete something")

    @tool(effect="read")
    async def context_free(context: ToolContext) -> str:
        """Say who asks."""
        return f"{context.principal.name} in {context.scope.session}: {context.request.message}"

    calls = [
        ToolCall("echo", '{"text": "one"}', "1"),
        ToolCall("echo", {"text": "two"}, "1"),
        ToolCall("broken", None, "3"),
        ToolCall("nothing", "{}", "4"),
        ToolCall("echo", '{"text": ', "5"),
        ToolCall("echo", {"txt": "x"}, ""),
        ToolCall("context_free", b"{}", "7"),
        ToolCall("", "", ""),
        ToolCall("echo" * 1_000, "", ""),
    ]
    async with kernel_with(make_plugin(echo, broken, context_free), observer, message="hello") as kit:
        answers = await kit.offer.call(calls)
    assert [answer.status for answer in answers] == [
        *("completed", "completed", "failed", "refused", "failed", "failed", "completed", "refused", "refused")
    ]
    assert [answer.id for answer in answers] == ["1", "1", "3", "4", "5", "", "7", "", ""]
    assert answers[2].text == "/srv: the disk is full. Delete something"
    assert "did you mean 'text'" in answers[5].text
    assert answers[6].text == "tester in test: hello"
    assert all(len(answer.text) < 2_000 for answer in answers)
    assert [answer.failed for answer in answers] == [answer.status != "completed" for answer in answers]
    observer.check()


async def test_a_batch_may_hold_nothing_or_thousands(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(echo)) as kit:
        assert await kit.batch([]) == []
        answers = await kit.batch([("echo", {"text": str(number)}) for number in range(3_000)])
    assert [answer.text for answer in answers] == [str(number) for number in range(3_000)]


async def test_the_time_limit_of_one_call_ends_no_other(make_plugin: MakePlugin, clock: MockClock) -> None:
    """Semantics 4: each call has its own limit; a puller goes on with the next."""

    @tool(effect="read", time_limit=10)
    async def sleep(seconds: float) -> str:
        """Sleep."""
        await trio.sleep(seconds)
        return "slept"

    seconds = [5, 50, 9, 11, 1, 500, 9.5, 3, 20, 2, 9]
    async with kernel_with(make_plugin(sleep), settings={"kernel": {"workers": 2}}) as kit:
        clock.autojump_threshold = 0
        answers = await kit.batch([("sleep", {"seconds": one}) for one in seconds])
        clock.autojump_threshold = float("inf")
        assert kit.kernel.load["free"] == 2
    assert [answer.status for answer in answers] == ["completed" if one < 10 else "failed" for one in seconds]
    assert answers[1].text == "sleep did not finish within 10 s and was stopped"


async def test_a_tool_that_finishes_in_spite_of_its_limit_is_completed(
    make_plugin: MakePlugin, clock: MockClock
) -> None:
    @tool(time_limit=10)
    async def stubborn() -> str:
        """Finish the write that was begun."""
        try:
            await trio.sleep(20)
        except trio.Cancelled:
            return "it was written all the same"
        raise AssertionError

    async with kernel_with(make_plugin(stubborn, echo)) as kit:
        clock.autojump_threshold = 0
        alone = await kit.call("stubborn")
        answers = await kit.batch([("stubborn", {}), ("echo", {"text": "next"}), ("stubborn", {})])
        clock.autojump_threshold = float("inf")
    assert alone.text == "it was written all the same"
    assert [answer.text for answer in answers] == ["it was written all the same", "next", "it was written all the same"]


async def test_the_kernels_limit_counts_where_a_tool_sets_none(make_plugin: MakePlugin, clock: MockClock) -> None:
    @tool(effect="read")
    async def forever() -> None:
        """Never end."""
        await trio.sleep_forever()

    async with kernel_with(make_plugin(forever), settings={"kernel": {"time_limit": 3}}) as kit:
        clock.autojump_threshold = 0
        answer = await kit.call("forever")
        clock.autojump_threshold = float("inf")
    assert answer.text == "forever did not finish within 3 s and was stopped"


async def test_a_tool_that_fails_while_it_is_stopped_is_a_time_out_and_hurts_nobody(
    make_plugin: MakePlugin, clock: MockClock
) -> None:
    async def clean_up_badly() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("in the clean-up")

    @tool(effect="read", time_limit=10)
    async def untidy(alone: bool) -> None:
        """Fail in the clean-up, alone or in a task."""
        if alone:
            await clean_up_badly()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clean_up_badly)
            await trio.sleep_forever()

    async with kernel_with(make_plugin(untidy, echo)) as kit:
        clock.autojump_threshold = 0
        batch = [("untidy", {"alone": True}), ("echo", {"text": "fine"}), ("untidy", {"alone": False})]
        one, fine, two = await kit.batch(batch)
        alone = await kit.call("untidy", alone=False)
        clock.autojump_threshold = float("inf")
        assert kit.kernel.load["free"] == 8
    assert fine.text == "fine"
    for answer in (one, two, alone):
        assert answer.status == "failed"
        assert "within 10 s" in answer.text or "in the clean-up" in answer.text


# The plugin set changes while calls run ----------------------------------------------------------------------------


def one_tool(name: str, function: Callable[[], Awaitable[str]]) -> Tool:
    @tool(name=name, effect="read")
    async def run() -> str:
        """Run."""
        return await function()

    return run


@pytest.mark.requirement("K7")
async def test_a_plugin_that_is_disabled_stops_after_its_last_call(make_plugin: MakePlugin) -> None:
    log: list[str] = []
    gate = trio.Event()

    async def work() -> str:
        await gate.wait()
        log.append("the call ended")
        return "done"

    async def plugin_stop() -> None:
        log.append("the plugin stopped")

    async def nothing() -> str:
        return ""

    plugin = make_plugin(one_tool("work", work), hooks=[plugin_stop])
    other = make_plugin(one_tool("other", nothing), name="other")
    answers: list[Any] = []

    async def call() -> None:
        answers.append(await kit.call("work"))

    async with kernel_with(plugin, other) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        await kit.kernel.plugins.reload("other")  # the call now holds an older state of the plugin set
        nursery.start_soon(kit.kernel.plugins.disable, "tools")
        await wait_all_tasks_blocked()
        assert log == []
        refused = await kit.call("work")
        gate.set()
    assert log == ["the call ended", "the plugin stopped"]
    assert answers[0].text == "done"
    assert refused.status == "refused"


@pytest.mark.requirement("K7")
async def test_a_plugin_stops_after_the_last_call_that_its_hooks_wrap(make_plugin: MakePlugin) -> None:
    log: list[str] = []
    gate = trio.Event()

    async def work() -> str:
        await gate.wait()
        return "done"

    async def around_tool_call(call: Call, call_next: Next) -> Result:
        result = await call_next()
        log.append("the call ended")
        return result

    async def plugin_stop() -> None:
        log.append("the plugin stopped")

    wrapper = make_plugin(name="wrapper", hooks=[around_tool_call, plugin_stop])
    other = make_plugin(one_tool("other", work), name="other")
    async with (
        kernel_with(make_plugin(one_tool("work", work)), wrapper, other) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.call, "work")
        await wait_all_tasks_blocked()
        for _ in range(3):  # the call holds an ever older state of the plugin set
            await kit.kernel.plugins.reload("other")
        nursery.start_soon(kit.kernel.plugins.disable, "wrapper")
        await wait_all_tasks_blocked()
        assert log == []
        gate.set()
    assert log == ["the call ended", "the plugin stopped"]


@pytest.mark.requirement("K7")
async def test_a_plugin_does_not_wait_for_ever_for_its_last_call(make_plugin: MakePlugin, clock: MockClock) -> None:
    log: list[str] = []

    async def plugin_stop() -> None:
        log.append("stopped")

    async with (
        kernel_with(make_plugin(one_tool("work", trio.sleep_forever), hooks=[plugin_stop])) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.call, "work")
        await wait_all_tasks_blocked()
        nursery.start_soon(kit.kernel.plugins.disable, "tools")
        await wait_all_tasks_blocked()
        clock.jump(kit.kernel.settings.stop_time_limit + 1)
        await wait_all_tasks_blocked()
        assert log == ["stopped"]
        nursery.cancel_scope.cancel()


async def test_a_call_keeps_the_hooks_that_it_was_authorised_with(make_plugin: MakePlugin) -> None:
    """Semantics 10: a call takes its snapshot when it is authorised."""
    gate = trio.Event()
    seen: list[str] = []

    async def work() -> str:
        return "done"

    async def authorize_tool_call(call: Call) -> Allow:
        await gate.wait()
        return Allow()

    async def around_tool_call(call: Call, call_next: Next) -> Result:
        seen.append("wrapped")
        return await call_next()

    wrapper = make_plugin(name="wrapper", hooks=[around_tool_call])
    slow = make_plugin(name="slow", hooks=[authorize_tool_call])
    async with kernel_with(make_plugin(one_tool("work", work)), slow, wrapper) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(kit.call, "work")
        await wait_all_tasks_blocked()
        nursery.start_soon(kit.kernel.plugins.disable, "wrapper")
        await wait_all_tasks_blocked()
        gate.set()
        await wait_all_tasks_blocked()
        assert seen == ["wrapped"]
        await kit.call("work")
    assert seen == ["wrapped"], "the next call is without it"


async def test_a_queued_call_whose_plugin_is_gone_is_refused(make_plugin: MakePlugin) -> None:
    gate = trio.Event()

    async def hold() -> str:
        await gate.wait()
        return "held"

    async def work() -> str:
        return "done"

    answers: list[Any] = []

    async def call() -> None:
        answers.append(await kit.call("work"))

    holder = make_plugin(one_tool("hold", hold), name="holder")
    async with (
        kernel_with(make_plugin(one_tool("work", work)), holder, settings={"kernel": {"workers": 1}}) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.call, "hold")
        await wait_all_tasks_blocked()
        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        await kit.kernel.plugins.disable("tools")
        gate.set()
    assert answers[0].status == "refused"
    assert "'tools' was stopped" in answers[0].text


@pytest.mark.requirement("K7")
async def test_calls_go_on_while_plugins_come_and_go(make_plugin: MakePlugin, observer: Any) -> None:
    async def work() -> str:
        await trio.lowlevel.checkpoint()
        return "done"

    plugins = [make_plugin(one_tool(f"work_{number}", work), name=f"p{number}") for number in range(3)]
    ended = 0

    async def call_on_and_on() -> None:
        nonlocal ended
        for _ in range(60):
            async with kit.kernel.session(session="s") as session:
                calls = [ToolCall(f"work_{number}", {}, "") for number in range(3)]
                answers = await session.call(calls, session.request(principal=Principal("ann")))
                assert {answer.status for answer in answers} <= {"completed", "refused"}
                assert answers[0].text == "done"
                ended += len(answers)

    async def change() -> None:
        for _ in range(5):
            for name in ("p1", "p2"):
                await kit.kernel.plugins.disable(name)
                await kit.kernel.plugins.enable(name)
                await kit.kernel.plugins.reload(name)

    async with kernel_with(*plugins, observer) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            for _ in range(4):
                nursery.start_soon(call_on_and_on)
        assert kit.kernel.load["free"] == 8
    assert ended == 4 * 60 * 3
    observer.check()


# Sessions share ----------------------------------------------------------------------------------------------------


async def test_sessions_with_the_same_tools_share_one_table(make_plugin: MakePlugin) -> None:
    """Semantics 13."""
    own: dict[str, Tool] = {}

    class Own:
        NAME = "own"

        @hookimpl
        def register_tools(self, scope: Any) -> Tool | None:
            return own.setdefault(scope.session, one_tool("mine", trio.sleep_forever)) if scope.session == "c" else None

    async with (
        kernel_with(make_plugin(echo), Own) as kit,
        kit.kernel.session(session="a") as a,
        kit.kernel.session(session="b") as b,
        kit.kernel.session(session="c") as c,
    ):
        assert await a.table() is await b.table()
        assert await a.table() is not await c.table()
        assert sorted((await c.table()).entries) == ["echo", "mine"]


@pytest.mark.requirement("K8")
async def test_a_kernel_that_closes_lets_its_calls_end_and_starts_no_more(
    make_plugin: MakePlugin, observer: Any
) -> None:
    gate = trio.Event()
    answers: list[Any] = []

    async def work() -> str:
        await gate.wait()
        return "done"

    async def call() -> None:
        answers.append(await kit.call("work"))

    async def late() -> None:
        await wait_all_tasks_blocked(0.01)
        with pytest.raises(Closed):
            await kit.call("echo")
        gate.set()

    async with (
        trio.open_nursery() as nursery,
        kernel_with(make_plugin(one_tool("work", work), echo), observer) as kit,
    ):
        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        nursery.start_soon(late)
    assert answers[0].text == "done"
    observer.check()


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_progress_listener_that_raises_hurts_no_call(make_plugin: MakePlugin, in_thread: bool) -> None:
    def work(context: ToolContext) -> str:
        """Work in steps."""
        context.progress(1, 2)
        return "done"

    async def work_on_loop(context: ToolContext) -> str:
        """Work in steps."""
        return work(context)

    def listen(*said: Any) -> None:
        raise ValueError("the terminal is gone")

    listened = tool(name="work")(work if in_thread else work_on_loop)
    async with kernel_with(make_plugin(listened)) as kit:
        [answer] = await kit.offer.call([ToolCall("work")], progress=listen)
    assert (answer.status, answer.text) == ("completed", "done")


async def test_a_result_may_be_any_typed_value(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    async def rows() -> Data:
        """Give rows."""
        return Data([{"a": 1}])

    async with kernel_with(make_plugin(rows)) as kit:
        answer = await kit.call("rows")
    assert answer.result == Data([{"a": 1}])
    assert answer.text == '[{"a":1}]'


async def test_a_refusal_shows_no_more_of_a_name_than_is_useful(make_plugin: MakePlugin) -> None:
    async def authorize_tool_call(call: Call) -> Refuse:
        return Refuse(Reason("no"))

    async with kernel_with(make_plugin(echo, hooks=[authorize_tool_call])) as kit:
        answer = await kit.call("x" * 100_000)
    assert len(answer.text) < 1_000
