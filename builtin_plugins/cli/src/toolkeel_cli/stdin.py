"""Reads standard input past Python's buffer, so that a read that is given up holds nothing up at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator

import trio

from .exits import UsageError

_CHUNK = 1 << 16


async def read_all() -> bytes:
    """All of standard input."""
    parts: list[bytes] = []
    while part := await _read():
        parts.append(part)
    return b"".join(parts)


async def lines() -> AsyncGenerator[bytes, None]:
    """The lines of standard input as they come, without their ends; blank ones are left out."""
    rest = b""
    while part := await _read():
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


async def _read() -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is where the shell closed it
        raise UsageError("standard input is closed", remedy="Pipe the input into the command")
    return await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), _CHUNK, abandon_on_cancel=True)
