"""A plugin that breaks in every way there is: the others work, and the list of plugins says why it does not."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import (
    Answer,
    Answered,
    Ask,
    Call,
    Config,
    Kernel,
    Pin,
    PluginInfo,
    Principal,
    PromptSection,
    Ranking,
    Reason,
    Request,
    Session,
    Skill,
    Spilled,
    Tool,
    ToolCall,
    events,
    hookimpl,
    hookspecs,
    tool,
)
from toolkeel.hookspecs import Contract
from toolkeel.testing import Kit, kernel_with
from toolkeel.watch import Watchdog

HOOKS: dict[str, Contract] = {
    name: function.toolkeel_contract
    for name, function in vars(hookspecs).items()
    if hasattr(function, "toolkeel_contract")
}
LIMITS = ("hook_time_limit", "ask_time_limit", "time_limit", "register_time_limit", "stop_time_limit")
SETTINGS = {"kernel": {"optional": ["extra"], **dict.fromkeys(LIMITS, 5)}}
BEYOND = 6.0
"""Seconds beyond each of these limits."""
BEYOND_SPILLING = 31.0


class Good:
    """A plugin that takes part in everything and works."""

    NAME = "good"
    PRIORITY = 500

    @hookimpl
    def register_tools(self) -> Sequence[Tool]:
        return TOOLS

    @hookimpl
    async def authorize_tool_call(self, call: Call) -> Ask | None:
        return Ask("sure?", Reason("careful")) if call.tool.name == "asked" else None

    @hookimpl
    async def resolve_ask(self, call: Call) -> Answered:
        return Answered(allowed=True, by="ann")

    @hookimpl
    async def spill_result(self, content: bytes) -> Spilled:
        return Spilled("stored by good", "ref", len(content))

    @hookimpl
    def register_skills(self) -> Skill:
        return SKILL

    @hookimpl
    async def prompt_sections(self) -> PromptSection:
        return PromptSection("good", "be good")

    @hookimpl
    async def pin_tools(self) -> list[Pin]:
        return [Pin("works", "it works")]

    @hookimpl
    async def rank_tools(self, offered: Sequence[Tool]) -> Ranking:
        return Ranking({tool.name: 1.0 for tool in offered})

    @hookimpl
    async def select_tools(self, offered: Sequence[Tool]) -> list[str]:
        return [tool.name for tool in offered]

    @hookimpl
    async def select_skills(self, skills: Sequence[Skill]) -> list[str]:
        return [skill.name for skill in skills]


@tool(effect="read")
async def works() -> str:
    """Work."""
    return "it works"


@tool(effect="read")
async def asked() -> str:
    """Work when a person agrees."""
    return "it works"


@tool(effect="read")
async def large() -> str:
    """Give a lot."""
    return "x" * 10_000


@tool(effect="read", optional=True)
async def extra() -> str:
    """Work where an operator wants it."""
    return "it works"


TOOLS = (works, asked, large, extra)
SKILL = Skill("goodness", "How to be good")


def info(kernel: Kernel, name: str) -> PluginInfo:
    [found] = [plugin for plugin in kernel.plugins.list() if plugin.name == name]
    return found


async def call(kit: Kit, *names: str) -> list[Answer]:
    return await kit.batch([(name, {}) for name in names])


async def use_everything(kit: Kit) -> dict[str, Answer]:
    """Make the kernel call every hook that it has, and answer how four calls ended."""
    kernel, session, request = kit.kernel, kit.session, kit.offer.request
    await kit.refresh("a message")
    names = ("works", "asked", "large", "extra")
    answers = dict(zip(names, await call(kit, *names), strict=True))
    assert "goodness" in [skill.name for skill in await session.skills()]
    assert "goodness" in [skill.name for skill in await session.select_skills(request)]
    assert "be good" in [section.text for section in await session.prompt_sections(request)]
    kernel.caller.serve("preview_output", "", memoryview(b"data"), 100)
    for hook, event in each_event(request):
        kernel.emit(hook, event)
    async with kernel.session(session="another"):
        pass
    return answers


def each_event(request: Request) -> Iterator[tuple[str, events.Event]]:
    """Every lifecycle hook with an event of its type, filled as far as the type asks."""
    given = {"time": 0.0, "request": request, "scope": request.scope, "text": "", "reason": ""}
    for name, contract in HOOKS.items():
        if contract.verb == "notify" and name.startswith("on_") and "call" not in name:
            kind = inspect.get_annotations(getattr(hookspecs, name), eval_str=True)["event"]
            required = [field.name for field in msgspec.structs.fields(kind) if field.required]
            yield name, kind(**{field: given.get(field, 0) for field in required})


class Breakage:
    """How the bad plugin breaks, and what lets go of what it left hanging."""

    def __init__(self, clock: MockClock, log: pytest.LogCaptureFixture) -> None:
        self.clock = clock
        self.log = log
        self.beyond = BEYOND
        self.release = threading.Event()
        self.idle = trio.Event()

    def hang(self) -> None:
        """Hang in a worker thread until the test is over; on the loop, until the watchdog has told of it."""
        try:
            trio.from_thread.run_sync(self.clock.jump, self.beyond)
        except RuntimeError:
            waiting, turns = threading.Event(), 0
            while "the loop has been blocked" not in self.log.text and turns < 2_000:
                waiting.wait(0.005)
                turns += 1
        else:
            assert self.release.wait(60)

    async def hang_on_loop(self, observing: bool) -> None:
        if observing:  # time must not jump for what the observer runs beside
            await self.idle.wait()
        self.clock.jump(self.beyond)
        await trio.sleep_forever()

    def hook(self, name: str, manner: str) -> Any:
        """An implementation of a hook that breaks in this manner."""
        breakage = self

        def wrong() -> Any:
            match manner:
                case "raises":
                    raise ValueError("out of cheese")
                case "exits":
                    sys.exit(3)
                case "gives the wrong type":
                    return object()
                case "gives a list of the wrong type":
                    return [object(), 5, None]
            raise AssertionError(manner)

        def plain() -> Any:
            return breakage.hang() if manner == "hangs" else wrong()

        async def colourful() -> Any:
            return await breakage.hang_on_loop(name.startswith("on_")) if manner == "hangs" else wrong()

        function: Any = colourful if HOOKS[name].asynchronous else plain
        function.__name__ = name
        function.__code__ = function.__code__.replace(co_name=name)  # as a stack shows it
        return hookimpl(function)


@pytest.fixture
def breakage(clock: MockClock, caplog: pytest.LogCaptureFixture) -> Iterator[Breakage]:
    breakage = Breakage(clock, caplog)
    yield breakage
    breakage.release.set()


@pytest.fixture
def clock() -> MockClock:
    return MockClock(rate=1.0)


MANNERS = ("raises", "exits", "hangs", "gives the wrong type", "gives a list of the wrong type")
UNREAD = {"plugin_start", "plugin_stop", "preview_output", *(name for name in HOOKS if name.startswith("on_"))}
"""Hooks whose answer the kernel does not read: of a preview it is the spiller who judges."""
DECIDING = {"withhold_tools", "rewrite_tool_call", "authorize_tool_call"}


@pytest.mark.requirement("K5")
@pytest.mark.requirement("K10")
@pytest.mark.requirement("K14")
@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("name", HOOKS)
async def test_a_plugin_that_breaks_in_a_hook_is_named_and_the_others_work(
    breakage: Breakage, clock: MockClock, monkeypatch: pytest.MonkeyPatch, name: str, manner: str
) -> None:
    monkeypatch.setattr(Watchdog.__init__, "__defaults__", (0.02,))  # the loop's patience: a second else
    bad = ModuleType("bad")
    setattr(bad, name, breakage.hook(name, manner))
    breakage.beyond = BEYOND_SPILLING if name == "spill_result" else BEYOND
    async with kernel_with(bad, Good, settings=SETTINGS, broken=True) as kit:
        answers = await use_everything(kit)
        breakage.idle.set()
        await wait_all_tasks_blocked(0.01)  # until observers were told
        with trio.fail_after(110):
            if info(kit.kernel, "bad").state == "active":
                await kit.kernel.plugins.disable("bad")  # its stop, too, may break
        found = info(kit.kernel, "bad")
        good = info(kit.kernel, "good")
        diagnostics = kit.kernel.diagnostics()
        healed = await use_everything(kit)
        assert kit.kernel.load["free"] == 8

    said = [f"{'plugin_start: ' if found.stage == 'start' else ''}{found.reason}", *found.notes, *diagnostics]
    if "wrong type" not in manner or name not in UNREAD:
        assert any(name in one for one in said), f"nothing says what is wrong: {found}"
    assert (good.state, good.notes) == ("active", ())
    texts = {tool: answer.text for tool, answer in answers.items()}
    fine = {"works": "it works", "asked": "it works", "large": "stored by good", "extra": "it works"}
    if name in DECIDING and (name, manner) != ("withhold_tools", "hangs"):
        for answer in answers.values():
            assert answer.status == "refused", "deciders fail closed"
            assert "'bad'" in answer.text
            assert name in answer.text or "no verdict" in answer.text
    elif name == "around_tool_call":
        assert {answer.status for answer in answers.values()} == {"failed"}
    elif name == "spill_result":
        assert "no active plugin stores" in texts.pop("large"), "the chosen spiller failed, so the text is cut"
        assert texts == {tool: text for tool, text in fine.items() if tool != "large"}
    else:
        assert texts == fine
    assert {tool: answer.text for tool, answer in healed.items()} == fine, "without it all is well"


# Before any hook ---------------------------------------------------------------------------------------------------


class Distribution:
    """An installed distribution, as a package manager leaves it, whose plugin's code the test writes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.syspath_prepend(str(folder))

    def install(self, name: str, code: str, *, target: str = "") -> None:
        (self.folder / f"faulty_{name}.py").write_text(code, encoding="utf-8")
        metadata = self.folder / f"faulty_{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: faulty-{name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[toolkeel]\n{name} = {target or f'faulty_{name}'}\n")


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Distribution]:
    before = set(sys.modules)
    yield Distribution(tmp_path, monkeypatch)
    for name in set(sys.modules) - before:
        if name.startswith("faulty_"):
            del sys.modules[name]


@asynccontextmanager
async def discovered(state: Path) -> AsyncIterator[tuple[Kernel, Session]]:
    async with (
        Kernel.open(Config.of({}, state_folder=state), plugins=[Good]) as kernel,
        kernel.session(session="test") as session,
    ):
        yield kernel, session


async def works_in(session: Session) -> bool:
    request = session.request(principal=Principal("ann", "admin"))
    [answer] = await session.call([ToolCall("works", {}, "")], request)
    return answer.text == "it works"


IMPORTS = {
    "raises": ("raise ValueError('out of cheese')", "ValueError: out of cheese"),
    "exits": ("import sys\nsys.exit(3)", "SystemExit"),
    "lacks a package": ("import nowhere_at_all", "nowhere_at_all"),
    "is no Python": ("def (:", "SyntaxError"),
    "is empty bytes": ("\0", ""),
    "never ends": ("import faulty_switch\nfaulty_switch.hang()", "did not come back within 10 s"),
    "recurses": ("def again(): again()\nagain()", "RecursionError"),
    "raises a base exception": ("class Bare(BaseException): pass\nraise Bare('bare')", "Bare: bare"),
    "raises a group": ("raise ExceptionGroup('g', [ValueError('in a group')])", "ValueError: in a group"),
    "raises what cannot be printed": (
        "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
        "E",
    ),
}


@pytest.mark.requirement("K5")
@pytest.mark.requirement("K4")
@pytest.mark.parametrize("manner", IMPORTS)
async def test_a_package_that_fails_at_import_is_quarantined_with_stage_reason_and_remedy(
    distribution: Distribution,
    breakage: Breakage,
    clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    manner: str,
) -> None:
    code, reason = IMPORTS[manner]
    breakage.beyond = 11
    switch = ModuleType("faulty_switch")
    switch.hang = breakage.hang  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faulty_switch", switch)
    distribution.install("bad", code)
    async with discovered(tmp_path / "state") as (kernel, session):
        bad = info(kernel, "bad")
        assert await works_in(session)
        breakage.release.set()
    assert (bad.state, bad.stage, bad.source) == ("quarantined", "import", "faulty-bad 1.0")
    assert reason in bad.reason
    assert bad.remedy


BUILDS = {
    "raises when it is built": ("class Bad:\n    def __init__(self): raise ValueError('out of cheese')", "create"),
    "exits when it is built": ("class Bad:\n    def __init__(self): raise SystemExit(3)", "create"),
    "wants what nobody gives": ("class Bad:\n    def __init__(self, one, two, three): pass", "create"),
    "hangs when it is built": (
        "import faulty_switch\nclass Bad:\n    def __init__(self): faulty_switch.hang()",
        "create",
    ),
    "has settings that are none": ("class Bad:\n    pass\nSettings = 5", "settings"),
    "has settings that cannot be made": (
        "from pydantic import BaseModel\nclass Settings(BaseModel):\n    needed: int\nclass Bad:\n    pass",
        "settings",
    ),
    "is not there": ("", "import"),
}


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("manner", BUILDS)
async def test_a_package_whose_plugin_cannot_be_built_is_quarantined(
    distribution: Distribution,
    breakage: Breakage,
    clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    manner: str,
) -> None:
    code, stage = BUILDS[manner]
    breakage.beyond = 11
    switch = ModuleType("faulty_switch")
    switch.hang = breakage.hang  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faulty_switch", switch)
    distribution.install("bad", code, target="faulty_bad:Bad")
    async with discovered(tmp_path / "state") as (kernel, session):
        bad = info(kernel, "bad")
        assert await works_in(session)
        breakage.release.set()
    assert (bad.state, bad.stage) == ("quarantined", stage)
    assert bad.reason


# Greed -------------------------------------------------------------------------------------------------------------


def many(count: int, prefix: str) -> ModuleType:
    async def function() -> str:
        return "one of many"

    tools = tuple(tool(name=f"{prefix}_{number:04}", effect="read")(function) for number in range(count))

    def register_tools() -> tuple[Tool, ...]:
        return tools

    module = ModuleType("greedy")
    module.register_tools = hookimpl(register_tools)  # type: ignore[attr-defined]
    return module


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("prefix", ["aaa", "zzz"])
async def test_a_plugin_that_registers_five_thousand_tools_drives_nobody_out(prefix: str) -> None:
    async with kernel_with(many(5_000, prefix), works_alone()) as kit:
        offered = [tool.name for tool in kit.offer.tools]
        answers = await call(kit, "works", f"{prefix}_0000", f"{prefix}_4999")
        explanation = kit.offer.explain(f"{prefix}_4999")
        diagnostics = kit.kernel.diagnostics()
    assert len(offered) == 128
    assert answers[0].text == "it works"
    assert answers[1].text == "one of many"
    assert answers[2].status == "refused"
    assert "kernel.tool_limit" in answers[2].text
    assert explanation.steps[-1].setting == "kernel.tool_limit"
    assert any("greedy" in line and "5,000" in line for line in diagnostics), "an operator learns who takes the room"


def works_alone() -> ModuleType:
    def register_tools() -> Tool:
        return works

    module = ModuleType("modest")
    module.register_tools = hookimpl(register_tools)  # type: ignore[attr-defined]
    return module


# Threads and background work ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("manner", ["exits", "raises", "never returns"])
async def test_a_plugin_that_kills_its_worker_threads_costs_no_others(
    breakage: Breakage, clock: MockClock, manner: str
) -> None:
    breakage.beyond = 11

    @tool(effect="read", time_limit=10)
    def kill() -> None:
        """End the thread."""
        if manner == "exits":
            sys.exit(1)
        if manner == "raises":
            raise BaseExceptionGroup("several", [SystemExit(1), GeneratorExit()])
        breakage.hang()

    @tool(effect="read")
    def thread() -> str:
        """Work in a thread."""
        return "it works"

    def register_tools() -> Tool:
        return kill

    def register_others() -> Tool:
        return thread

    bad, other = ModuleType("bad"), ModuleType("other")
    bad.register_tools = hookimpl(register_tools)  # type: ignore[attr-defined]
    register_others.__name__ = "register_tools"
    other.register_tools = hookimpl(register_others)  # type: ignore[attr-defined]
    async with kernel_with(bad, other) as kit:
        for _ in range(5):
            answers = await call(kit, "kill", "thread")
            assert [answer.status for answer in answers] == ["failed", "completed"]
        load, diagnostics = kit.kernel.load, kit.kernel.diagnostics()
        breakage.release.set()
    assert load["free"] == 8
    assert load["stray_threads"] == (5 if manner == "never returns" else 0)
    assert any("'kill'" in line for line in diagnostics) == (manner == "never returns")


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("manner", ["raises", "exits", "in a group"])
async def test_a_background_task_that_fails_quarantines_its_plugin(manner: str) -> None:
    go = trio.Event()

    async def background() -> None:
        await go.wait()
        if manner == "exits":
            sys.exit(1)
        if manner == "in a group":
            raise ExceptionGroup("several", [ValueError("out of cheese"), KeyError("k")])
        raise ValueError("out of cheese")

    async def plugin_start(nursery: trio.Nursery) -> None:
        nursery.start_soon(background)

    bad = ModuleType("bad")
    bad.plugin_start = hookimpl(plugin_start)  # type: ignore[attr-defined]
    async with kernel_with(bad, Good) as kit:
        assert info(kit.kernel, "bad").state == "active"
        go.set()
        with trio.fail_after(30):
            while info(kit.kernel, "bad").state == "active":
                await trio.sleep(0.001)
        found = info(kit.kernel, "bad")
        await kit.refresh()
        [answer] = await call(kit, "works")
    assert answer.text == "it works"
    assert (found.state, found.stage) == ("quarantined", "run")
    assert ("SystemExit" if manner == "exits" else "out of cheese") in found.reason
    assert found.remedy


@pytest.mark.requirement("K5")
async def test_every_breakage_at_once_leaves_the_good_plugin_working(
    distribution: Distribution, tmp_path: Path
) -> None:
    for manner, (code, _) in IMPORTS.items():
        if manner != "never ends":
            distribution.install(manner.replace(" ", "_"), code)
    async with discovered(tmp_path / "state") as (kernel, session):
        quarantined = [plugin.name for plugin in kernel.plugins.list() if plugin.state == "quarantined"]
        assert await works_in(session)
    assert sorted(quarantined) == sorted(manner.replace(" ", "_") for manner in IMPORTS if manner != "never ends")
