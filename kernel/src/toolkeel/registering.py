"""Asking plugin after plugin for what it registers, in one thread that can be given up."""

from __future__ import annotations

import time
from typing import Any

import trio

from .hooks import HookFailure, Implementation
from .plugin import Plugin
from .scope import Scope

Registered = list[tuple[Plugin, tuple[Any, ...]]]
Failures = list[tuple[Plugin, HookFailure]]


class Attempt:
    """One thread that asks plugin after plugin; given up where one of them takes too long."""

    def __init__(self, todo: list[tuple[Implementation, Plugin]], scope: Scope, kind: type[Any], limit: float) -> None:
        self._todo = list(todo)
        self._scope = scope
        self._kind = kind
        self._limit = limit
        self._deadline: trio.CancelScope | None = None
        self._over = False
        self.answers: Registered = []
        self.failures: Failures = []
        self.done = 0

    async def run(self, limiter: trio.CapacityLimiter) -> bool:
        """Ask everyone; answers whether all came back. ``done`` counts those who did."""
        with trio.move_on_after(self._limit) as self._deadline:
            await trio.to_thread.run_sync(self._ask, abandon_on_cancel=True, limiter=limiter)
            return True
        self._over = True
        return False

    def _ask(self) -> None:
        for one, plugin in self._todo:
            begun = time.monotonic()
            answer: tuple[Any, ...] | None = None
            failure: HookFailure | None = None
            try:
                answer = _items(one, plugin, one.run(self._scope), self._kind)
            except HookFailure as error:
                failure = error
            if self._over:  # it came back after it was given up: nothing of it counts
                return
            if failure is not None:
                self.failures.append((plugin, failure))
            elif answer:
                self.answers.append((plugin, answer))
            self.done += 1
            if time.monotonic() - begun > self._limit / 100:
                trio.from_thread.run_sync(self._extend)

    def _extend(self) -> None:
        if self._deadline is not None:
            self._deadline.deadline = trio.current_time() + self._limit


def _items(one: Implementation, plugin: Plugin, answer: Any, kind: type[Any]) -> tuple[Any, ...]:
    """A factory's answer as a tuple; the tuple of last time where the items are the same."""
    try:
        items = (answer,) if isinstance(answer, kind) else () if answer is None else tuple(answer)
    except Exception as error:
        if isinstance(error, TypeError) and not hasattr(answer, "__iter__"):
            raise HookFailure(one.plugin, one.hook, f"gave a {type(answer).__name__}") from error
        raise one.failure(error) from error
    for item in items:
        if not isinstance(item, kind):
            raise HookFailure(one.plugin, one.hook, f"gave a {type(item).__name__} among its {kind.__name__}s")
    before = plugin.given.get(one.hook, ())
    if len(before) == len(items) and all(old is new for old, new in zip(before, items, strict=True)):
        return before
    plugin.given[one.hook] = items
    return items
