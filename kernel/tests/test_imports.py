"""`import toolkeel` stays light, and what is heavy is imported where it is first needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "jsonschema_rs",
    "stevedore",
    "yaml",
    "sqlglot",
    "jinja2",
    "httpx",
    "httpx2",
    "starlette",
    "sqlalchemy",
    "typer",
    "rich",
    "pytest",
    "hypothesis",
    "asyncio",
)


def imported(code: str, home: Path) -> set[str]:
    """The modules that are there after some code ran in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"HOME": str(home), "TOOLKEEL_HOME": str(home), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.requirement("K17")
def test_importing_toolkeel_imports_nothing_heavy(tmp_path: Path) -> None:
    there = imported("import toolkeel", tmp_path)
    assert not there & {*HEAVY, "toolkeel.kernel", "toolkeel.validate", "toolkeel.testing"}
    assert not {name for name in there if name.startswith("toolkeel_")}


@pytest.mark.requirement("K17")
def test_the_whole_kernel_imports_no_plugin_and_nothing_heavy(tmp_path: Path) -> None:
    there = imported("import toolkeel\nfrom toolkeel import *\nassert Kernel and Config", tmp_path)
    assert "toolkeel.kernel" in there
    assert not there & set(HEAVY)
    assert not {name for name in there if name.startswith("toolkeel_")}


@pytest.mark.requirement("K17")
def test_a_kernel_that_runs_a_typed_tool_needs_no_validator_of_raw_schemas(tmp_path: Path) -> None:
    code = """
import trio
from types import ModuleType
from toolkeel import Config, Kernel, Principal, ToolCall, hookimpl, tool
@tool(effect="read", inline=True)
def word(text: str) -> str: return text
def register_tools(): return word
module = ModuleType("words"); module.register_tools = hookimpl(register_tools)
async def main():
    async with Kernel.open(Config.of({}), plugins=[module], discover=False) as kernel, kernel.session() as session:
        offer = await session.offer(session.request(principal=Principal("ann")))
        [answer] = await offer.call([ToolCall("word", {"text": "ahoy"})])
        assert answer.text == "ahoy", answer
trio.run(main)
"""
    assert not imported(code, tmp_path) & set(HEAVY)


@pytest.mark.requirement("K17")
def test_looking_for_plugins_imports_none_of_those_that_are_disabled(tmp_path: Path) -> None:
    code = """
import trio
from toolkeel import Config, Kernel
async def main():
    async with Kernel.open(Config.of({"kernel": {"only": []}})) as kernel:
        assert all(info.state != "active" for info in kernel.plugins.list())
trio.run(main)
"""
    there = imported(code, tmp_path)
    assert not {name for name in there if name.startswith("toolkeel_")}
    assert not there & {"stevedore", "sqlglot", "jinja2", "httpx", "typer", "rich"}
