"""The stages that judge a call before it runs: rewriting and authorising. They fail closed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from toolkeel import Allow, Answer, Ask, Call, Reason, Refuse, ToolCall, hookimpl, raw_tool, tool
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]
Decide = Callable[[Call], Awaitable[Any]]
HOOK_LIMIT = 5.0


class Tools:
    """Tools that keep what they were called with: in a thread, on the loop, and inline."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

        @tool
        async def loop(text: str = "") -> str:
            """Run on the loop."""
            self.ran.append(text)
            return text

        @tool(inline=True)
        def inline(text: str = "") -> str:
            """Run inline."""
            self.ran.append(text)
            return text

        @tool
        def thread(text: str = "") -> str:
            """Run in a thread."""
            self.ran.append(text)
            return text

        async def raw(arguments: Mapping[str, Any], context: object) -> Any:
            self.ran.append(arguments)
            return arguments

        self.raw = raw_tool("raw", "Take anything.", {"type": "object"}, raw)
        self.tools = (loop, inline, thread, self.raw)


@pytest.fixture
def tools() -> Tools:
    return Tools()


def decider(name: str, decide: Decide, priority: int = 100, hook: str = "authorize_tool_call") -> ModuleType:
    async def implementation(call: Call) -> Any:
        return await decide(call)

    module = ModuleType(name)
    module.PRIORITY = priority  # type: ignore[attr-defined]
    implementation.__name__ = hook
    setattr(module, hook, hookimpl(implementation))
    return module


def says(verdict: Any) -> Decide:
    async def decide(call: Call) -> Any:
        return verdict

    return decide


# Order and outcome -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K10")
async def test_deciders_run_by_priority_then_name_and_the_first_refusal_ends_the_stage(
    make_plugin: MakePlugin, tools: Tools
) -> None:
    asked: list[str] = []

    def noting(name: str, verdict: Any) -> Decide:
        async def decide(call: Call) -> Any:
            asked.append(name)
            return verdict

        return decide

    plugins = [
        decider("late", noting("late", None), 300),
        decider("b", noting("b", Refuse(Reason("b says no", "rules.b", "rules"))), 200),
        decider("a", noting("a", Allow("fine")), 200),
        decider("early", noting("early", None), 50),
    ]
    async with kernel_with(make_plugin(*tools.tools), *plugins) as kit:
        answer = await kit.call("loop")
    assert asked == ["early", "a", "b"]
    assert tools.ran == []
    assert answer.status == "refused"
    assert answer.text == "loop was not run: b says no [rules.b]"
    assert answer.record.refused_by == "rules (b)"
    assert (answer.record.setting, answer.record.reason) == ("rules.b", "b says no")


@pytest.mark.requirement("K10")
async def test_allow_outranks_nobody(make_plugin: MakePlugin, tools: Tools) -> None:
    first = decider("first", says(Allow("the owner says so")), 1)
    last = decider("last", says(Refuse(Reason("not today"))), 999)
    async with kernel_with(make_plugin(*tools.tools), first, last) as kit:
        answer = await kit.call("loop")
    assert (answer.status, tools.ran) == ("refused", [])
    assert "not today" in answer.text


async def test_a_call_that_every_decider_passes_runs(make_plugin: MakePlugin, tools: Tools) -> None:
    async with kernel_with(make_plugin(*tools.tools), decider("a", says(None)), decider("b", says(Allow()))) as kit:
        answers = await kit.batch([(name, {"text": name}) for name in ("loop", "inline", "thread")])
    assert [answer.text for answer in answers] == ["loop", "inline", "thread"]
    assert sorted(tools.ran) == ["inline", "loop", "thread"]


async def test_a_decider_sees_who_asks_for_what_and_where(make_plugin: MakePlugin, tools: Tools) -> None:
    seen: list[Call] = []

    async def look(call: Call) -> None:
        seen.append(call)

    async with kernel_with(make_plugin(*tools.tools), decider("look", look), session="s9", message="please") as kit:
        await kit.offer.call([ToolCall("loop", '{"text": "hello"}', "model-7")])
    [call] = seen
    assert (call.tool.name, call.plugin, call.model_id, dict(call.arguments)) == (
        "loop",
        "tools",
        "model-7",
        {"text": "hello"},
    )
    assert (call.principal.name, call.scope.session, call.request.message) == ("tester", "s9", "please")


@pytest.mark.parametrize("hook", ["rewrite_tool_call", "authorize_tool_call"])
async def test_a_call_that_comes_to_no_judgement_is_not_judged(
    make_plugin: MakePlugin, tools: Tools, hook: str
) -> None:
    seen: list[str] = []

    async def look(call: Call) -> None:
        seen.append(call.tool.name)

    async with kernel_with(make_plugin(*tools.tools), decider("look", look, hook=hook)) as kit:
        unknown, wrong = await kit.batch([("nothing", {}), ("loop", {"text": [[]], "more": 1})])
    assert (unknown.status, wrong.status) == ("refused", "failed")
    assert seen == []


# Deciders fail closed ----------------------------------------------------------------------------------------------


class Broken(Exception):
    """An exception that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Bare(BaseException):
    """Not even an Exception."""


async def in_nursery(work: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await trio.sleep_forever()


def faults(clock: MockClock) -> dict[str, Decide]:
    """Ways in which a decider fails, each with the words that the refusal must hold."""

    async def raises(call: Call) -> None:
        raise ValueError("out of cheese")

    async def exits(call: Call) -> None:
        sys.exit(7)

    async def generator_exit(call: Call) -> None:
        raise GeneratorExit

    async def base(call: Call) -> None:
        raise Bare

    async def unprintable(call: Call) -> None:
        raise Broken

    async def group(call: Call) -> None:
        async def fails() -> None:
            raise ValueError("out of cheese")

        await in_nursery(fails)

    async def hangs(call: Call) -> None:
        clock.jump(HOOK_LIMIT + 1)
        await trio.sleep_forever()

    async def hangs_and_allows(call: Call) -> Allow:
        clock.jump(HOOK_LIMIT + 1)
        with contextlib.suppress(BaseException):
            await trio.sleep_forever()
        return Allow()

    async def hangs_and_raises(call: Call) -> None:
        clock.jump(HOOK_LIMIT + 1)
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("in the clean-up")

    async def hangs_and_fails_in_a_group(call: Call) -> None:
        async def fails_when_cancelled() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("in the clean-up")

        clock.jump(HOOK_LIMIT + 1)
        await in_nursery(fails_when_cancelled)

    async def blocks_past_its_limit(call: Call) -> Allow:
        clock.jump(HOOK_LIMIT + 1)
        for _ in range(5):
            with contextlib.suppress(trio.Cancelled):
                await trio.lowlevel.checkpoint()
        return Allow()

    return {fault.__name__: fault for fault in locals().values() if callable(fault) and fault is not clock} | {
        "text": says("yes"),
        "true": says(True),
        "false": says(False),
        "dict": says({"allow": True}),
        "class": says(Allow),
        "reason": says(Reason("no")),
        "refuse with a number": says(Refuse(5)),  # type: ignore[arg-type]
        "ask with a number": says(Ask("may I?", 5)),  # type: ignore[arg-type]
        "coroutine function": says(says(None)),
    }


FAULTS = [
    (hook, fault)
    for hook in ("rewrite_tool_call", "authorize_tool_call")
    for fault in sorted(faults(MockClock()))
    if (hook, fault) != ("rewrite_tool_call", "dict")  # a mapping is what that hook takes
]


@pytest.mark.requirement("K10")
@pytest.mark.parametrize(("hook", "fault"), FAULTS)
async def test_a_fault_in_a_decider_refuses_the_call_and_names_the_plugin(
    make_plugin: MakePlugin, tools: Tools, clock: MockClock, hook: str, fault: str
) -> None:
    async def broken(call: Call) -> Any:
        return await faults(clock)[fault](call) if call.arguments["text"] == "bad" else None

    names = ("inline", "loop", "thread")
    async with kernel_with(make_plugin(*tools.tools), decider("sentry", broken, hook=hook)) as kit:
        answers = [await kit.call("inline", text="bad")]
        mixed = [(name, {"text": text}) for text in ("bad", "good") for name in names]
        *bad, one, two, three = await kit.batch(mixed)
        [sentry] = [plugin for plugin in kit.kernel.plugins.list() if plugin.name == "sentry"]
        load = kit.kernel.load
    for answer in [*answers, *bad]:
        assert answer.status == "refused", answer
        assert "'sentry'" in answer.text, "the model and the operator read who refused"
        assert hook in answer.text or "no verdict" in answer.text
        assert "sentry" in answer.record.refused_by
    assert [answer.status for answer in (one, two, three)] == ["completed"] * 3, "the others of the batch are not hurt"
    assert tools.ran == ["good"] * 3
    assert sentry.state == "active"
    assert any(note.startswith(hook) for note in sentry.notes), "the operator reads it in the list of plugins"
    assert load["free"] == 8


@pytest.mark.requirement("K10")
@pytest.mark.parametrize("name", ["inline", "loop", "thread"])
async def test_a_decider_that_swallows_the_end_of_the_request_lets_nothing_run(
    make_plugin: MakePlugin, tools: Tools, name: str
) -> None:
    deciding = trio.Event()

    async def swallow(call: Call) -> Allow:
        deciding.set()
        with contextlib.suppress(BaseException):
            await trio.sleep_forever()
        return Allow()

    async with kernel_with(make_plugin(*tools.tools), decider("sentry", swallow)) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kit.batch, [(name, {}), (name, {})])
            await deciding.wait()
            nursery.cancel_scope.cancel()
        assert kit.kernel.load["free"] == 8
    assert tools.ran == []


async def test_deciding_is_no_running_time(make_plugin: MakePlugin, clock: MockClock) -> None:
    @tool(time_limit=2)
    async def quick() -> str:
        """Take one second."""
        await trio.sleep(1)
        return "done"

    async def ponder(call: Call) -> None:
        await trio.sleep(4)

    deciders = [decider(name, ponder) for name in ("a", "b", "c")]
    async with kernel_with(make_plugin(quick), *deciders) as kit:
        clock.autojump_threshold = 0
        answer = await kit.call("quick")
        clock.autojump_threshold = float("inf")
    assert (answer.status, answer.text) == ("completed", "done"), "each decider has its own limit, and the tool its own"


# Rewriting ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K10")
async def test_rewrites_form_a_chain_that_ends_before_deciders_and_keys(make_plugin: MakePlugin) -> None:
    ran: list[str] = []
    judged: list[Call] = []

    @tool(writes=lambda arguments, scope: [("file", arguments["path"])])
    async def write(path: str) -> None:
        """Write."""
        ran.append(path)

    def adding(text: str) -> Decide:
        async def rewrite(call: Call) -> Mapping[str, Any]:
            return {"path": call.arguments["path"] + text}

        return rewrite

    async def judge(call: Call) -> None:
        judged.append(call)

    async with kernel_with(
        make_plugin(write),
        decider("z", adding("/z"), 10, "rewrite_tool_call"),
        decider("a", adding("/a"), 20, "rewrite_tool_call"),
        decider("judge", judge, 0),
    ) as kit:
        answer = await kit.call("write", path="root")
    assert ran == ["root/z/a"]
    assert [dict(call.arguments) for call in judged] == [{"path": "root/z/a"}]
    assert judged[0].writes == answer.record.writes == (("file", "root/z/a"),)
    assert dict(answer.record.arguments) == {"path": "root/z/a"}  # type: ignore[call-overload]


@pytest.mark.requirement("K10")
@pytest.mark.parametrize("rewritten", [{"text": [1, 2]}, {"text": "a", "extra": 1}, {5: "a"}], ids=str)
async def test_rewritten_arguments_that_the_tool_does_not_take_are_not_run(
    make_plugin: MakePlugin, tools: Tools, observer: Any, rewritten: Mapping[Any, Any]
) -> None:
    later: list[Call] = []

    async def follow(call: Call) -> Mapping[Any, Any]:
        later.append(call)
        return rewritten

    plugins = [
        decider("smith", says(rewritten), hook="rewrite_tool_call"),
        decider("wesson", follow, hook="rewrite_tool_call"),
    ]
    async with kernel_with(make_plugin(*tools.tools), *plugins, observer) as kit:
        answer = await kit.call("inline", text="mine")
    assert answer.status in ("refused", "failed")
    assert tools.ran == []
    assert later == [], "the stage ends with the first failure"
    observer.check()


async def test_a_rewrite_is_repaired_like_a_models_arguments(make_plugin: MakePlugin) -> None:
    ran: list[int] = []

    @tool
    async def count(number: int) -> None:
        """Count."""
        ran.append(number)

    async with kernel_with(
        make_plugin(count), decider("smith", says({"number": "5"}), hook="rewrite_tool_call")
    ) as kit:
        answer = await kit.call("count", number=1)
    assert ran == [5]
    assert [repair.path for repair in answer.record.repairs] == ["number"]


# What was authorised is what runs ----------------------------------------------------------------------------------


@pytest.mark.requirement("K10")
@pytest.mark.parametrize("hook", ["rewrite_tool_call", "authorize_tool_call", "around_tool_call", "keys"])
@pytest.mark.parametrize("name", ["typed", "raw"])
async def test_nobody_but_a_rewrite_can_change_the_arguments(make_plugin: MakePlugin, name: str, hook: str) -> None:
    ran: list[Any] = []

    def meddle(arguments: Any) -> None:
        for change in (
            lambda: arguments.update(items=["evil"]),
            lambda: arguments.__setitem__("items", ["evil"]),
            lambda: arguments["items"].append("evil"),
            lambda: arguments["deep"]["list"].append("evil"),
            lambda: arguments["deep"].update(more="evil"),
            lambda: arguments["deep"]["list"][0].clear(),
        ):
            with contextlib.suppress(AttributeError, TypeError):
                change()

    def keys(arguments: Mapping[str, Any], scope: object) -> list[tuple[str, ...]]:
        if hook == "keys":
            meddle(arguments)
        return [("file", "a")]

    @tool(writes=keys)
    async def typed(items: list[str], deep: dict[str, Any]) -> None:
        """Keep what comes."""
        ran.append({"items": items, "deep": deep})

    async def take(arguments: Mapping[str, Any], context: object) -> None:
        ran.append(dict(arguments))

    raw = raw_tool("raw", "Keep what comes.", {"type": "object"}, take, writes=keys)

    async def rewrite_tool_call(call: Call) -> None:
        meddle(call.arguments)

    async def authorize_tool_call(call: Call) -> None:
        meddle(call.arguments)

    async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Any]]) -> Any:
        meddle(call.arguments)
        return await call_next()

    meddlers = [one for one in (rewrite_tool_call, authorize_tool_call, around_tool_call) if one.__name__ == hook]
    sent = {"items": ["mine"], "deep": {"list": [{"a": 1}]}}
    async with kernel_with(make_plugin(typed, raw), make_plugin(name="meddler", hooks=meddlers)) as kit:
        [answer] = await kit.offer.call([ToolCall(name, sent, "1")])
    assert answer.status == "completed", answer.text
    assert ran == [{"items": ["mine"], "deep": {"list": [{"a": 1}]}}]
    assert sent == {"items": ["mine"], "deep": {"list": [{"a": 1}]}}, "the caller's own value is not touched either"


async def test_a_tool_may_do_to_its_arguments_what_it_likes(make_plugin: MakePlugin) -> None:
    sent = {"items": ["b", "a"], "deep": {"k": [2, 1]}}

    async def sort(arguments: dict[str, Any], context: object) -> Any:
        arguments["items"].sort()
        arguments["deep"]["k"].append(3)
        arguments["new"] = True
        return arguments

    raw = raw_tool("sort", "Sort in place.", {"type": "object"}, sort)
    async with kernel_with(make_plugin(raw)) as kit:
        [answer] = await kit.offer.call([ToolCall("sort", sent, "1")])
    assert answer.status == "completed", answer.text
    assert sent == {"items": ["b", "a"], "deep": {"k": [2, 1]}}
    assert dict(answer.record.arguments) == {"items": ("b", "a"), "deep": {"k": (2, 1)}}  # type: ignore[call-overload]


async def test_an_answer_names_the_stage_of_every_refusal(make_plugin: MakePlugin, tools: Tools) -> None:
    async with kernel_with(make_plugin(*tools.tools), decider("sentry", says(Refuse(Reason("no"))))) as kit:
        by_decider: Answer = await kit.call("loop")
        unknown = await kit.call("lop")
    assert by_decider.record.refused_by == "policy (sentry)"
    assert unknown.record.refused_by == "offer"
    assert "loop" in unknown.text


@pytest.mark.requirement("K10")
async def test_a_refusal_may_give_its_reason_in_plain_words(make_plugin: MakePlugin) -> None:
    @tool(effect="read", inline=True)
    def look() -> str:
        """Look."""
        return "seen"

    async def authorize_tool_call() -> Refuse:
        return Refuse("not at night")

    async with kernel_with(make_plugin(look, hooks=[authorize_tool_call])) as kit:
        answer = await kit.call("look")
    assert answer.status == "refused"
    assert "not at night" in answer.text


@pytest.mark.requirement("K10")
async def test_without_a_required_plugin_nothing_is_offered_and_nothing_runs(make_plugin: MakePlugin) -> None:
    @tool(effect="read", inline=True)
    def look() -> str:
        """Look."""
        return "seen"

    async def authorize_tool_call() -> None: ...

    plugins = make_plugin(look, name="eyes"), make_plugin(hooks=[authorize_tool_call], name="guard")
    async with kernel_with(*plugins, settings={"kernel": {"require": ["guard"]}}) as kit:
        assert (await kit.call("look")).text == "seen"
        await kit.kernel.plugins.disable("guard")
        answer = await kit.call("look")
        assert (answer.status, answer.record.setting) == ("refused", "kernel.require")
        assert "guard" in answer.text
        assert (await kit.refresh()).tools == ()
        assert "guard" in kit.offer.withheld["look"].text
    async with kernel_with(plugins[0], settings={"kernel": {"require": ["guard"]}}) as kit:
        assert kit.offer.tools == ()
        assert any("require" in line and "'guard'" in line for line in kit.kernel.diagnostics())
