"""Every snippet that the docs show runs, and does what its page says."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from toolkeel import Kernel, Principal, hookimpl, hookspecs
from toolkeel.config import Config
from toolkeel.discovery import NEEDS, Source, missing_need
from toolkeel.manifest import PluginManifest, read_manifest
from toolkeel.settings import KernelSettings
from toolkeel.testing import check_plugin, kernel_with
from toolkeel_cli import wire

Shell = Callable[..., str]

DOCS = Path(__file__).resolve().parent.parent / "docs"
SNIPPETS = DOCS / "snippets"


def snippet(name: str) -> ModuleType:
    """A module of docs/snippets, imported anew."""
    path = SNIPPETS / name
    if path.is_dir():
        spec = importlib.util.spec_from_file_location(
            name, path / "__init__.py", submodule_search_locations=[str(path)]
        )
    else:
        spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def giving(tools: tuple[Any, ...]) -> type:
    """A plugin that gives these tools."""

    class Giving:
        NAME = "giving"

        @hookimpl
        def register_tools(self) -> tuple[Any, ...]:
            return tools

    return Giving


# Plugins --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hour", "status"), [(23, "refused"), (5, "refused"), (6, "completed"), (21, "completed")])
async def test_the_night_watch_refuses_writes_at_night(hour: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, rooms = snippet("night_watch.py"), snippet("room_tools.py")
    monkeypatch.setattr(module.time, "localtime", lambda _seconds: time.gmtime(hour * 3600))
    async with kernel_with(module.NightWatch, giving(rooms.TOOLS)) as kit:
        answer = await kit.call("room_book", room="4.12", who="Ann")
        assert answer.status == status
        assert (await kit.call("room_bookings", room="4.12")).status == "completed"
        if status == "refused":
            assert answer.record.setting == "plugins.nightwatch"
            assert "between 22:00 and 6:00" in answer.text


async def test_the_stopwatch_logs_each_tool(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="stopwatch")
    async with kernel_with(snippet("stopwatch.py"), giving(snippet("room_tools.py").TOOLS)) as kit:
        await kit.call("room_bookings", room="4.12")
    assert re.search(r"room_bookings took \d+\.\d ms", caplog.text)


async def test_a_plugins_own_hook_collects_what_others_say() -> None:
    snippet("greetings")
    plugin = importlib.import_module("greetings.plugin")

    class Polite:
        @staticmethod
        @hookimpl(optionalhook=True)
        def greeting_words(name: str) -> str:
            return f"How are you, {name}?"

    async with kernel_with(plugin.Greetings, Polite) as kit:
        assert (await kit.call("greet", name="Ann")).text == "Hello, Ann! How are you, Ann?"
    async with kernel_with(Polite) as kit:
        assert [info.state for info in kit.kernel.plugins.list()] == ["active"]


async def test_the_room_tools_do_what_the_page_says() -> None:
    rooms = snippet("room_tools.py")
    async with kernel_with(giving(rooms.TOOLS)) as kit:
        answers = await kit.batch(
            [
                ("room_book", {"room": "4.12", "who": "Ann"}),
                ("room_bookings", {"room": "4.12"}),
                ("room_cancel", {"room": "4.12", "who": "Bob"}),
                ("room_cancel", {"room": "4.12", "who": "Ann"}),
                ("room_import", {"lines": ["4.13 Cem", "4.13 Dag"]}),
                ("room_counts", {"rooms": ["4.12", "4.13"]}),
            ]
        )
    assert [answer.status for answer in answers] == ["completed"] * 2 + ["failed"] + ["completed"] * 3
    assert "morning: Ann" in answers[1].text
    assert "room_bookings lists who has" in answers[2].text
    assert json.loads(answers[5].text) == {"4.12": 0, "4.13": 2}
    assert await check_plugin(giving(rooms.TOOLS)) == []


async def test_a_service_is_given_and_used() -> None:
    module = snippet("services.py")
    async with kernel_with(module.Giver, module.User) as kit:
        assert (await kit.call("phone_number", name="Ann")).text == "23"
    async with kernel_with(module.User) as kit:
        answer = await kit.call("phone_number", name="Ann")
        assert answer.status == "failed"
        assert "PhoneBook" in answer.text


def test_the_shown_tests_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "test_heartbeat.py"], cwd=SNIPPETS, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout


async def test_plugins_take_turns() -> None:
    module = snippet("switching.py")
    async with kernel_with(snippet("services.py").Giver) as kit:
        assert await module.take_turns(kit.kernel, "giver") == ["disabled", "active", "active"]


def test_the_program_that_embeds_the_kernel_runs(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Short\n")
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, SNIPPETS / "embed.py"],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "file_read" in done.stdout.splitlines()[0]
    assert "call_1 completed" in done.stdout
    assert "# Short" in done.stdout
    assert "call_2 completed 42" in done.stdout


@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_the_forms_in_the_docs_say_what_the_commands_say(form: wire.Form) -> None:
    module, rooms = snippet(f"{form}_form.py"), snippet("room_tools.py")
    message = MESSAGES[form]
    async with kernel_with(giving(rooms.TOOLS)) as kit:
        assert module.tools_of(kit.offer) == wire.tool_list(kit.offer.json(), form)[0]
        answers = await kit.offer.call(module.calls_of(message))
    assert [answer.status for answer in answers] == ["completed", "failed"]
    written = wire.write_results(wire.read_response(json.dumps(message).encode()), answers)
    assert without_false(module.messages_of(answers)) == written
    assert module.calls_of({"content": [], "tool_calls": None}) == module.messages_of([]) == []


ROOM, NOBODY = {"room": "4.12", "who": "Ann"}, {"room": "4.12", "who": "Bob"}
CALLS = [("a", "room_book", ROOM), ("b", "room_cancel", NOBODY)]
MESSAGES: dict[str, dict[str, object]] = {
    "openai": {
        "role": "assistant",
        "tool_calls": [
            {"type": "function", "id": call, "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call, name, arguments in CALLS
        ],
    },
    "anthropic": {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "One moment."},
            *({"type": "tool_use", "id": call, "name": name, "input": arguments} for call, name, arguments in CALLS),
        ],
    },
}


def without_false(value: Any) -> Any:
    """``is_error`` may be left out where it is false, which is the same to the API."""
    if isinstance(value, list):
        return [without_false(item) for item in value]
    if isinstance(value, dict):
        return {key: without_false(item) for key, item in value.items() if item is not False}
    return value


def test_a_plugins_command_is_one_of_toolkeel(shell: Shell, tmp_path: Path) -> None:
    information = tmp_path / "toolkeel_house-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: toolkeel-house\nVersion: 0.1.0\n")
    (information / "entry_points.txt").write_text("[toolkeel]\nhouse = toolkeel_house.plugin\n")
    place: dict[str, Any] = {"folder": tmp_path, "home": tmp_path, "PYTHONPATH": f"{tmp_path}{os.pathsep}{SNIPPETS}"}
    assert "Show who is in the house" in shell("toolkeel --help", **place)
    assert shell("toolkeel house upper", **place) == "Bob\nCem\n"
    assert json.loads(shell("toolkeel house --json", **place)) == ["Ann"]
    assert "remedy: There are: ground, upper" in shell("toolkeel house cellar", fails=True, **place)


def test_a_program_on_asyncio_calls_tools(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [sys.executable, SNIPPETS / "beside_asyncio.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("call_1 42\n", 0), done.stderr
    (tmp_path / ".toolkeel").mkdir()
    (tmp_path / ".toolkeel" / "config.yaml").write_text("kernel: {time_limt: 5}\n")
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "kernel.time_limt" in done.stderr


def test_the_needs_in_the_docs_are_needs_that_the_kernel_reads() -> None:
    table = tomllib.loads((SNIPPETS / "needs.toml").read_text())["project"]["entry-points"][NEEDS]
    source = Source("weather", "package", "toolkeel-weather", needs=tuple(table.values()))
    assert missing_need(source, hookspecs.API_VERSION, lambda name: name == "outputs") is None
    assert {name.partition(".")[0] for name in table} == {"weather"}


# Manifests ------------------------------------------------------------------------------------------------------------


def test_the_manifest_in_the_docs_is_one_that_the_kernel_runs(tmp_path: Path) -> None:
    place = tmp_path / "extensions" / "greeter"
    shutil.copytree(SNIPPETS / "manifest", place)
    manifest = read_manifest(place)
    assert manifest is not None
    assert manifest.id == "greeter"
    written = json.loads((place / "plugin.json").read_text(encoding="utf-8"))
    assert set(written) == set(PluginManifest.model_fields), "the example shows every field"


@pytest.mark.requirement("K4")
async def test_the_plugin_folder_in_the_docs_runs_once_it_is_enabled_by_its_hash(tmp_path: Path) -> None:
    shutil.copytree(SNIPPETS / "manifest", tmp_path / "extensions" / "greeter")
    only = {"kernel": {"only": ["greeter", "basics"]}}
    async with Kernel.open(Config.of(only, state_folder=tmp_path)) as kernel:
        (listed,) = [info for info in kernel.plugins.list() if info.name == "greeter"]
        assert (listed.state, f"--hash {listed.digest}" in listed.remedy) == ("listed", True)
    enabled = {"kernel": {**only["kernel"], "enable": {"greeter": listed.digest}}}
    async with Kernel.open(Config.of(enabled, state_folder=tmp_path)) as kernel, kernel.session() as session:
        offer = await session.offer(session.request(principal=Principal("ann", "admin")))
        assert "greet" in {tool.name for tool in offer.tools}


# Settings ----------------------------------------------------------------------------------------------------------


async def test_the_settings_in_the_docs_are_taken(tmp_path: Path) -> None:
    shutil.copy(SNIPPETS / "config.yaml", tmp_path / "config.yaml")
    config = Config.read(environ={"TOOLKEEL_HOME": str(tmp_path)})
    assert config.section("kernel", KernelSettings).workers == 8
    async with Kernel.open(config) as kernel:
        assert [info.state for info in kernel.plugins.list() if info.name in ("files", "outputs")] == ["active"] * 2
        assert {info.name: info.priority for info in kernel.plugins.list()}["outputs"] == 200


def test_the_error_in_the_docs_is_the_one_that_a_wrong_key_gives(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / ".toolkeel").mkdir()
    (tmp_path / ".toolkeel" / "config.yaml").write_text("kernel:\n  time_limt: 5\n")
    printed = shell("toolkeel tools", folder=tmp_path, home=tmp_path, fails=True)
    shown = (SNIPPETS / "wrong_key.txt").read_text(encoding="utf-8")
    assert printed.strip().replace(str(tmp_path), "~") == shown.strip()


async def test_a_mistake_in_a_plugins_section_stops_that_plugin_alone(tmp_path: Path) -> None:
    config = Config.of({"plugins": {"outputs": {"preview_char": 5}}}, state_folder=tmp_path)
    async with Kernel.open(config) as kernel:
        infos = {info.name: info for info in kernel.plugins.list()}
    assert (infos["outputs"].state, infos["files"].state) == ("quarantined", "active")
    assert "preview_chars" in f"{infos['outputs'].reason} {infos['outputs'].remedy}"


def test_the_environment_variable_in_the_docs_sets_what_it_says(tmp_path: Path) -> None:
    page = (DOCS / "run" / "configuration.md").read_text(encoding="utf-8")
    (assignment,) = re.findall(r"`(TOOLKEEL_KERNEL__\w+=\d+)`", page)
    name, _, value = assignment.partition("=")
    config = Config.read(environ={"TOOLKEEL_HOME": str(tmp_path), name: value})
    assert config.section("kernel", KernelSettings).time_limit == float(value)


def test_settings_files_in_the_docs_are_yaml() -> None:
    for path in SNIPPETS.rglob("*.yaml"):
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)
