"""`demo`, `new-plugin`, `--version` and start-up, through the real process."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

Toolkeel = Any
SCRIPT = Path(sysconfig.get_path("scripts")) / "toolkeel"


def test_the_demo_tells_every_step_and_its_numbers_are_those_of_the_files(toolkeel: Toolkeel) -> None:
    told = toolkeel("demo", "--keep", "shop").out
    orders = json.loads((toolkeel.folder / "shop/data/orders.json").read_text(), parse_float=Decimal)
    held = [order["total"] for order in orders if order["status"] == "held"]
    lines = (toolkeel.folder / "shop/shop/rules.py").read_text().splitlines()
    place = next(number for number, line in enumerate(lines, 1) if '"held"' in line)
    flat = " ".join(told.split())
    assert f"{len(held)} of {len(orders):,} orders are held; together they are worth {sum(held)}." in flat
    assert f"shop/rules.py:{place}:" in flat
    for words in (
        "What the model is offered, and why",
        "8 calls were answered in",
        "Nearest: ",
        "repaired limit",
        "leads out of the workspace",
        "[LARGE OUTPUT: file_read | json |",
        "read_output",
        "What to do next",
    ):
        assert words in flat


def test_the_demo_as_json_holds_the_engines_own_answers(toolkeel: Toolkeel) -> None:
    told = toolkeel("demo", "--json").json
    statuses = [Counter(answer["status"] for answer in turn["answers"]) for turn in told["turns"]]
    assert statuses == [
        {"completed": 8},
        {"refused": 1, "completed": 1, "failed": 1},
        {"completed": 1},
        {"completed": 1},
        {"completed": 1},
    ]
    assert {turn["form"] for turn in told["turns"]} == {"openai", "responses", "anthropic"}
    assert told["turns"][2]["answers"][0]["ref"] in json.dumps(told["turns"][3]["calls"])
    assert {tool["name"] for tool in told["offered"]} >= {"calc", "file_read", "read_output"}


def test_the_demo_touches_neither_settings_nor_home(toolkeel: Toolkeel) -> None:
    toolkeel.settings("kernel:\n  disable: [basics, files]\n")
    before = sorted(toolkeel.home.rglob("*"))
    toolkeel("demo")
    assert sorted(toolkeel.home.rglob("*")) == before
    assert list(toolkeel.folder.iterdir()) == []


def test_the_demo_does_not_write_into_a_folder_that_is_in_use(toolkeel: Toolkeel) -> None:
    (toolkeel.folder / "mine.txt").write_text("mine")
    assert "is not empty" in toolkeel("demo", "--keep", ".", code=2).err


def test_the_demo_reads_on_a_terminal_without_utf8(toolkeel: Toolkeel) -> None:
    told = toolkeel("demo", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}).data
    assert told.isascii()
    assert b"##" in told


def test_new_plugin_writes_a_package_and_says_what_to_do(toolkeel: Toolkeel) -> None:
    ended = toolkeel("new-plugin", "sea-weather", "--description", "Wind and waves", "--licence", "MIT")
    folder = toolkeel.folder / "toolkeel-sea-weather"
    assert 'name = "toolkeel-sea-weather"' in (folder / "pyproject.toml").read_text()
    assert "Wind and waves" in (folder / "pyproject.toml").read_text()
    assert "MIT License" in (folder / "LICENSE").read_text()
    assert "src/toolkeel_sea_weather/plugin.py" in ended.out
    assert "--editable ." in ended.err
    assert "is not empty" in toolkeel("new-plugin", "sea-weather", code=2).err


def test_new_plugin_in_a_folder_that_was_removed_says_so(toolkeel: Toolkeel) -> None:
    gone = toolkeel.folder / "gone"
    gone.mkdir()
    ended = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD" && exec "$0" new-plugin tides', SCRIPT],
        cwd=gone,
        env=toolkeel.environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert b"the current folder was removed" in ended.stderr


def test_new_plugin_refuses_a_name_that_no_package_can_have(toolkeel: Toolkeel) -> None:
    assert "lower case" in toolkeel("new-plugin", "Sea Weather", code=2).err
    assert list(toolkeel.folder.iterdir()) == []


def test_version_names_every_toolkeel_package(toolkeel: Toolkeel) -> None:
    assert set(toolkeel("--version", "--json").json) >= {"toolkeel", "toolkeel-cli", "python", "system"}
    assert re.search(r"^toolkeel \d+\.\d+\.\d+$", toolkeel("--version").out, re.MULTILINE)


def test_every_command_has_help_that_begins_with_what_it_does(toolkeel: Toolkeel) -> None:
    listed = toolkeel("--help").out.partition("Commands:\n")[2]
    commands = re.findall(r"^  ([\w-]+)  ", listed, re.MULTILINE)
    assert commands == ["demo", "tools", "call", "exec", "explain", "plugins", "config", "doctor", "new-plugin"]
    for command in commands:
        shown = toolkeel(command, "--help").out
        assert shown.startswith(f"Usage: toolkeel {command}")
        assert "--json" in shown


def test_tools_starts_without_what_it_does_not_need(toolkeel: Toolkeel) -> None:
    code = (
        "import sys; from toolkeel_cli.main import run; code = run(['tools']);"
        "print(*sorted(sys.modules), sep='\\n', file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=toolkeel.environment(), cwd=toolkeel.folder, check=True
    )
    imported = set(done.stderr.decode().split())
    heavy = {"sqlglot", "jinja2", "copier", "whoosh", "httpx", "httpx2", "requests", "urllib3", "rich", "asyncio"}
    assert heavy & imported == set()


def test_tools_costs_little_more_than_the_libraries_that_it_stands_on(toolkeel: Toolkeel) -> None:
    # Half a second on a machine that imports trio and pydantic in 0.19 s. As a ratio it holds on a busy one too.
    def libraries() -> None:
        code = "import trio, pydantic, pluggy; pydantic.BaseModel"
        subprocess.run([sys.executable, "-c", code], env=toolkeel.environment(), check=True)

    rounds = [(cpu(lambda: toolkeel("tools")), cpu(libraries)) for _ in range(6)]
    assert min(tools for tools, _ in rounds) <= 2.6 * min(base for _, base in rounds)


def cpu(run: Callable[[], object]) -> float:
    """The processor seconds of the processes that a function runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
