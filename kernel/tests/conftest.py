"""What the kernel's tests share: plugins made on the spot, an observer that keeps what it is told, a clock to jump."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest
import trio.testing

from toolkeel import CallRecord, Tool, hookimpl
from toolkeel.calls import FINAL
from toolkeel.events import CallChanged, ToolCallEnded, ToolCallStarting

MakePlugin = Callable[..., ModuleType]


@pytest.fixture
def make_plugin() -> MakePlugin:
    """Make a plugin module of tools and of functions named after the hooks that they implement."""

    def make(
        *tools: Tool, name: str = "tools", priority: int = 100, hooks: Iterable[Callable[..., Any]] = ()
    ) -> ModuleType:
        module = ModuleType(name)
        module.PRIORITY = priority  # type: ignore[attr-defined]
        if tools:

            def register_tools() -> tuple[Tool, ...]:
                return tools

            module.register_tools = hookimpl(register_tools)  # type: ignore[attr-defined]
        for function in hooks:
            setattr(module, function.__name__, hookimpl(function))
        return module

    return make


class Observer:
    """A plugin that keeps every record it is told of."""

    NAME = "observer"

    def __init__(self) -> None:
        self.changes: list[CallRecord] = []
        self.starts: list[CallRecord] = []
        self.ends: list[CallRecord] = []

    @hookimpl
    async def on_call_changed(self, event: CallChanged) -> None:
        self.changes.append(event.record)

    @hookimpl
    async def on_tool_call_start(self, event: ToolCallStarting) -> None:
        self.starts.append(event.record)

    @hookimpl
    async def on_tool_call_end(self, event: ToolCallEnded) -> None:
        self.ends.append(event.record)

    def lives(self) -> dict[str, list[str]]:
        """Each call's statuses in the order in which they were told."""
        lives: defaultdict[str, list[str]] = defaultdict(list)
        for record in self.changes:
            lives[record.id].append(record.status)
        return dict(lives)

    def check(self) -> None:
        """Every call that was seen went forward, ended once, and its end was told once."""
        lives = self.lives()
        for identifier, statuses in lives.items():
            assert statuses[0] == "pending", (identifier, statuses)
            assert sum(status in FINAL for status in statuses) == 1, (identifier, statuses)
            assert statuses[-1] in FINAL, (identifier, statuses)
            assert statuses[1:-1] in ([], ["executing"]), (identifier, statuses)
        assert sorted(record.id for record in self.ends) == sorted(lives)


@pytest.fixture
def observer() -> Observer:
    return Observer()


@pytest.fixture
def clock() -> trio.testing.MockClock:
    """A clock for the test's loop that runs as real time does and can be jumped past a time limit.

    A test that waits for nothing but time sets ``clock.autojump_threshold = 0`` once its kernel is open: opening one
    uses threads, which a clock that jumps by itself would not wait for.
    """
    return trio.testing.MockClock(rate=1.0)
