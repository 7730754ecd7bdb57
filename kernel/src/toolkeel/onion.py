"""The onion of around hooks about one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast, get_args

from . import hooks
from .calls import Call
from .hooks import HookFailure, Implementation
from .outputs import Result

CallNext = Callable[[], Awaitable[Result]]
_read = hooks.a(Result)
_RESULTS = frozenset(get_args(Result))


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
        self._returned = [False] * len(layers)
        self._raised: list[tuple[BaseException, HookFailure]] = []

    async def run(self) -> Result:
        """Run it all; whatever a layer raises comes out."""
        return await self._layer(0)

    def failure(self, error: BaseException) -> HookFailure:
        """Who first raised an exception that came out."""
        return next(failure for raised, failure in self._raised if raised is error)

    async def _layer(self, index: int) -> Result:
        layers = self._layers
        try:
            if index == len(layers):
                self.at = None
                ended = await self._innermost()
                self._back(index)
                return ended
            one = self.at = layers[index]
            result: Any = await one.function(self._call, self._next(index))
            if type(result) not in _RESULTS:
                result = one.read(_read, result)
        except BaseException as error:
            hooks.pass_through(error)  # a cancellation leaves ``at`` where it struck
            if index < len(layers) and not any(raised is error for raised, _ in self._raised):
                failure = error if isinstance(error, HookFailure) else layers[index].failure(error)
                self._raised.append((error, failure))
            self._back(index)
            raise
        self._back(index)
        return cast("Result", result)

    def _back(self, index: int) -> None:
        """A layer, or the tool, gave back: the one around it goes on."""
        if index:
            self._returned[index - 1] = True
            self.at = self._layers[index - 1]

    def _next(self, index: int) -> CallNext:
        """The ``call_next`` of a layer: once, or again in turn where the tool may be repeated."""
        called = False

        def call_next() -> Awaitable[Result]:
            nonlocal called
            if called and not (self._repeatable and self._returned[index]):
                one = self._layers[index]
                returned = self._returned[index]
                why = "a second time: the tool is neither a read nor idempotent" if returned else "while it still runs"
                raise HookFailure(one.plugin, one.hook, f"call_next was awaited {why}")
            called = True
            self._returned[index] = False
            return self._layer(index + 1)

        return call_next
