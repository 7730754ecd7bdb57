"""What starting costs: importing, listing the tools from the command line, and what neither may import."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from pathlib import Path

import environments

FLOOR = "import trio, pydantic, pluggy"
READY = "import trio, pluggy; from pydantic import BaseModel"
LIGHT = "import toolkeel"
ENGINE = "from toolkeel import Kernel"
STATEMENTS = (FLOOR, LIGHT, READY, ENGINE)

HEAVY = (
    "aiohttp", "anthropic", "chromadb", "duckdb", "http.client", "httpcore", "httpcore2", "httpx", "httpx2", "jinja2",
    "mcp", "numpy", "openai", "requests", "sqlalchemy", "sqlglot", "urllib3", "whoosh", "wordllama",
)  # fmt: skip
"""SQL parsers and databases, template engines, indexes, HTTP clients and what brings one: never at start."""


def import_times(rounds: int) -> dict[str, float]:
    """Seconds of processor time of each statement of ``STATEMENTS`` in a fresh process; medians, interleaved."""
    taken: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for turn in range(rounds + 1):
        for statement in STATEMENTS:
            code = f"import time; start = time.process_time()\n{statement}\nprint(time.process_time() - start)"
            seconds = float(environments.run([sys.executable, "-c", code]).stdout)
            if turn:  # the first one fills the file cache
                taken[statement].append(seconds)
    return {statement: statistics.median(seconds) for statement, seconds in taken.items()}


def command_times(rounds: int, home: Path) -> tuple[list[float], list[float]]:
    """Seconds of processor time, and on the clock, of ``toolkeel tools`` in fresh processes."""
    processor: list[float] = []
    clock: list[float] = []
    for turn in range(rounds + 1):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        environments.run([_command(), "tools"], cwd=home, home=home)
        elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if turn:
            clock.append(elapsed)
            processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return processor, clock


def heavy_in_import(home: Path) -> list[str]:
    """What of ``HEAVY`` is imported by ``import toolkeel`` and its engine."""
    return _heavy(environments.run([sys.executable, "-X", "importtime", "-c", f"{LIGHT}\n{ENGINE}"], home, home).stderr)


def heavy_in_command(home: Path) -> list[str]:
    """What of ``HEAVY`` is imported by ``toolkeel tools``."""
    return _heavy(environments.run([sys.executable, "-X", "importtime", _command(), "tools"], home, home).stderr)


def _heavy(importtime: str) -> list[str]:
    names = {line.rpartition("|")[2].strip() for line in importtime.splitlines() if line.startswith("import time:")}
    if "trio" not in names:
        raise AssertionError("no import times were printed")
    return sorted(names & set(HEAVY))


def _command() -> Path:
    return Path(sys.executable).with_name("toolkeel")
