"""The onion of around hooks about one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from . import hooks
from .calls import Call
from .hooks import HookFailure, Implementation
from .outputs import Result

CallNext = Callable[[], Awaitable[Result]]
_read = hooks.a(Result)


class Onion:
    """Runs the tool inside its layers, outermost first.

    ``at`` is the layer whose own code runs, ``None`` while the tool does. An exception travels outwards as it is, so
    that a retry may catch it; ``failure`` says who raised it first.
    """

    def __init__(
        self, layers: tuple[Implementation, ...], call: Call, innermost: CallNext, *, repeatable: bool
    ) -> None:
        self.at: Implementation | None = None
        self._layers = layers
        self._call = call
        self._innermost = innermost
        self._repeatable = repeatable
        self._raised: list[tuple[BaseException, HookFailure]] = []

    async def run(self) -> Result:
        """Run it all; whatever a layer raises comes out."""
        return await self._layer(0)

    def failure(self, error: BaseException) -> HookFailure:
        """Who first raised an exception that came out."""
        return next(failure for raised, failure in self._raised if raised is error)

    async def _layer(self, index: int) -> Result:
        if index == len(self._layers):
            self.at = None
            return await self._innermost()
        one = self._layers[index]
        state = "new"

        async def call_next() -> Result:
            nonlocal state
            if state == "running" or (state == "returned" and not self._repeatable):
                again = (
                    "while it still runs"
                    if state == "running"
                    else "a second time: the tool is neither a read nor idempotent"
                )
                raise HookFailure(one.plugin, one.hook, f"call_next was awaited {again}")
            state = "running"
            try:
                return await self._layer(index + 1)
            finally:
                state = "returned"
                self.at = one

        self.at = one
        try:
            return cast("Result", one.read(_read, await one.function(self._call, call_next)))
        except BaseException as error:
            hooks.pass_through(error)
            if not any(raised is error for raised, _ in self._raised):
                self._raised.append((error, error if isinstance(error, HookFailure) else one.failure(error)))
            raise
