"""Large outputs: what storing, previewing and reading 100 MB cost, and how long the loop stands still meanwhile.

Usage: python outputs.py [--quick]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import trio

from toolkeel import Text, Tool, hookimpl, tool
from toolkeel.testing import Kit, kernel_with
from toolkeel_outputs.content import Content
from toolkeel_outputs.plugin import Outputs
from toolkeel_outputs.previews import Limits, make_preview

QUICK = "--quick" in sys.argv
SIZE = 10_000_000 if QUICK else 100_000_000
ROUNDS = 2 if QUICK else 5
ROW = json.dumps(
    {
        "id": 4711,
        "title": "Заголовок of an issue, partly in another script",
        "state": "open",
        "author": {"login": "ann", "id": 5},
        "labels": ["bug", "interface"],
        "body": "A few words that describe what happened. " * 4,
        "closed": None,
        "votes": 1.5,
    },
    ensure_ascii=False,
).encode()

Figure = tuple[str, float, str]
"""Name, value, and its unit with the limit where there is one."""


@tool(effect="read", name="export")
def _export(kind: str) -> Text:
    """Give one of the data sets.

    Args:
        kind: which one.
    """
    return Text(Exporting.DATA[kind])


class Exporting:
    """A plugin whose tool gives large results."""

    DATA: ClassVar[dict[str, bytes]] = {}
    TOOLS: ClassVar[tuple[Tool, ...]] = (_export,)

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        """The tool `export`."""
        return self.TOOLS


def rows() -> list[Figure]:
    """Every figure, the best of several rounds."""
    return trio.run(_rows)


async def _rows() -> list[Figure]:
    count = SIZE // (len(ROW) + 1)
    data = {
        "json array": b"[" + b",".join([ROW] * count) + b"]",
        "json lines": b"\n".join([ROW] * count),
        "one line": b"some words of text " * (SIZE // 19),
        "short lines": b"some words of text\n" * (SIZE // 19),
    }
    figures: list[Figure] = []
    array = data["json array"]
    counting = _best(lambda: array.count(b"\n"))
    content = Content(array)
    previewing = _best(lambda: make_preview(content, "", Limits()))
    figures.append(("count the lines of a JSON array (bytes.count)", counting * 1e3, "ms"))
    figures.append(("its preview alone", previewing * 1e3, "ms"))
    for kind, whole in data.items():
        Exporting.DATA = {kind: whole, "small": ROW * 2}
        counting = _best(partial(whole.count, b"\n"))
        async with kernel_with(Exporting, Outputs) as kit:
            await kit.call("export", kind="small")
            taken, stall = await _spilled(kit, kind)
            limit = ", at most 1.5" if kind == "json array" else ""
            figures.append((f"{kind}: call, store and preview / count its lines", taken / counting, f"×{limit}"))
            figures.append((f"{kind}: longest stall of the loop meanwhile", stall * 1e3, "ms, at most 50"))
            figures += await _read(kit, kind)
    return figures


async def _spilled(kit: Kit, kind: str) -> tuple[float, float]:
    """Seconds of a whole call whose result is stored, and the longest gap of a ticker of 1 ms meanwhile."""
    best, longest = float("inf"), 0.0
    for _ in range(ROUNDS):
        async with trio.open_nursery() as nursery:
            ticker = _Ticker()
            nursery.start_soon(ticker.run)
            await trio.sleep(0.01)
            ticker.longest = 0.0
            start = time.perf_counter()
            await kit.call("export", kind=kind)
            best = min(best, time.perf_counter() - start)
            await trio.sleep(0.003)
            longest = max(longest, ticker.longest)
            nursery.cancel_scope.cancel()
    return best, longest


class _Ticker:
    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        last = time.perf_counter()
        while True:
            await trio.sleep(0.001)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last)
            last = now


async def _read(kit: Kit, kind: str) -> list[Figure]:
    """Reading parts of it, each through the whole pipeline of a call."""
    ref = (await kit.call("export", kind=kind)).ref
    middle: dict[str, Any] = {"mode": "slice", "unit": "bytes", "start": SIZE // 2, "end": SIZE // 2 + 8_000}
    if b"\n" in Exporting.DATA[kind][:1_000]:
        middle = {"mode": "slice", "start": Exporting.DATA[kind].count(b"\n") // 2}
    reads: list[tuple[str, dict[str, Any], str]] = [
        ("head", {"mode": "head"}, "ms, at most 1"),
        ("tail", {"mode": "tail"}, "ms, at most 1"),
        ("slice in the middle", middle, "ms, at most 1"),
        ("search for a word that is not there", {"mode": "search", "query": "nowhere"}, "ms"),
        ("the same in Cyrillic", {"mode": "search", "query": "нигде"}, "ms"),
        ("search for a word that is everywhere", {"mode": "search", "query": "words"}, "ms"),
        ("search by regular expression", {"mode": "search", "query": "no[a-z]+here$", "regex": True}, "ms"),
    ]
    figures: list[Figure] = []
    for name, arguments, unit in reads:
        best = float("inf")
        for _ in range(ROUNDS):
            start = time.perf_counter()
            answer = await kit.call("read_output", ref=ref, **arguments)
            best = min(best, time.perf_counter() - start)
            assert not answer.failed, answer.text
        figures.append((f"{kind}: {name}", best * 1e3, unit))
    return figures


def _best(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    found = rows()
    width = max(len(name) for name, _, _ in found)
    for name, value, unit in found:
        print(f"{name.ljust(width)}  {value:10,.2f} {unit}")
