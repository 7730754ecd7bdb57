"""One round of toolkeel's own figures as JSON on standard output: seconds of processor time and of the clock.

Usage: python ours.py [--quick]
"""

from __future__ import annotations

import gc
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import trio
from clocks import CALLS, MANY, PAIRS, QUICK, Figures, Taken, per_run, timed

from toolkeel import Answer, Call, Data, Offer, Result, Session, Tool, ToolCall, hookimpl, tool
from toolkeel.events import ToolCallEnded
from toolkeel.testing import kernel_with

ARGUMENTS = '{"a": 1, "b": 2}'
WORKERS = 8
NAP = 0.001
NAPS = 100 if QUICK else MANY


# Tools and plugins -------------------------------------------------------------------------------------------------


@tool(effect="read")
async def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    return a + b


@tool(effect="read")
def add_in_thread(a: int, b: int) -> int:
    """Add two numbers in a worker thread."""
    return a + b


@tool(effect="read")
async def nap() -> str:
    """Sleep for a millisecond."""
    await trio.sleep(NAP)
    return "awake"


class Tools:
    """Gives the tools that are called."""

    NAME = "tools"
    TOOLS = (add, add_in_thread, nap)

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        return self.TOOLS


class Deciding:
    """Counts the calls that it is asked about, and has no objection."""

    def __init__(self) -> None:
        self.asked = 0

    @hookimpl
    async def authorize_tool_call(self, call: Call) -> None:
        self.asked += 1


class Wrapping:
    """Counts the calls that it wraps."""

    def __init__(self) -> None:
        self.wrapped = 0

    @hookimpl
    async def around_tool_call(self, call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
        self.wrapped += 1
        return await call_next()


class Observing:
    """Counts the calls that end."""

    def __init__(self) -> None:
        self.ended = 0

    @hookimpl
    async def on_tool_call_end(self, event: ToolCallEnded) -> None:
        self.ended += 1


SIX = tuple(
    type(f"{kind.__name__}{number}", (kind,), {"NAME": f"{kind.__name__.lower()}{number}"})
    for kind in (Deciding, Wrapping, Observing)
    for number in (1, 2)
)


# Measuring ---------------------------------------------------------------------------------------------------------


async def calls() -> Figures:
    """Calls through every stage, without and with plugins."""
    found: Figures = {}
    one, eight, many = calls_of("add", 1), calls_of("add", WORKERS), calls_of("add", MANY)
    threaded = calls_of("add_in_thread", 1)
    async with kernel_with(Tools) as kit:
        offer = kit.offer
        checked(await offer.call(many), Data(3))
        checked(await offer.call(threaded), Data(3))
        found["call_alone"] = await per_run(lambda: offer.call(one), CALLS)
        found["offer_and_call"] = await per_run(lambda: _offer_and_call(kit.session, offer, one), CALLS)
        found["call_in_thread"] = await per_run(lambda: offer.call(threaded), CALLS // 4)
        found["batch_8"] = await per_run(lambda: offer.call(eight), CALLS // 4)
        found["many_trivial"] = await per_run(lambda: offer.call(many), 1, PAIRS * 3)
    async with kernel_with(Tools, *SIX) as kit:
        offer = kit.offer
        checked(await offer.call(one), Data(3))
        found["call_six"] = await per_run(lambda: offer.call(one), CALLS)
        found["batch_8_six"] = await per_run(lambda: offer.call(eight), CALLS // 4)
        found["many_trivial_six"] = await per_run(lambda: offer.call(many), 1, PAIRS * 3)
    return found


async def _offer_and_call(session: Session, offer: Offer, one: Sequence[ToolCall]) -> None:
    await (await session.offer(offer.request)).call(one)


async def naps() -> Figures:
    """A thousand calls that sleep, against as many bare trio tasks as there are workers sleeping as often."""
    ours: list[Taken] = []
    bare: list[Taken] = []
    batch = calls_of("nap", NAPS, "{}")
    async with kernel_with(Tools, settings={"kernel": {"workers": WORKERS}}) as kit:
        checked(await kit.offer.call(batch[:WORKERS]), "awake")
        for _ in range(PAIRS):
            bare.append(await timed(_bare_naps))
            ours.append(await timed(lambda: kit.offer.call(batch)))
    return {"naps": ours, "naps_bare": bare}


async def _bare_naps() -> None:
    left = iter(range(NAPS))

    async def worker() -> None:
        for _ in left:
            await trio.sleep(NAP)

    async with trio.open_nursery() as nursery:
        for _ in range(WORKERS):
            nursery.start_soon(worker)


def calls_of(name: str, count: int, arguments: str = ARGUMENTS) -> list[ToolCall]:
    """So many calls of one tool, with the arguments as JSON text, as a model sends them."""
    return [ToolCall(name, arguments, f"call-{number}") for number in range(count)]


def checked(answers: Sequence[Answer], expected: Result | str) -> None:
    """A figure of calls that did not do their work is no figure."""
    for answer in answers:
        if answer.status != "completed" or expected not in (answer.result, answer.text):
            raise AssertionError(answer)


# Many tools --------------------------------------------------------------------------------------------------------

TYPED = '''
async def tool_{number}(query: str, limit: int = 10, tags: list[str] | None = None, exact: bool = False) -> str:
    """Search collection {number} for entries.

    Args:
        query: the words to look for.
        limit: at most so many entries.
        tags: only entries that carry one of these.
        exact: whether the words must stand together.
    """
    return query
'''


async def registering() -> Figures:
    """A thousand typed functions made into tools and registered for a session, and their list as JSON."""
    found: Figures = {"register_many": [], "list_many": [], "list_many_again": []}
    for _ in range(PAIRS):
        many = _plugin_of(_functions())
        async with kernel_with(many, settings={"kernel": {"tool_limit": MANY}}) as kit:
            await kit.kernel.plugins.reload("many")
            gc.collect()
            found["register_many"].append(await timed(kit.session.table))
            offer = await kit.refresh()
            for figure in ("list_many", "list_many_again"):
                found[figure].append(await timed(partial(_listed, offer)))
    return found


async def _listed(offer: Offer) -> None:
    if offer.json().count(b'"description":"Search collection') != MANY:
        raise AssertionError("not every tool is listed")


def _functions() -> list[Callable[..., Any]]:
    space: dict[str, Any] = {}
    exec("".join(TYPED.format(number=number) for number in range(MANY)), space)
    return [value for name, value in space.items() if name.startswith("tool_")]


def _plugin_of(functions: Sequence[Callable[..., Any]]) -> type[Any]:
    class Many:
        """Makes its tools each time that it is asked, which a real plugin would do once."""

        NAME = "many"

        @hookimpl
        def register_tools(self) -> tuple[Tool, ...]:
            return tuple(tool(effect="read")(function) for function in functions)

    return Many


async def main() -> None:
    """Measure everything and print it."""
    figures = await calls() | await naps() | await registering()
    print(json.dumps(figures))


if __name__ == "__main__":
    trio.run(main)
