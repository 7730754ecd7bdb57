"""The hooks as such: their contracts, their order, their verbs, and plugins that implement them wrongly."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pluggy
import pytest
import trio
from trio.testing import MockClock

from toolkeel import Call, PluginContext, PluginInfo, Spilled, hookimpl, hookspec, hookspecs, tool
from toolkeel.hookspecs import Contract
from toolkeel.testing import Kit, kernel_with

MakePlugin = Callable[..., ModuleType]
CONTRACTS: dict[str, Contract] = {
    name: function.toolkeel_contract
    for name, function in vars(hookspecs).items()
    if hasattr(function, "toolkeel_contract")
}


@tool(effect="read", inline=True)
def work() -> str:
    """Work."""
    return "done"


def info(kit: Kit, name: str) -> PluginInfo:
    [found] = [plugin for plugin in kit.kernel.plugins.list() if plugin.name == name]
    return found


# Contracts ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K3")
@pytest.mark.parametrize("name", CONTRACTS)
def test_every_hook_says_its_contract(name: str) -> None:
    contract = CONTRACTS[name]
    function = getattr(hookspecs, name)
    text = inspect.getdoc(function) or ""
    assert text.partition("\n")[0].endswith("."), "the first line is one sentence"
    assert "Since 1." in text
    for parameter in contract.parameters:
        assert f"    {parameter}: " in text, f"{parameter} is not described"
    if contract.verb not in ("notify",):
        assert "Returns:" in text
    assert contract.asynchronous == inspect.iscoroutinefunction(function)


@pytest.mark.requirement("K3")
async def test_the_kernel_lists_every_hook(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(work)) as kit:
        assert kit.kernel.contracts == CONTRACTS
    families = {
        "register_tools": "collect",
        "register_skills": "collect",
        "on_tool_call_end": "notify",
        "select_tools": "serve",
        "spill_result": "serve",
    }
    assert {name: CONTRACTS[name].verb for name in families} == families


@pytest.mark.requirement("K14")
def test_the_lifecycle_has_its_fourteen_events() -> None:
    assert len([name for name in CONTRACTS if name.startswith("on_")]) == 14


# Implementations ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("name", CONTRACTS)
async def test_an_implementation_of_the_wrong_colour_is_quarantined(make_plugin: MakePlugin, name: str) -> None:
    def plain() -> None: ...

    async def colourful() -> None: ...

    function = plain if CONTRACTS[name].asynchronous else colourful
    function.__name__ = name
    async with kernel_with(make_plugin(work), make_plugin(name="wrong", hooks=[function]), broken=True) as kit:
        wrong = info(kit, "wrong")
        assert (await kit.call("work")).text == "done"
    assert (wrong.state, wrong.stage) == ("quarantined", "hooks")
    due = "async def" if CONTRACTS[name].asynchronous else "a plain def"
    assert wrong.reason == f"{name} must be {due}"
    keyword = "async def" if CONTRACTS[name].asynchronous else "def"
    assert wrong.remedy == f"Write `{keyword} {name}`"


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("option", ["tryfirst", "trylast", "wrapper", "hookwrapper"])
async def test_order_comes_from_priorities_alone(make_plugin: MakePlugin, option: str) -> None:
    def withhold_tools() -> Any:
        yield

    module = make_plugin(name="pushy")
    module.withhold_tools = hookimpl(**{option: True})(withhold_tools)  # type: ignore[attr-defined,call-overload]
    async with kernel_with(make_plugin(work), module, broken=True) as kit:
        pushy = info(kit, "pushy")
        assert (await kit.call("work")).text == "done"
    assert (pushy.state, pushy.stage) == ("quarantined", "hooks")
    assert option in pushy.reason
    assert "PRIORITY" in pushy.remedy


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    ("name", "remedy"), [("authorise_tool_call", "Did you mean 'authorize_tool_call'?"), ("qqq", "optionalhook=True")]
)
async def test_an_unknown_hook_is_quarantined_with_the_nearest_name(
    make_plugin: MakePlugin, name: str, remedy: str
) -> None:
    async def function() -> None: ...

    function.__name__ = name
    async with kernel_with(make_plugin(work), make_plugin(name="typo", hooks=[function]), broken=True) as kit:
        typo = info(kit, "typo")
        assert (await kit.call("work")).text == "done"
    assert (typo.state, typo.stage) == ("quarantined", "hooks")
    assert name in typo.reason
    assert remedy in typo.remedy


@pytest.mark.requirement("K5")
async def test_an_unknown_parameter_is_quarantined(make_plugin: MakePlugin) -> None:
    async def authorize_tool_call(call: Call, mood: str) -> None: ...

    guard = make_plugin(name="guard", hooks=[authorize_tool_call])
    async with kernel_with(make_plugin(work), guard, broken=True) as kit:
        found = info(kit, "guard")
        assert (await kit.call("work")).text == "done"
    assert (found.state, found.stage) == ("quarantined", "hooks")
    assert "mood" in found.reason


async def test_an_implementation_takes_the_parameters_that_it_needs_in_any_order(make_plugin: MakePlugin) -> None:
    seen: list[Any] = []

    async def around_tool_call(call_next: Any, call: Call) -> Any:
        seen.append(call.tool.name)
        return await call_next()

    async def authorize_tool_call() -> None:
        seen.append("authorize")

    async def on_tool_call_end() -> None:
        seen.append("end")

    def withhold_tools(request: Any) -> None:
        seen.append(request.message)

    hooks = [around_tool_call, authorize_tool_call, on_tool_call_end, withhold_tools]
    async with kernel_with(make_plugin(work, hooks=hooks), message="hello") as kit:
        assert (await kit.call("work")).text == "done"
    assert seen == ["hello", "authorize", "work", "end"]


@pytest.mark.requirement("K6")
async def test_order_is_priority_then_name_and_an_operator_has_the_last_word(make_plugin: MakePlugin) -> None:
    seen: list[str] = []

    def plugin(name: str, priority: int) -> ModuleType:
        def withhold_tools() -> None:
            seen.append(name)

        return make_plugin(name=name, priority=priority, hooks=[withhold_tools])

    plugins = [plugin("d", 1), plugin("c", 50), plugin("b", 100), plugin("a", 100)]
    async with kernel_with(*plugins):
        assert seen == ["d", "c", "a", "b"]
        seen.clear()
    async with kernel_with(*plugins, settings={"kernel": {"priority": {"d": 101, "b": -5}}}):
        assert seen == ["b", "c", "a", "d"]


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("priority", ["first", None, True, 1.5])
async def test_a_priority_that_is_no_integer_is_quarantined(make_plugin: MakePlugin, priority: Any) -> None:
    async with kernel_with(make_plugin(work), make_plugin(name="odd", priority=priority), broken=True) as kit:
        assert info(kit, "odd").state == "quarantined"
        assert "PRIORITY" in info(kit, "odd").reason


async def test_of_an_exclusive_hook_one_plugin_is_heard(make_plugin: MakePlugin) -> None:
    def spiller(name: str) -> ModuleType:
        async def spill_result(content: bytes) -> Any:
            return Spilled(f"stored by {name}", name, len(content))

        return make_plugin(name=name, hooks=[spill_result])

    @tool(effect="read", spill="always")
    async def large() -> str:
        """Give something."""
        return "x"

    plugins = [make_plugin(large), spiller("a"), spiller("b")]
    async with kernel_with(*plugins) as kit:
        assert (await kit.call("large")).ref == "a"
    async with kernel_with(*plugins, settings={"spiller": "b"}) as kit:
        assert (await kit.call("large")).ref == "b"
        await kit.kernel.plugins.disable("b")
        await kit.refresh()
        assert (await kit.call("large")).ref == "", "the kernel's plain answer, not somebody else's"
        assert any("spiller" in line and "'b'" in line for line in kit.kernel.diagnostics())


# Hooks of plugins --------------------------------------------------------------------------------------------------


class Specs:
    """What a plugin declares for others."""

    @staticmethod
    @hookspec("collect")
    def menu_items(place: str, limit: int) -> str | None:
        """Give a menu item."""

    @staticmethod
    @hookspec("collect")
    async def slow_items(place: str) -> str | None:
        """Give a menu item after a while."""

    @staticmethod
    @hookspec("serve")
    def first_item(place: str) -> str | None:
        """Give the one item."""

    @staticmethod
    @hookspec("serve")
    async def slow_first(place: str) -> str | None:
        """Give the one item after a while."""

    @staticmethod
    @hookspec("notify")
    async def on_menu(place: str) -> None:
        """Hear of it."""


class Menu:
    """A plugin that calls the hooks that it declares."""

    NAME = "menu"
    PRIORITY = 10

    def __init__(self, context: PluginContext) -> None:
        self.hooks = context.hooks

    @hookimpl
    def declare_hookspecs(self) -> object:
        return Specs

    @hookimpl
    def register_tools(self) -> Any:
        hooks = self.hooks

        @tool(effect="read")
        async def menu() -> Any:
            """Show the menu."""
            await hooks.notify("on_menu", "top")
            return {
                "items": hooks.collect("menu_items", "top", 3),
                "slow": await hooks.collect_async("slow_items", "top"),
                "first": hooks.serve("first_item", "top"),
                "slow first": await hooks.serve_async("slow_first", "top"),
            }

        return menu


@pytest.mark.requirement("K3")
async def test_a_plugin_declares_hooks_that_others_implement(make_plugin: MakePlugin, clock: MockClock) -> None:
    heard: list[str] = []

    def implementing(name: str, answer: Any) -> ModuleType:
        def give(place: str) -> Any:
            if isinstance(answer, BaseException):
                raise answer
            return f"{answer} at {place}" if answer else None

        def menu_items(place: str) -> Any:
            return give(place)

        async def slow_items(place: str) -> Any:
            if answer == "hang":
                clock.jump(6)
                await trio.sleep_forever()
            return give(place)

        def first_item(place: str) -> Any:
            return give(place)

        async def slow_first(place: str) -> Any:
            return give(place)

        async def on_menu(place: str) -> None:
            heard.append(f"{name} {place}")
            if isinstance(answer, BaseException):
                raise answer

        return make_plugin(name=name, hooks=[menu_items, slow_items, first_item, slow_first, on_menu])

    plugins = [
        implementing("a_silent", None),
        implementing("b_broken", ValueError("no kitchen")),
        implementing("c_exits", SystemExit(2)),
        implementing("d_tea", "tea"),
        implementing("e_cake", "cake"),
        implementing("f_hangs", "hang"),
    ]
    async with kernel_with(Menu, *plugins) as kit:
        answer = await kit.call("menu")
        notes = {plugin.name: plugin.notes for plugin in kit.kernel.plugins.list()}
        outside = await kit.kernel.hooks_for("slow_items", "outside")
        assert set(kit.kernel.contracts) == {
            *CONTRACTS,
            "menu_items",
            "slow_items",
            "first_item",
            "slow_first",
            "on_menu",
        }
    both = [["d_tea", "tea at top"], ["e_cake", "cake at top"]]
    assert answer.result.value == {  # type: ignore[union-attr]
        "items": [*map(tuple, both), ("f_hangs", "hang at top")],
        "slow": [*map(tuple, both)],
        "first": "tea at top",
        "slow first": "tea at top",
    }
    assert heard == [f"{name} top" for name in ("a_silent", "b_broken", "c_exits", "d_tea", "e_cake", "f_hangs")]
    assert outside == [("d_tea", "tea at outside"), ("e_cake", "cake at outside")]
    assert any("no kitchen" in note for note in notes["b_broken"])
    assert any("SystemExit" in note for note in notes["c_exits"])
    assert any("slow_items: no answer within 5 s" in note for note in notes["f_hangs"])
    assert notes["d_tea"] == ()


@pytest.mark.requirement("K3")
async def test_a_hook_of_an_absent_plugin_may_be_implemented_as_optional(make_plugin: MakePlugin) -> None:
    module = make_plugin(work, name="guest")

    def menu_items(place: str) -> str:
        return "guest"

    module.menu_items = hookimpl(optionalhook=True)(menu_items)  # type: ignore[attr-defined,call-overload]
    async with kernel_with(module) as kit:
        assert info(kit, "guest").state == "active"
        assert (await kit.call("work")).text == "done"
    async with kernel_with(module, Menu) as kit:
        assert kit.kernel.caller.collect("menu_items", "top", 1) == [("guest", "guest")]


@pytest.mark.requirement("K5")
async def test_two_plugins_that_declare_one_hook_are_told_of_each_other(make_plugin: MakePlugin) -> None:
    class Other:
        NAME = "other"

        @hookimpl
        def declare_hookspecs(self) -> object:
            return Specs

    async with kernel_with(Menu, Other, make_plugin(work), broken=True) as kit:
        other = info(kit, "other")
        assert (await kit.call("menu")).status == "completed"
    assert (other.state, other.stage) == ("quarantined", "hooks")
    assert "'menu'" in other.reason


@pytest.mark.requirement("K5")
async def test_a_plugin_cannot_declare_a_hook_of_the_kernels(make_plugin: MakePlugin) -> None:
    class Thief:
        NAME = "thief"

        @hookimpl
        def declare_hookspecs(self) -> object:
            return hookspecs

    async with kernel_with(Thief, make_plugin(work), broken=True) as kit:
        thief = info(kit, "thief")
        assert (await kit.call("work")).text == "done"
    assert (thief.state, thief.stage) == ("quarantined", "hooks")
    assert "'kernel'" in thief.reason


def test_a_hookspec_is_pluggys_own() -> None:
    manager = pluggy.PluginManager("toolkeel")
    manager.add_hookspecs(hookspecs)
    assert {hook for hook in CONTRACTS if hasattr(manager.hook, hook)} == set(CONTRACTS)


async def test_a_hook_that_returns_a_coroutine_where_none_is_due_is_a_wrong_type(make_plugin: MakePlugin) -> None:
    class Awaitable:
        def __await__(self) -> Any:
            yield

    def withhold_tools() -> Any:
        return Awaitable()

    async with kernel_with(make_plugin(work), make_plugin(name="odd", hooks=[withhold_tools])) as kit:
        answer = await kit.call("work")
    assert answer.status == "refused"
    assert "every tool is withheld" in answer.text
    assert "'odd'" in answer.text
