"""The kit that plugin authors test with."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolkeel import Config, Key, PluginContext, Principal, Scope, Tool, ToolContext, hookimpl, raw_tool, tool
from toolkeel.errors import PluginError, SettingsError
from toolkeel.testing import Fault, check_plugin, kernel_with


def nothing(arguments: Mapping[str, Any], scope: Scope) -> list[Key]:
    return []


@tool(effect="read", inline=True)
def who(context: ToolContext) -> str:
    """Say who asks."""
    scope = context.scope
    return f"{context.principal.name}/{context.principal.role} {scope.agent} {scope.session} {scope.channel}"


@tool(effect="write", writes=nothing)
async def double(number: int) -> int:
    """Double a number.

    Args:
        number: What to double.
    """
    return number * 2


class Good:
    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        return (who, double)


# A kernel with what a test hands it --------------------------------------------------------------------------------


async def test_the_kit_calls_a_tool_through_all_stages() -> None:
    async with kernel_with(Good) as kit:
        answer = await kit.call("double", number="21")
    assert (answer.status, answer.text, answer.id) == ("completed", "42", "call-1")
    assert answer.record.repairs


async def test_a_batch_comes_back_in_order_with_an_id_each() -> None:
    async with kernel_with(Good) as kit:
        answers = await kit.batch([("double", {"number": number}) for number in range(20)])
    assert [answer.text for answer in answers] == [str(number * 2) for number in range(20)]
    assert [answer.id for answer in answers] == [f"call-{number}" for number in range(1, 21)]


async def test_the_session_is_as_the_test_says_and_by_default_an_administrators() -> None:
    async with kernel_with(Good) as kit:
        assert (await kit.call("who")).text == "tester/admin main test test"
    asked = Principal("ann", "user")
    async with kernel_with(Good, principal=asked, agent="bosun", session="s", channel="cli", message="hi") as kit:
        assert (await kit.call("who")).text == "ann/user bosun s cli"
        assert kit.offer.request.message == "hi"
        assert (await kit.refresh("again")).request.message == "again"
        assert kit.offer.request.principal == asked


async def test_workspaces_and_settings_reach_the_plugin(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Lookout:
        class Settings(BaseModel):
            height: int = 10

        def __init__(self, context: PluginContext) -> None:
            seen.append((context.settings, context.state_folder.is_relative_to(Path.home() / ".toolkeel")))

        @hookimpl
        def register_tools(self, scope: Scope) -> None:
            seen.append(scope.workspaces)

    settings = {"plugins": {"lookout": {"height": 20}}}
    async with kernel_with(Lookout, settings=settings, workspaces=[tmp_path]):
        pass
    assert seen[0][0].height == 20
    assert seen[0][1] is False
    assert seen[1] == (tmp_path.resolve(),)


async def test_a_kit_reads_no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLKEEL_KERNEL__WORKERS", "3")
    async with kernel_with(Good) as kit:
        assert kit.kernel.settings.workers == 8


async def test_a_plugin_that_is_quarantined_fails_the_test_with_its_reason_unless_that_is_expected() -> None:
    class Bad:
        @hookimpl
        def regster_tools(self) -> None: ...

    with pytest.raises(PluginError) as caught:
        async with kernel_with(Bad):
            pass
    assert "regster_tools" in caught.value.what
    assert "'bad'" in caught.value.where
    assert "register_tools" in caught.value.remedy
    async with kernel_with(Bad, broken=True) as kit:
        assert kit.offer.tools == ()


async def test_a_factory_that_fails_fails_the_test_too() -> None:
    class Bad:
        @hookimpl
        def register_tools(self) -> None:
            raise OSError("no harbour")

    with pytest.raises(PluginError, match="no harbour"):
        async with kernel_with(Bad):
            pass


@pytest.mark.parametrize("error", [ValueError("plain"), KeyError("x"), SystemExit(3), ExceptionGroup("g", [OSError()])])
async def test_what_a_test_raises_comes_out_as_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        async with kernel_with(Good):
            raise error
    assert repr(caught.value) == repr(error)


async def test_a_wrong_setting_comes_out_as_it_is() -> None:
    with pytest.raises(SettingsError, match="kernal"):
        async with kernel_with(Good, settings={"kernal": {}}):
            pass


async def test_two_kits_do_not_share_anything() -> None:
    async with kernel_with(Good) as one, kernel_with(Good) as other:
        await one.kernel.plugins.disable("good")
        assert (await other.call("double", number=1)).text == "2"
        assert one.kernel.config.state_folder != other.kernel.config.state_folder
        folder = one.kernel.config.state_folder
        assert isinstance(one.kernel.config, Config)
        assert folder.is_dir()
    assert not folder.exists()


# Checks of a plugin ------------------------------------------------------------------------------------------------


async def faults(*tools: Tool, **more: Any) -> list[Fault]:
    class Plugin:
        @hookimpl
        def register_tools(self) -> tuple[Tool, ...]:
            return tools

    return await check_plugin(Plugin, **more)


async def echo(arguments: Mapping[str, Any], context: ToolContext) -> object:
    return dict(arguments)


def described(**schema: Any) -> dict[str, Any]:
    return {"type": "object", **schema}


async def test_a_good_plugin_has_no_faults() -> None:
    assert await check_plugin(Good) == []


CHECKS: dict[str, Tool] = {
    "TK101": raw_tool("t", "  ", described(), echo, effect="read"),
    "TK101 long": raw_tool("t", "x" * 2_049, described(), echo, effect="read"),
    "TK102": raw_tool("t", "d", described(properties={"a": {"type": "string"}}), echo, effect="read"),
    "TK102 bare": raw_tool("t", "d", described(properties={"a": True}), echo, effect="read"),
    "TK103": raw_tool("läuft", "d", described(), echo, effect="read"),
    "TK103 long": raw_tool("t" * 65, "d", described(), echo, effect="read"),
    "TK103 dot": raw_tool("a.b", "d", described(), echo, effect="read"),
    "TK104": raw_tool("t", "d", described(required=5), echo, effect="read"),
    "TK105": raw_tool("t", "d", described(), echo, effect="write"),
}


@pytest.mark.parametrize(("code", "made"), CHECKS.items(), ids=CHECKS)
async def test_a_fault_has_its_code_its_place_and_what_is_wrong(code: str, made: Tool) -> None:
    [fault] = await faults(made)
    assert fault.code == code[:5]
    assert made.name in fault.where
    assert fault.what


async def test_all_faults_come_at_once() -> None:
    bad = raw_tool("a.b", "", described(properties={"x": {}, "y": {}}), echo)
    assert [fault.code for fault in await faults(bad)] == ["TK101", "TK102", "TK102", "TK103", "TK105"]


async def test_a_plugin_that_is_quarantined_is_a_fault_with_its_remedy() -> None:
    class Bad:
        @hookimpl
        def regster_tools(self) -> None: ...

    [fault] = await check_plugin(Bad)
    assert (fault.code, fault.where) == ("TK001", "bad")
    assert "regster_tools" in fault.what
    assert "register_tools" in fault.remedy


async def test_a_factory_that_makes_new_tools_each_time_is_a_fault() -> None:
    class Wasteful:
        @hookimpl
        def register_tools(self) -> Tool:
            return raw_tool("t", "d", described(), echo, effect="read")

    [fault] = await check_plugin(Wasteful)
    assert (fault.code, fault.where) == ("TK002", "wasteful")


async def test_a_factory_that_fails_is_a_fault() -> None:
    class Bad:
        @hookimpl
        def register_tools(self) -> Tool:
            raise OSError("no harbour")

    [fault] = await check_plugin(Bad)
    assert fault.code == "TK001"
    assert "no harbour" in fault.what


async def test_a_plugin_is_checked_with_settings() -> None:
    class Strict:
        class Settings(BaseModel):
            path: str

        @hookimpl
        def register_tools(self) -> None: ...

    assert [fault.code for fault in await check_plugin(Strict)] == ["TK001"]
    assert await check_plugin(Strict, settings={"plugins": {"strict": {"path": "/"}}}) == []


# The pytest plugin -------------------------------------------------------------------------------------------------

TESTS = """
import pytest
import trio
import trio.testing

async def test_under_trio():
    await trio.lowlevel.checkpoint()

@pytest.fixture
def clock():
    return trio.testing.MockClock(autojump_threshold=0)

async def test_with_a_clock(clock):
    began = trio.current_time()
    await trio.sleep(3600)
    assert trio.current_time() - began >= 3600

@pytest.mark.parametrize("number", [1, 2])
async def test_with_a_parameter(number, tmp_path):
    assert tmp_path.is_dir() and number

async def test_that_fails():
    await trio.lowlevel.checkpoint()
    assert False, "as it should"

class TestClass:
    async def test_method(self):
        await trio.lowlevel.checkpoint()

def test_plain():
    pass

async def test_that_hangs():
    import toolkeel.testing.plugin
    await trio.sleep_forever()
"""


def test_async_tests_run_under_trio_each_with_a_bound(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("import toolkeel.testing.plugin\ntoolkeel.testing.plugin.BOUND = 0.5\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    assert "as it should" in done.stdout
    assert "the test did not end" in done.stdout
