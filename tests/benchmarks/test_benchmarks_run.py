"""The benchmarks run as a whole and report every figure. What they measure is never tested: clocks differ."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

RUNNER = Path(__file__).parent / "run.py"
PROMISED = (
    "one call, the kernel alone", "one call, with six plugins", "a batch of 8", "1,000 calls in one batch",
    "1,000 calls of 1 ms on 8 workers ÷ eight bare tasks", "1,000 typed tools made and registered",
    "listed as JSON, the first time", "`import toolkeel` ÷ `import trio, pydantic, pluggy`", "`toolkeel tools`",
    "heavy modules that `import toolkeel` imports", "heavy modules that `toolkeel tools` imports",
    "one call: FastMCP `server.call_tool`", "json array: call, store and preview / count its lines",
    "json array: longest stall of the loop meanwhile",
)  # fmt: skip
"""The figures that have a limit."""


def test_a_quick_run_reports_every_promised_figure_on_the_terminal_and_on_the_page(
    run: Callable[..., str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    printed = run(sys.executable, RUNNER, "--quick", "--no-peers", "--write", page)
    written = page.read_text(encoding="utf-8")
    for name in PROMISED:
        [on_terminal] = [line for line in printed.splitlines() if re.match(rf"{re.escape(name)}  ", line)]
        [on_page] = [line for line in written.splitlines() if line.startswith(f"| {name} |")]
        _name, value, _median, limit, mark, _note = (cell.strip() for cell in on_page.strip("|").split("|"))
        assert re.match(r"[≤≥] \d", limit), on_page
        assert value in on_terminal, (on_terminal, on_page)
        assert mark in on_terminal, (on_terminal, on_page)
        if "FastMCP" in name:
            assert (value, mark) == ("–", "–"), "the peers were not run"
        else:
            assert re.match(r"\d[\d,.]*(×| µs| ms| s)?$", value), on_page
            assert mark in ("✓", "✗"), on_page


def test_neither_the_import_nor_the_list_of_tools_loads_what_is_heavy(run: Callable[..., str], tmp_path: Path) -> None:
    code = (
        f"import pathlib, sys; sys.path.insert(0, {str(RUNNER.parent)!r}); import startup; home = pathlib.Path.cwd();"
        "print(startup.heavy_in_import(home), startup.heavy_in_command(home))"
    )
    assert run(sys.executable, "-c", code, cwd=tmp_path).strip() == "[] []"
