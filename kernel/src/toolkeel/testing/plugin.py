"""The pytest plugin: plain ``async def`` tests run under trio, each with a bound."""

from __future__ import annotations

import inspect
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

BOUND = 120.0
"""Seconds that an async test may take before it fails."""


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test function on a new trio loop; leave every other test, and other runners' tests, alone."""
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function) or pyfuncitem.get_closest_marker("asyncio"):
        return None
    import trio

    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(function).parameters}
    clock = next((value for value in arguments.values() if isinstance(value, trio.abc.Clock)), None)
    trio.run(partial(_bounded, function, arguments), clock=clock)
    return True


async def _bounded(function: Any, arguments: dict[str, Any]) -> None:
    """Run a test with a bound in real time, whatever clock its loop has."""
    import trio

    token = trio.lowlevel.current_trio_token()
    with trio.CancelScope() as scope:
        timer = threading.Timer(BOUND, lambda: token.run_sync_soon(scope.cancel))
        timer.daemon = True
        timer.start()
        try:
            await function(**arguments)
        finally:
            timer.cancel()
    if scope.cancelled_caught:
        raise TimeoutError(f"the test did not end within {BOUND:g} s")
