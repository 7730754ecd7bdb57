"""The plugin set: order, conflicts, quarantine, and changes while calls run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol

import pytest
import trio
import trio.testing
from pydantic import BaseModel

from toolkeel import (
    Config,
    Hooks,
    Kernel,
    PluginContext,
    Principal,
    Reason,
    Refuse,
    Request,
    Scope,
    Skill,
    Text,
    Tool,
    ToolCall,
    hookimpl,
    hookspec,
    tool,
)
from toolkeel.errors import DefinitionError, PluginError, ServiceMissing, SettingsError
from toolkeel.events import ToolsChanged
from toolkeel.kernel import Session
from toolkeel.testing import kernel_with
from toolkeel.testing.kit import Kit

MakePlugin = Callable[..., ModuleType]


def say(name: str, word: str = "", **options: Any) -> Tool:
    """A tool that answers with a word, its name where none is given."""

    def function() -> str:
        return word or name

    return tool(name=name, description="Say it.", effect="read", inline=True, **options)(function)


class Door:
    """A tool that waits behind a door, and the log of what happened around it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.inside = trio.Event()
        self.open = trio.Event()

    def tool(self, name: str = "wait") -> Tool:
        async def wait() -> str:
            self.inside.set()
            await self.open.wait()
            self.log.append("call ended")
            return "waited"

        return tool(name=name, description="Wait.", effect="read")(wait)

    def hooks(self, name: str = "plugin") -> list[Callable[..., Any]]:
        async def plugin_start(context: PluginContext, nursery: trio.Nursery) -> None:
            self.log.append(f"{name} started")

        async def plugin_stop() -> None:
            self.log.append(f"{name} stopped")

        return [plugin_start, plugin_stop]


def states(kernel: Kernel) -> dict[str, str]:
    return {info.name: info.state for info in kernel.plugins.list()}


def info_of(kernel: Kernel, name: str) -> Any:
    return next(info for info in kernel.plugins.list() if info.name == name)


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait, within a bound, until something holds."""
    with trio.fail_after(10):
        while not holds():
            await trio.sleep(0.001)


# Order and equal names ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("K6")
@pytest.mark.parametrize("given", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
async def test_plugins_load_and_run_by_priority_and_then_by_name(make_plugin: MakePlugin, given: list[int]) -> None:
    started: list[str] = []
    asked: list[str] = []

    def plugin(name: str, priority: int) -> ModuleType:
        async def plugin_start(context: PluginContext, nursery: trio.Nursery) -> None:
            started.append(context.name)

        def withhold_tools(tools: Any, request: Request) -> None:
            asked.append(name)

        return make_plugin(name=name, priority=priority, hooks=[plugin_start, withhold_tools])

    plugins = [plugin("zeta", 50), plugin("alpha", 100), plugin("beta", 100), plugin("early", -5)]
    async with kernel_with(*[plugins[index] for index in given]) as kit:
        assert started == asked == ["early", "zeta", "alpha", "beta"]
        assert [info.priority for info in kit.kernel.plugins.list()] == [100, 100, -5, 50]


@pytest.mark.requirement("K6")
async def test_an_operator_gives_a_plugin_another_priority(make_plugin: MakePlugin) -> None:
    one, two = make_plugin(say("word", "one"), name="one"), make_plugin(say("word", "two"), name="two")
    async with kernel_with(one, two, settings={"kernel": {"priority": {"two": 1}}}) as kit:
        assert (await kit.call("word")).text == "two"
        assert info_of(kit.kernel, "two").priority == 1


@pytest.mark.requirement("K6")
async def test_of_equal_tool_names_the_first_wins_and_one_diagnostic_names_both_and_the_setting(
    make_plugin: MakePlugin,
) -> None:
    late = make_plugin(say("word", "late"), say("other"), name="aaa", priority=200)
    early = make_plugin(say("word", "early"), name="zzz")
    async with kernel_with(late, early) as kit:
        assert (await kit.call("word")).text == "early"
        assert (await kit.call("other")).text == "other"
        [diagnostic] = kit.kernel.diagnostics()
        for part in ("'word'", "'aaa'", "'zzz'", "kernel.prefer.word"):
            assert part in diagnostic
        assert states(kit.kernel) == {"aaa": "active", "zzz": "active"}


@pytest.mark.requirement("K6")
async def test_the_preferred_plugins_tool_is_taken_whatever_the_order(make_plugin: MakePlugin) -> None:
    plugins = [make_plugin(say("word", name), name=name) for name in ("one", "three", "two")]
    for name in ("one", "two", "three"):
        async with kernel_with(*plugins, settings={"kernel": {"prefer": {"word": name}}}) as kit:
            assert (await kit.call("word")).text == name


@pytest.mark.requirement("K6")
async def test_when_the_winner_goes_the_other_plugins_tool_takes_its_place(make_plugin: MakePlugin) -> None:
    one, two = make_plugin(say("word", "one"), name="one"), make_plugin(say("word", "two"), name="two")
    async with kernel_with(one, two) as kit:
        await kit.kernel.plugins.disable("one")
        await kit.refresh()
        assert (await kit.call("word")).text == "two"
        assert not [text for text in kit.kernel.diagnostics() if "'word'" in text]


@pytest.mark.requirement("K6")
async def test_a_plugin_that_gives_two_tools_of_one_name_keeps_the_first(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(say("word", "first"), say("word", "second"))) as kit:
        assert (await kit.call("word")).text == "first"
        [diagnostic] = kit.kernel.diagnostics()
        assert "'tools'" in diagnostic
        assert "'word'" in diagnostic


@pytest.mark.requirement("K6")
@pytest.mark.parametrize(
    ("settings", "path", "nearest"),
    [
        ({"disable": ["wetaher"]}, "kernel.disable", "weather"),
        ({"only": ["weather", "wetaher"]}, "kernel.only", "weather"),
        ({"priority": {"wetaher": 1}}, "kernel.priority", "weather"),
        ({"prefer": {"word": "wetaher"}}, "kernel.prefer", "weather"),
    ],
    ids=str,
)
async def test_a_setting_that_names_no_plugin_is_reported_not_silent(
    make_plugin: MakePlugin, settings: dict[str, Any], path: str, nearest: str
) -> None:
    async with kernel_with(make_plugin(say("word"), name="weather"), settings={"kernel": settings}) as kit:
        [diagnostic] = kit.kernel.diagnostics()
        assert path in diagnostic
        assert "wetaher" in diagnostic
        assert nearest in diagnostic


# Factories ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K2")
@pytest.mark.parametrize(
    ("give", "names"),
    [
        (lambda: None, set()),
        (lambda: (), set()),
        (lambda: say("one"), {"one"}),
        (lambda: [say("one"), say("two")], {"one", "two"}),
        (lambda: {say("one")}, {"one"}),
        (lambda: (say(name) for name in ("one", "two")), {"one", "two"}),
    ],
    ids=range(6),
)
async def test_a_factory_gives_one_tool_several_or_none(give: Callable[[], Any], names: set[str]) -> None:
    class Plugin:
        @hookimpl
        def register_tools(self) -> Any:
            return give()

    async with kernel_with(Plugin) as kit:
        assert kit.offer.names == names


@pytest.mark.requirement("K2")
async def test_a_factory_sees_the_scope_of_the_session_and_no_principal(tmp_path: Path) -> None:
    seen: list[Scope] = []

    class Plugin:
        @hookimpl
        def register_tools(self, scope: Scope) -> Tool | None:
            seen.append(scope)
            return say("shell") if scope.sandboxed else None

    config = Config.of({"kernel": {"workers": 3}}, state_folder=tmp_path)
    async with Kernel.open(config, plugins=[Plugin], discover=False) as kernel:
        (tmp_path / "link").symlink_to(tmp_path)
        async with (
            kernel.session(
                agent="bosun",
                session="s1",
                channel="telegram",
                workspaces=[tmp_path / "link", tmp_path],
                agent_folder=tmp_path / "bosun",
                sandboxed=True,
            ) as boxed,
            kernel.session() as plain,
        ):
            asked = Principal("ann")
            assert (await boxed.offer(boxed.request(principal=asked))).names == {"shell"}
            assert (await plain.offer(plain.request(principal=asked))).names == frozenset()
    scope = seen[0]
    assert (scope.agent, scope.session, scope.channel, scope.sandboxed) == ("bosun", "s1", "telegram", True)
    assert scope.workspaces == (tmp_path.resolve(),)
    assert scope.agent_folder == tmp_path / "bosun"
    assert scope.config["kernel"] == {"workers": 3}
    assert not hasattr(scope, "principal")


@pytest.mark.requirement("K2")
async def test_a_factory_is_asked_once_per_session_in_a_thread(make_plugin: MakePlugin) -> None:
    threads: list[int] = []

    def register_tools() -> Tool:
        threads.append(threading.get_ident())
        return say("word")

    async with kernel_with(make_plugin(hooks=[register_tools])) as kit:
        for message in ("one", "two", "three"):
            await kit.refresh(message)
        async with kit.kernel.session(session="other"):
            pass
    assert len(threads) == 2
    assert threading.get_ident() not in threads


class Odd:
    """What a factory might return by mistake."""

    def __iter__(self) -> Any:
        raise OSError("no harbour")


def yields_and_raises() -> Any:
    yield say("half")
    raise OSError("no harbour")


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    ("give", "says"),
    [
        (lambda: 5, "int"),
        (lambda: "word", "str"),
        (lambda: [say("one"), None], "NoneType"),
        (lambda: [["nested"]], "list"),
        (lambda: say, "function"),
        (lambda: Tool, ""),
        (lambda: Odd(), "no harbour"),
        (yields_and_raises, "no harbour"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: (_ for _ in ()).throw(SystemExit(3)), "SystemExit"),
    ],
    ids=range(10),
)
async def test_a_factory_that_raises_or_gives_something_else_quarantines_its_plugin_alone(
    make_plugin: MakePlugin, give: Callable[[], Any], says: str
) -> None:
    class Bad:
        @hookimpl
        def register_tools(self) -> Any:
            return give()

    good = make_plugin(say("word"), name="good")
    async with kernel_with(good, Bad, broken=True) as kit:
        assert kit.offer.names == {"word"}
        assert (await kit.call("word")).text == "word"
        info = info_of(kit.kernel, "bad")
        assert (info.state, info.stage) == ("quarantined", "register")
        assert "register_tools" in info.reason
        assert says in info.reason
        assert "reload" in info.remedy


@pytest.mark.requirement("K5")
async def test_a_factory_that_hangs_is_given_up_and_nothing_of_it_counts_later(make_plugin: MakePlugin) -> None:
    """The hung thread comes back while another one asks the plugins after it: each of them is asked in one attempt."""
    hung, came_back = threading.Event(), threading.Event()
    asked: list[str] = []

    def skills_of(name: str, before: Callable[[], Any] = lambda: None) -> ModuleType:
        def register_skills() -> Skill:
            asked.append(name)
            before()
            return Skill(name, "Know how.")

        return make_plugin(name=name, hooks=[register_skills])

    def hang() -> None:
        hung.wait(30)
        came_back.set()

    def release() -> None:
        hung.set()
        came_back.wait(30)
        time.sleep(0.05)  # the stray thread has its chance to go on with the plugins after its own

    plugins = [skills_of("a", hang), skills_of("b", release), skills_of("c"), skills_of("d")]
    async with kernel_with(*plugins, settings={"kernel": {"register_time_limit": 0.4}}) as kit:
        try:
            skills = await kit.session.skills()
        finally:
            hung.set()
        assert [skill.name for skill in skills] == ["b", "c", "d"]
        assert asked == ["a", "b", "c", "d"]
        assert states(kit.kernel) == {"a": "quarantined", "b": "active", "c": "active", "d": "active"}
        assert "0.4 s" in info_of(kit.kernel, "a").reason


@pytest.mark.requirement("K5")
async def test_many_factories_that_each_keep_to_the_limit_are_not_blamed_for_their_sum(make_plugin: MakePlugin) -> None:
    limit = 0.5

    def slow(name: str) -> ModuleType:
        def register_tools() -> Tool:
            time.sleep(limit * 0.09)
            return say(name)

        return make_plugin(name=name, hooks=[register_tools])

    plugins = [slow(f"plugin{number:02}") for number in range(16)]
    settings = {"kernel": {"register_time_limit": limit}}
    async with kernel_with(*plugins, settings=settings, broken=True) as kit:
        assert set(states(kit.kernel).values()) == {"active"}
        assert len(kit.offer.tools) == 16


@pytest.mark.requirement("K5")
async def test_five_thousand_tools_of_one_plugin_leave_the_others_what_they_need(make_plugin: MakePlugin) -> None:
    many = make_plugin(*[say(f"tool_{number}") for number in range(5_000)], name="zmany")
    async with kernel_with(many, make_plugin(say("word"), name="good")) as kit:
        assert len(kit.offer.tools) == 128
        assert (await kit.call("tool_1")).text == "tool_1"
        assert len(kit.offer.table.tools) == 5_001


# Hooks that are written wrongly ------------------------------------------------------------------------------------


class Misspelt:
    @hookimpl
    def regster_tools(self) -> None: ...


class FarOff:
    @hookimpl
    def sail_away(self) -> None: ...


class WrongColour:
    @hookimpl
    def authorize_tool_call(self, call: Any) -> None: ...


class OtherColour:
    @hookimpl
    async def register_tools(self) -> None: ...


class First:
    @hookimpl(tryfirst=True)
    def register_tools(self) -> None: ...


class Last:
    @hookimpl(trylast=True)
    def register_tools(self) -> None: ...


class Wrapper:
    @hookimpl(wrapper=True)
    def register_tools(self) -> Any:
        return (yield)


class UnknownParameter:
    @hookimpl
    def register_tools(self, scpoe: Scope) -> None: ...


class Renamed:
    @hookimpl(specname="authorize_tool_call")
    def decide(self, call: Any) -> None: ...


class RenamedFirst:
    @hookimpl(specname="register_tools", tryfirst=True)
    def tools(self) -> None: ...


@pytest.mark.requirement("K5", "K6")
@pytest.mark.parametrize(
    ("plugin", "says", "remedy"),
    [
        (Misspelt, "unknown hook 'regster_tools'", "Did you mean 'register_tools'?"),
        (FarOff, "unknown hook 'sail_away'", "optionalhook"),
        (WrongColour, "authorize_tool_call must be async def", "Write `async def"),
        (OtherColour, "register_tools must be a plain def", "Write `def"),
        (First, "tryfirst", "PRIORITY"),
        (Last, "trylast", "PRIORITY"),
        (Wrapper, "wrapper", ""),
        (UnknownParameter, "scpoe", ""),
        (Renamed, "authorize_tool_call must be async def", "Write `async def"),
        (RenamedFirst, "tryfirst", "PRIORITY"),
    ],
)
async def test_a_hook_that_is_written_wrongly_quarantines_its_plugin_and_says_how_to_mend_it(
    make_plugin: MakePlugin, plugin: type[Any], says: str, remedy: str
) -> None:
    async with kernel_with(plugin, make_plugin(say("word"), name="good"), broken=True) as kit:
        info = info_of(kit.kernel, plugin.__name__.lower())
        assert (info.state, info.stage) == ("quarantined", "hooks")
        assert says in info.reason
        assert remedy in info.remedy
        assert info.remedy
        assert (await kit.call("word")).text == "word"


@pytest.mark.requirement("K3")
async def test_an_implementation_takes_any_of_its_hooks_parameters_in_any_order() -> None:
    seen: list[tuple[Any, ...]] = []

    class Plugin:
        @hookimpl
        def register_tools(self) -> Tool:
            return say("word")

        @hookimpl
        def withhold_tools(self, request: Request, tools: Any) -> None:
            seen.append((request.message, [one.name for one in tools]))

        @hookimpl
        async def pin_tools(self, offered: Any) -> None:
            seen.append(([one.name for one in offered],))

    async with kernel_with(Plugin, message="ahoy"):
        pass
    assert seen == [("ahoy", ["word"]), (["word"],)]


# Hooks that plugins declare ----------------------------------------------------------------------------------------


class Signals:
    @hookspec("collect")
    def flags(self, mast: str) -> object:
        """Give the flags on a mast."""

    @hookspec("serve")
    async def helm(self) -> object:
        """Who steers."""


class Declares:
    PRIORITY = 200

    def __init__(self, context: PluginContext) -> None:
        self.hooks: Hooks = context.hooks

    @hookimpl
    def declare_hookspecs(self) -> object:
        return Signals()

    @hookimpl
    def register_tools(self) -> Tool:
        async def ask() -> list[Any]:
            flags = self.hooks.collect("flags", "fore")
            return [flags, await self.hooks.serve_async("helm")]

        return tool(name="ask", description="Ask.", effect="read")(ask)


class Aardvark:
    """Loads before the plugin that declares the hooks it implements."""

    PRIORITY = 1

    @hookimpl
    def flags(self, mast: str) -> str:
        return f"red on {mast}"

    @hookimpl(optionalhook=True)
    def surely_nobody_declares_this(self) -> None: ...


class Zebra:
    PRIORITY = 300

    @hookimpl
    def flags(self) -> str:
        return "blue"

    @hookimpl
    async def helm(self) -> str:
        return "zebra"


@pytest.mark.requirement("K3")
async def test_hooks_that_one_plugin_declares_others_implement_whatever_the_load_order() -> None:
    async with kernel_with(Zebra, Declares, Aardvark) as kit:
        assert (await kit.call("ask")).text == '[[["aardvark","red on fore"],["zebra","blue"]],"zebra"]'
        assert kit.kernel.contracts["flags"].verb == "collect"


@pytest.mark.requirement("K3", "K5")
async def test_without_the_plugin_that_declares_it_a_hook_is_unknown_unless_it_is_optional() -> None:
    class Modest:
        @hookimpl(optionalhook=True)
        def flags(self) -> str:
            return "white"

    async with kernel_with(Zebra, Modest, broken=True) as kit:
        assert states(kit.kernel) == {"zebra": "quarantined", "modest": "active"}
        assert "optionalhook" in info_of(kit.kernel, "zebra").remedy


@pytest.mark.requirement("K3", "K7")
async def test_an_optional_hook_counts_once_its_plugin_is_enabled() -> None:
    class Modest:
        @hookimpl(optionalhook=True)
        def flags(self) -> str:
            return "white"

    settings = {"kernel": {"disable": ["declares"]}}
    async with kernel_with(Modest, Declares, settings=settings) as kit:
        assert (await kit.kernel.plugins.enable("declares")).state == "active"
        await kit.refresh()
        assert (await kit.call("ask")).text == '[[["modest","white"]],null]'


@pytest.mark.requirement("K3", "K5")
async def test_an_optional_hook_of_the_wrong_colour_is_its_own_plugins_fault() -> None:
    class Modest:
        @hookimpl(optionalhook=True)
        async def flags(self) -> str:
            return "white"

    class Wrong:
        @hookimpl(optionalhook=True)
        def helm(self, unknown: int) -> str:
            return "nobody"

    settings = {"kernel": {"disable": ["declares"]}}
    async with kernel_with(Modest, Wrong, Declares, settings=settings, broken=True) as kit:
        assert (await kit.kernel.plugins.enable("declares")).state == "active"
        await kit.refresh()
        assert (await kit.call("ask")).text == "[[],null]"
        assert states(kit.kernel) == {"declares": "active", "modest": "quarantined", "wrong": "quarantined"}


@pytest.mark.requirement("K3", "K5")
@pytest.mark.parametrize(
    ("specs", "says"),
    [
        (lambda: object(), "nothing that is marked"),
        (lambda: 5, "nothing that is marked"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: Signals, "'flags' is already declared by 'declares'"),
        (lambda: _kernel_hooks(), "'register_tools' is already declared by 'kernel'"),
    ],
    ids=range(5),
)
async def test_a_wrong_declaration_is_its_own_plugins_fault(specs: Callable[[], object], says: str) -> None:
    class Rival:
        PRIORITY = 250

        @hookimpl
        def declare_hookspecs(self) -> object:
            return specs()

    async with kernel_with(Declares, Rival, Zebra, broken=True) as kit:
        info = info_of(kit.kernel, "rival")
        assert (info.state, info.stage) == ("quarantined", "hooks")
        assert says in info.reason
        assert states(kit.kernel)["declares"] == states(kit.kernel)["zebra"] == "active"


def _kernel_hooks() -> object:
    class Taken:
        @hookspec("collect")
        def register_tools(self) -> object:
            """Not ours to take."""

    return Taken()


@pytest.mark.requirement("K3", "K7")
async def test_a_plugin_that_declares_hooks_can_be_reloaded() -> None:
    async with kernel_with(Declares, Zebra) as kit:
        assert (await kit.kernel.plugins.reload("declares")).state == "active"
        await kit.refresh()
        assert (await kit.call("ask")).text == '[[["zebra","blue"]],"zebra"]'


# Starting and stopping ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    ("error", "reason", "remedy"),
    [
        (RuntimeError("no harbour"), "RuntimeError: no harbour", ""),
        (PluginError("no harbour", remedy="Build one"), "no harbour", "Build one"),
        (SystemExit(3), "SystemExit: 3", ""),
        (ExceptionGroup("many", [OSError("no harbour")]), "OSError: no harbour", ""),
    ],
    ids=repr,
)
async def test_a_start_that_fails_quarantines_its_plugin_and_takes_back_what_it_gave(
    make_plugin: MakePlugin, error: BaseException, reason: str, remedy: str
) -> None:
    class Bad:
        @hookimpl
        def register_tools(self) -> Tool:
            return say("bad")

        @hookimpl
        async def plugin_start(self, context: PluginContext, nursery: trio.Nursery) -> None:
            context.services.provide(Lamp, Lantern(), plugin=context.name)
            nursery.start_soon(trio.sleep_forever)
            raise error

    async with kernel_with(Bad, make_plugin(say("word"), name="good"), broken=True) as kit:
        info = info_of(kit.kernel, "bad")
        assert (info.state, info.stage, info.reason, info.remedy) == ("quarantined", "start", reason, remedy)
        assert kit.offer.names == {"word"}
        assert kit.kernel.services.find(Lamp) is None


@pytest.mark.requirement("K5")
async def test_a_start_that_hangs_is_given_up(make_plugin: MakePlugin, clock: trio.testing.MockClock) -> None:
    async def plugin_start() -> None:
        await trio.sleep_forever()

    good = make_plugin(say("word"), name="good")
    bad = make_plugin(name="bad", hooks=[plugin_start])
    async with kernel_with(good, bad, broken=True, settings={"kernel": {"register_time_limit": 0.4}}) as kit:
        info = info_of(kit.kernel, "bad")
        assert (info.state, info.stage) == ("quarantined", "start")
        assert "0.4 s" in info.reason
        assert (await kit.call("word")).text == "word"


class Lamp(Protocol):
    def light(self) -> str: ...


class Lantern:
    def light(self) -> str:
        return "light"


class Keeper:
    """Gives a service, runs a task in the background, and takes its time to stop."""

    log: list[str]

    def __init__(self, context: PluginContext) -> None:
        self.context = context

    @hookimpl
    async def plugin_start(self, nursery: trio.Nursery) -> None:
        self.context.services.provide(Lamp, Lantern(), plugin=self.context.name)
        nursery.start_soon(self.watch)

    async def watch(self) -> None:
        try:
            await self.fail.wait()
        finally:
            self.log.append("watch ended")
        raise OSError("the lamp fell")

    @hookimpl
    async def plugin_stop(self) -> None:
        self.log.append("stopped")

    @hookimpl
    def register_tools(self) -> Tool:
        return say("shine")


def keeper() -> tuple[type[Keeper], list[str], trio.Event]:
    log: list[str] = []
    fail = trio.Event()

    class Own(Keeper):
        NAME = "keeper"

    Own.log = log
    Own.fail = fail  # type: ignore[attr-defined]
    return Own, log, fail


@pytest.mark.requirement("K5")
async def test_a_background_task_that_fails_quarantines_its_plugin_while_the_others_go_on(
    make_plugin: MakePlugin,
) -> None:
    plugin, log, fail = keeper()
    told: list[str] = []

    async def on_tools_changed(event: ToolsChanged) -> None:
        told.append(event.reason)

    good = make_plugin(say("word"), name="good", hooks=[on_tools_changed])
    async with kernel_with(plugin, good) as kit:
        assert kit.kernel.services.get(Lamp).light() == "light"
        fail.set()
        await eventually(lambda: info_of(kit.kernel, "keeper").state == "quarantined")
        info = info_of(kit.kernel, "keeper")
        assert (info.stage, info.remedy != "") == ("run", True)
        assert "OSError: the lamp fell" in info.reason
        assert "stopped" in log
        with pytest.raises(ServiceMissing):
            kit.kernel.services.get(Lamp)
        await kit.refresh()
        assert kit.offer.names == {"word"}
        await eventually(lambda: any("keeper" in reason for reason in told))


@pytest.mark.requirement("K5")
async def test_a_quarantined_plugin_can_be_enabled_again(make_plugin: MakePlugin) -> None:
    plugin, _, fail = keeper()
    async with kernel_with(plugin) as kit:
        fail.set()
        await eventually(lambda: info_of(kit.kernel, "keeper").state == "quarantined")
        plugin.fail = trio.Event()  # type: ignore[attr-defined]
        info = await kit.kernel.plugins.enable("keeper")
        assert (info.state, info.stage, info.reason, info.remedy) == ("active", "", "", "")
        assert kit.kernel.services.get(Lamp).light() == "light"


@pytest.mark.requirement("K7")
async def test_closing_stops_the_plugins_last_loaded_first_and_ends_their_tasks(make_plugin: MakePlugin) -> None:
    plugin, log, _ = keeper()
    doors = Door()
    doors.log = log
    first = make_plugin(name="first", priority=1, hooks=doors.hooks("first"))
    last = make_plugin(name="last", priority=200, hooks=doors.hooks("last"))
    async with kernel_with(last, plugin, first):
        assert log == ["first started", "last started"]
    assert log == ["first started", "last started", "last stopped", "stopped", "watch ended", "first stopped"]


@pytest.mark.requirement("K7")
async def test_a_stop_that_fails_or_hangs_is_recorded_and_the_others_stop(make_plugin: MakePlugin) -> None:
    stopped: list[str] = []

    def plugin(name: str, stop: Callable[[], Any]) -> ModuleType:
        async def plugin_stop() -> None:
            stopped.append(name)
            await stop()

        return make_plugin(name=name, hooks=[plugin_stop])

    async def fail() -> None:
        raise OSError("stuck")

    async with kernel_with(
        plugin("a", trio.lowlevel.checkpoint),
        plugin("b", fail),
        plugin("c", trio.sleep_forever),
        settings={"kernel": {"stop_time_limit": 0.2}},
    ) as kit:
        kernel = kit.kernel
    assert stopped == ["c", "b", "a"]
    assert any("OSError: stuck" in note for note in info_of(kernel, "b").notes)
    assert any("0.2 s" in note for note in info_of(kernel, "c").notes)


@pytest.mark.requirement("K7")
async def test_when_the_start_is_refused_for_a_wrong_setting_what_started_is_stopped(make_plugin: MakePlugin) -> None:
    doors = Door()
    with pytest.raises(Exception, match="kernal"):
        async with kernel_with(make_plugin(hooks=doors.hooks()), settings={"kernal": {}}):
            pass
    assert doors.log == ["plugin started", "plugin stopped"]


# Changes while calls run -------------------------------------------------------------------------------------------


@pytest.mark.requirement("K7")
async def test_a_call_in_flight_finishes_on_the_old_plugin_and_its_stop_comes_after(make_plugin: MakePlugin) -> None:
    door = Door()
    plugin = make_plugin(door.tool(), say("word"), name="door", hooks=door.hooks())
    async with kernel_with(plugin) as kit:
        async with trio.open_nursery() as nursery:
            answers: list[Any] = []
            nursery.start_soon(_into, answers, kit, "wait")
            await door.inside.wait()
            nursery.start_soon(kit.kernel.plugins.disable, "door")
            await eventually(lambda: states(kit.kernel)["door"] == "disabled")
            refused = await kit.call("word")
            assert refused.status == "refused"
            assert "its plugin was stopped" in refused.text
            assert door.log == ["plugin started"]
            door.open.set()
        assert [answer.text for answer in answers] == ["waited"]
        assert door.log == ["plugin started", "call ended", "plugin stopped"]
        await kit.refresh()
        assert "there is no tool 'word'" in (await kit.call("word")).text


async def _into(answers: list[Any], kit: Kit, name: str) -> None:
    answers.append(await kit.call(name))


@pytest.mark.requirement("K7")
async def test_the_stop_waits_for_a_call_that_began_before_an_earlier_change(make_plugin: MakePlugin) -> None:
    door = Door()
    plugin = make_plugin(door.tool(), name="door", hooks=door.hooks())
    other = make_plugin(say("word"), name="other")
    async with kernel_with(plugin, other) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_into, [], kit, "wait")
            await door.inside.wait()
            with trio.fail_after(5):  # the call has nothing to do with the other plugin
                info = await kit.kernel.plugins.disable("other")
            assert info.notes == ()
            await kit.kernel.plugins.enable("other")
            nursery.start_soon(kit.kernel.plugins.disable, "door")
            await eventually(lambda: states(kit.kernel)["door"] == "disabled")
            for _ in range(20):
                await trio.lowlevel.checkpoint()
            assert door.log == ["plugin started"]
            door.open.set()
        assert door.log == ["plugin started", "call ended", "plugin stopped"]


@pytest.mark.requirement("K7")
async def test_the_stop_of_a_plugin_around_a_call_waits_for_it_too(make_plugin: MakePlugin) -> None:
    door = Door()

    async def around_tool_call(call: Any, call_next: Any) -> Any:
        result = await call_next()
        door.log.append("around ended")
        return result

    wrapper = make_plugin(name="wrapper", hooks=[around_tool_call, *door.hooks("wrapper")])
    async with kernel_with(make_plugin(door.tool(), name="door"), wrapper) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_into, [], kit, "wait")
            await door.inside.wait()
            nursery.start_soon(kit.kernel.plugins.disable, "wrapper")
            await eventually(lambda: states(kit.kernel)["wrapper"] == "disabled")
            for _ in range(20):
                await trio.lowlevel.checkpoint()
            assert door.log == ["wrapper started"]
            door.open.set()
        assert door.log == ["wrapper started", "call ended", "around ended", "wrapper stopped"]


@pytest.mark.requirement("K7")
async def test_a_call_that_never_ends_holds_the_stop_up_for_the_limit_only(make_plugin: MakePlugin) -> None:
    door = Door()
    plugin = make_plugin(door.tool(), name="door", hooks=door.hooks())
    async with kernel_with(plugin, settings={"kernel": {"stop_time_limit": 0.2}}) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_into, [], kit, "wait")
            await door.inside.wait()
            info = await kit.kernel.plugins.disable("door")
            assert door.log == ["plugin started", "plugin stopped"]
            assert any("while calls still ran" in note for note in info.notes)
            door.open.set()
        assert door.log[-1] == "call ended"


@pytest.mark.requirement("K7")
async def test_a_reload_while_a_call_runs_gives_new_calls_the_new_plugin() -> None:
    door = Door()
    lives: list[int] = []

    class Plugin:
        def __init__(self) -> None:
            self.life = len(lives)
            lives.append(self.life)

        @hookimpl
        def register_tools(self) -> tuple[Tool, ...]:
            return (door.tool(), say("life", str(self.life)))

        @hookimpl
        async def plugin_stop(self) -> None:
            door.log.append(f"life {self.life} stopped")

    async with kernel_with(Plugin) as kit:
        answers: list[Any] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_into, answers, kit, "wait")
            await door.inside.wait()
            nursery.start_soon(kit.kernel.plugins.reload, "plugin")
            await eventually(lambda: states(kit.kernel)["plugin"] == "disabled")
            assert (await kit.call("life")).status == "refused"
            door.open.set()
        await kit.refresh()
        assert (await kit.call("life")).text == "1"
        assert [answer.text for answer in answers] == ["waited"]
        assert door.log == ["call ended", "life 0 stopped"]
    assert door.log[-1] == "life 1 stopped"


@pytest.mark.requirement("K7")
async def test_an_offer_made_before_a_reload_calls_the_new_plugins_tool() -> None:
    lives: list[int] = []

    class Plugin:
        def __init__(self) -> None:
            lives.append(len(lives))

        @hookimpl
        def register_tools(self) -> Tool:
            return say("life", str(lives[-1]))

    async with kernel_with(Plugin) as kit:
        await kit.kernel.plugins.reload("plugin")
        answer = await kit.call("life")
        assert (answer.status, answer.text) in (("completed", "1"), ("refused", answer.text))


@pytest.mark.requirement("K7")
async def test_calls_under_constant_change_each_end_once_and_on_a_plugin_that_is_there(
    make_plugin: MakePlugin, observer: Any
) -> None:
    class Watching(type(observer)):  # type: ignore[misc]
        NAME = "observer"

        def __new__(cls) -> Any:
            return observer

    running = 0

    def plugin(name: str) -> type[Any]:
        class Plugin:
            NAME = name

            def __init__(self) -> None:
                self.stopped = False

            @hookimpl
            def register_tools(self) -> Tool:
                async def work() -> str:
                    nonlocal running
                    running += 1
                    await trio.sleep(0.001)
                    running -= 1
                    assert not self.stopped
                    return "done"

                return tool(name=f"work_{name}", description="Work.", effect="read")(work)

            @hookimpl
            async def plugin_stop(self) -> None:
                self.stopped = True

        return Plugin

    async with kernel_with(Watching, plugin("a"), plugin("b")) as kit:

        async def change() -> None:
            for turn in range(12):
                name = "ab"[turn % 2]
                await kit.kernel.plugins.reload(name)
                await kit.kernel.plugins.disable(name)
                await kit.kernel.plugins.enable(name)

        async def call(number: int, answers: list[Any]) -> None:
            async with kit.kernel.session(session=f"s{number}") as session:
                request = session.request(principal=Principal("ann"))
                for _ in range(6):
                    offer = await session.offer(request)
                    answers += await offer.call([ToolCall("work_a"), ToolCall("work_b"), ToolCall("work_a")])

        answers: list[Any] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            for number in range(4):
                nursery.start_soon(call, number, answers)
        assert len(answers) == 4 * 6 * 3
        assert {answer.status for answer in answers} <= {"completed", "refused"}
        assert all("stopped" in one.text or "no tool" in one.text for one in answers if one.status == "refused")
        assert running == 0
        assert states(kit.kernel) == {"a": "active", "b": "active", "observer": "active"}
    observer.check()
    assert len(observer.lives()) == len(answers)


@pytest.mark.requirement("K7")
async def test_listeners_hear_of_every_change(make_plugin: MakePlugin) -> None:
    told: list[str] = []

    async def on_tools_changed(event: ToolsChanged) -> None:
        told.append(event.reason)

    listener = make_plugin(name="listener", hooks=[on_tools_changed])
    async with kernel_with(listener, make_plugin(say("word"), name="words")) as kit:
        for change, said in (
            (kit.kernel.plugins.disable, "disabled"),
            (kit.kernel.plugins.enable, "enabled"),
            (kit.kernel.plugins.reload, "reloaded"),
        ):
            told.clear()
            await change("words")
            await eventually(lambda said=said: any(said in text and "'words'" in text for text in told))


@pytest.mark.requirement("K7")
async def test_changing_what_is_already_so_changes_nothing(make_plugin: MakePlugin) -> None:
    doors = Door()
    async with kernel_with(make_plugin(say("word"), name="words", hooks=doors.hooks())) as kit:
        before = kit.kernel.generation
        assert (await kit.kernel.plugins.enable("words")).state == "active"
        assert kit.kernel.generation == before
        await kit.kernel.plugins.disable("words")
        first = await kit.kernel.plugins.disable("words")
        assert (first.state, first.remedy) == ("disabled", "toolkeel plugins enable words")
        assert doors.log == ["plugin started", "plugin stopped"]


@pytest.mark.requirement("K5", "K7")
async def test_disabling_a_quarantined_plugin_keeps_why_it_is_quarantined(make_plugin: MakePlugin) -> None:
    async with kernel_with(Misspelt, broken=True) as kit:
        info = await kit.kernel.plugins.disable("misspelt")
        assert info.state in ("quarantined", "disabled")
        if info.state == "quarantined":
            assert "regster_tools" in info.reason


@pytest.mark.requirement("K7")
@pytest.mark.parametrize("change", ["enable", "disable", "reload"])
async def test_a_plugin_that_was_not_found_is_named_with_those_that_were(make_plugin: MakePlugin, change: str) -> None:
    async with kernel_with(make_plugin(name="words")) as kit:
        with pytest.raises(PluginError) as caught:
            await getattr(kit.kernel.plugins, change)("word")
    assert "'word'" in caught.value.what
    assert "words" in caught.value.remedy


@pytest.mark.requirement("K7")
async def test_services_are_withdrawn_with_their_plugin_and_given_again(make_plugin: MakePlugin) -> None:
    plugin, _, _ = keeper()
    async with kernel_with(plugin) as kit:
        await kit.kernel.plugins.disable("keeper")
        with pytest.raises(ServiceMissing, match="Lamp"):
            kit.kernel.services.get(Lamp)
        await kit.kernel.plugins.enable("keeper")
        assert kit.kernel.services.get(Lamp).light() == "light"


@pytest.mark.requirement("K5")
async def test_two_plugins_that_give_one_service_are_a_conflict_that_names_both(make_plugin: MakePlugin) -> None:
    one, _, _ = keeper()

    class Rival(one):  # type: ignore[valid-type, misc]
        NAME = "rival"

    async with kernel_with(one, Rival, broken=True) as kit:
        info = info_of(kit.kernel, "rival")
        assert (info.state, info.stage) == ("quarantined", "start")
        assert "'keeper'" in info.reason
        assert "'rival'" in info.reason
        assert kit.kernel.services.get(Lamp).light() == "light"


@pytest.mark.requirement("K7")
async def test_a_refusal_by_a_plugin_that_was_reloaded_counts_once(make_plugin: MakePlugin) -> None:
    """The hooks of a reloaded plugin are there once: the old ones are gone."""
    asked: list[int] = []

    class Decider:
        @hookimpl
        async def authorize_tool_call(self, call: Any) -> Refuse:
            asked.append(id(self))
            return Refuse(Reason("not today"))

    async with kernel_with(Decider, make_plugin(say("word"))) as kit:
        for _ in range(3):
            await kit.kernel.plugins.reload("decider")
        assert "not today" in (await kit.call("word")).text
    assert len(asked) == 1


# Failures that stop nothing ----------------------------------------------------------------------------------------


@pytest.mark.requirement("K5")
async def test_failures_of_hooks_are_noted_with_their_plugin(
    make_plugin: MakePlugin, caplog: pytest.LogCaptureFixture
) -> None:
    async def pin_tools() -> None:
        raise OSError("no pins")

    async with kernel_with(make_plugin(say("word"), name="pins", hooks=[pin_tools])) as kit:
        for _ in range(30):
            await kit.refresh()
        assert info_of(kit.kernel, "pins").notes == ("pin_tools: OSError: no pins",)
        assert info_of(kit.kernel, "pins").state == "active"
    assert any(record.levelno == logging.WARNING and "no pins" in record.message for record in caplog.records)


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("give", [lambda: 5, lambda: ["x"], lambda: 1 / 0, yields_and_raises], ids=range(4))
async def test_wrong_skills_quarantine_their_plugin_and_the_others_skills_are_there(
    make_plugin: MakePlugin, give: Callable[[], Any]
) -> None:
    class Bad:
        @hookimpl
        def register_skills(self) -> Any:
            return give()

    class Good:
        @hookimpl
        def register_skills(self) -> Skill:
            return Skill("knots", "How to tie them.")

    async with kernel_with(Bad, Good) as kit:
        assert [skill.name for skill in await kit.session.skills()] == ["knots"]
        assert states(kit.kernel) == {"bad": "quarantined", "good": "active"}
        assert "register_skills" in info_of(kit.kernel, "bad").reason


@pytest.mark.requirement("K7")
async def test_a_section_is_free_again_once_its_plugin_is_disabled() -> None:
    class Rag(BaseModel):
        section: ClassVar[str] = "tools.rag"
        top_k: int = 10

    class First:
        Settings = Rag

    class Second:
        Settings = Rag

        def __init__(self, context: PluginContext) -> None:
            assert context.settings.top_k == 5

    settings = {"kernel": {"disable": ["second"]}, "tools": {"rag": {"top_k": 5}}}
    async with kernel_with(First, Second, settings=settings) as kit:
        await kit.kernel.plugins.disable("first")
        assert (await kit.kernel.plugins.enable("second")).state == "active"
        info = await kit.kernel.plugins.enable("first")
        assert (info.state, info.stage) == ("quarantined", "settings")
        assert "'second'" in info.reason


# Needs while running -----------------------------------------------------------------------------------------------


def needing(name: str, needs: Iterable[str]) -> Any:
    """A plugin given in code cannot say needs; the source that discovery would make of a package can."""
    from toolkeel.discovery import Source

    class Plugin:
        @hookimpl
        def register_tools(self) -> Tool:
            return say(name)

        @hookimpl
        async def plugin_start(self, context: PluginContext) -> None:
            if name == "upper":
                context.services.provide(Lamp, Lantern(), plugin=name)

    return Source(name, "package", f"acme-{name} 1.0", needs=tuple(needs), load=lambda: Plugin)


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    import toolkeel.discovery

    found: list[Any] = []
    monkeypatch.setattr(toolkeel.discovery, "entry_points", lambda: found)
    return found


@pytest.mark.requirement("K5", "K7")
async def test_disabling_a_plugin_takes_those_that_need_it_out_as_well(sources: list[Any], tmp_path: Path) -> None:
    sources += [needing("base", []), needing("upper", ["plugin:base"])]
    async with Kernel.open(Config.of({}, state_folder=tmp_path)) as kernel, kernel.session() as session:
        assert states(kernel) == {"base": "active", "upper": "active"}
        await kernel.plugins.disable("base")
        assert states(kernel)["upper"] == "quarantined"
        assert "'base'" in info_of(kernel, "upper").reason
        assert kernel.services.find(Lamp) is None
        assert await _names(session) == frozenset()


@pytest.mark.requirement("K5")
async def test_what_a_plugin_gave_before_its_need_broke_is_taken_back(sources: list[Any], tmp_path: Path) -> None:
    base = needing("base", [])

    class Breaks:
        @hookimpl
        async def plugin_start(self) -> None:
            raise OSError("no harbour")

    import msgspec

    sources += [msgspec.structs.replace(base, load=lambda: Breaks), needing("upper", ["plugin:base"])]
    async with Kernel.open(Config.of({}, state_folder=tmp_path)) as kernel, kernel.session() as session:
        assert states(kernel) == {"base": "quarantined", "upper": "quarantined"}
        assert kernel.services.find(Lamp) is None
        assert await _names(session) == frozenset()


async def _names(session: Session) -> frozenset[str]:
    return (await session.offer(session.request(principal=Principal("ann")))).names


# A plugin's context ------------------------------------------------------------------------------------------------


async def test_a_plugin_class_is_built_once_with_its_context() -> None:
    contexts: list[PluginContext] = []

    class Plugin:
        def __init__(self, context: PluginContext) -> None:
            contexts.append(context)

        @hookimpl
        async def plugin_start(self, context: PluginContext) -> None:
            contexts.append(context)

    async with kernel_with(Plugin) as kit, kit.kernel.session(session="other"):
        pass
    assert len(contexts) == 2
    context = contexts[0]
    assert context is contexts[1]
    assert (context.name, context.settings) == ("plugin", None)
    assert context.state_folder.parts[-2:] == ("plugins", "plugin")
    assert context.log.name == "toolkeel.plugin"
    assert abs(context.clock() - time.time()) < 60


def test_a_hookspec_declared_twice_in_one_place_is_refused() -> None:
    from toolkeel.hooks import Relay

    relay = Relay()
    relay.declare("one", Signals())
    with pytest.raises(DefinitionError, match="already declared by 'one'"):
        relay.declare("two", Signals())


async def test_a_plugins_own_hooks_are_called_with_their_failures_recorded() -> None:
    class Broken:
        @hookimpl
        def flags(self) -> str:
            raise OSError("torn")

    async with kernel_with(Declares, Broken, Zebra) as kit:
        assert (await kit.call("ask")).text == '[[["zebra","blue"]],"zebra"]'
        assert info_of(kit.kernel, "broken").notes == ("flags: OSError: torn",)


async def test_text_results_of_a_tool_that_stays_are_untouched_by_anothers_reload(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(say("stay"), name="stay"), make_plugin(say("go"), name="go")) as kit:
        before = kit.offer
        await kit.kernel.plugins.reload("go")
        [answer] = await before.call([ToolCall("stay")])
        assert answer.result == Text("stay")


@pytest.mark.requirement("K5")
async def test_a_workspace_file_cannot_put_a_guard_into_quarantine(tmp_path: Path) -> None:
    class Guard:
        class Settings(BaseModel):
            begins: int = 1

        @hookimpl
        async def authorize_tool_call(self) -> Refuse:
            return Refuse("never")

    (tmp_path / ".toolkeel").mkdir()
    for text in ("plugins: {guard: {begins: 3}}", "plugins: {guard: 3}", "plugins: {guard: {unknown: 3}}"):
        (tmp_path / ".toolkeel" / "config.yaml").write_text(text)
        config = Config.read(workspaces=[tmp_path], environ={"TOOLKEEL_HOME": str(tmp_path / "home")})
        with pytest.raises(SettingsError, match="guard"):
            async with Kernel.open(config, plugins=[Guard], discover=False):
                pytest.fail("the kernel opened")
