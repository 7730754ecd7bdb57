"""The running of one call: around hooks, the tool's function, its thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import trio

from . import hooks, rendering
from .admission import call_of
from .errors import ToolError
from .hooks import HookSet, Report, describe
from .live import Live
from .onion import Onion
from .outputs import Failure, Result
from .scope import Principal, Request, Scope
from .services import Services
from .settings import KernelSettings

_log = logging.getLogger("toolkeel")
Nested = Callable[[Live, str, Mapping[str, Any]], Awaitable[Result]]


class Runner:
    """Runs the tool of an authorised call; whatever goes wrong is a ``Failure``."""

    def __init__(
        self, settings: KernelSettings, services: Services, nested: Nested, report: Report, log: logging.Logger
    ) -> None:
        self._services = services
        self._nested = nested
        self._report = report
        self._log = log
        self._threads = trio.CapacityLimiter(settings.threads)
        self._stray: dict[int, tuple[str, float]] = {}

    def stray_threads(self) -> list[tuple[str, float]]:
        """The tools whose threads were given up and have not returned, each with the time it was given up."""
        return list(self._stray.values())

    async def wrapped(self, live: Live, hookset: HookSet) -> Result:
        """Run the tool inside the around hooks."""
        tool = live.bound.tool
        onion = live.onion = Onion(
            hookset.around,
            call_of(live),
            partial(self.tool, live),
            repeatable=tool.effect == "read" or tool.idempotent,
        )
        try:
            return await onion.run()
        except BaseException as error:  # noqa: BLE001 - it is the call's failure
            hooks.pass_through(error)
            failure = onion.failure(error)
            self._report(failure)
        done = f"{live.name} finished, but " if live.tool_returned else ""
        if live.tool_entered and not live.tool_returned and tool.effect != "read":
            done = f"{live.name} had begun and may have done its work, but "
        again = ". Do not repeat it" if live.tool_entered and tool.effect != "read" else ""
        return Failure(f"{done}a hook around the call failed: {failure.what}{again}")

    async def tool(self, live: Live) -> Result:
        """Run the tool's function; whatever it raises is the call's failure."""
        entry = live.bound
        tool, values = entry.tool, live.values
        function = tool.function
        live.tool_entered = True
        try:
            if tool.signature is None:
                value = await function(values, Context(self._services, self._nested, live))
            else:
                if entry.context_parameter is not None:
                    values = {**values, entry.context_parameter: Context(self._services, self._nested, live)}
                if entry.asynchronous:
                    value = await function(**values)
                elif tool.inline:
                    value = function(**values)
                else:
                    value = await self._in_thread(live, partial(function, **values))
        except ToolError as error:
            return Failure(str(error))
        except BaseException as error:  # noqa: BLE001 - it is the call's failure
            hooks.pass_through(error)
            self._log.info("tool %s raised", live.name, exc_info=error)
            return Failure(f"{live.name} failed: {describe(error)}")
        live.tool_returned = True
        return rendering.to_result(value)

    async def _in_thread(self, live: Live, function: Callable[[], object]) -> object:
        stray, name, key = self._stray, live.name, id(live)
        began, ended = threading.Event(), threading.Event()

        def run() -> object:
            live.wants_thread = False
            began.set()
            try:
                return function()
            finally:
                ended.set()
                stray.pop(key, None)

        live.wants_thread = True
        try:
            return await trio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._threads)
        except trio.Cancelled:
            if began.is_set() and not ended.is_set():
                live.abandoned = True
                stray[key] = (name, time.time())
                if ended.is_set():
                    stray.pop(key, None)
            raise


class Context:
    """The ``ToolContext`` of one call."""

    __slots__ = ("_live", "_nested", "_services")

    def __init__(self, services: Services, nested: Nested, live: Live) -> None:
        self._services = services
        self._nested = nested
        self._live = live

    @property
    def call_id(self) -> str:
        """See ``ToolContext.call_id``."""
        return self._live.id

    @property
    def request(self) -> Request:
        """See ``ToolContext.request``."""
        return self._live.batch.offer.request

    @property
    def scope(self) -> Scope:
        """See ``ToolContext.scope``."""
        return self.request.scope

    @property
    def principal(self) -> Principal:
        """See ``ToolContext.principal``."""
        return self.request.principal

    @property
    def workspaces(self) -> tuple[Path, ...]:
        """See ``ToolContext.workspaces``."""
        return self.request.scope.workspaces

    def service(self, protocol: type[Any]) -> Any:
        """See ``ToolContext.service``."""
        return self._services.get(protocol)

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """See ``ToolContext.progress``."""
        listener = self._live.batch.progress
        if listener is not None:
            try:
                listener(self._live.model_id, done, total, text)
            except Exception as error:  # noqa: BLE001 - the listener is the caller's, not the tool's
                _log.warning("a progress listener failed: %s", describe(error))

    def check_cancelled(self) -> None:
        """See ``ToolContext.check_cancelled``."""
        trio.from_thread.check_cancelled()

    def call(self, name: str, arguments: Mapping[str, Any]) -> Awaitable[Result]:
        """See ``ToolContext.call``."""
        return self._nested(self._live, name, arguments)
