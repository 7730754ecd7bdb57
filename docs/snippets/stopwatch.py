"""Log how long each tool ran."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from toolkeel import Call, Result, hookimpl

PRIORITY = 100
log = logging.getLogger(__name__)


@hookimpl
async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
    """Measure from the inside of earlier layers: of caches and retries, too."""
    begin = time.perf_counter()
    try:
        return await call_next()
    finally:
        log.info("%s took %.1f ms", call.tool.name, 1_000 * (time.perf_counter() - begin))
