"""Toolkeel in a program that runs on asyncio, or on no loop at all: trio gets a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from toolkeel import Kernel, Principal, Session, ToolCall

Opened = tuple[trio.lowlevel.TrioToken, Session, trio.Event]


@contextmanager
def session_in_a_thread(folder: Path) -> Iterator[tuple[Session, Callable[..., Any]]]:
    """A session, and what runs its async methods: it blocks the thread that calls it until they are done."""
    ready: Future[Opened] = Future()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(trio.run, serve, folder, ready).add_done_callback(lambda ended: failed(ended, ready))
        token, session, over = ready.result()
        try:
            yield session, lambda function, *args: trio.from_thread.run(function, *args, trio_token=token)
        finally:
            trio.from_thread.run_sync(over.set, trio_token=token)


async def serve(folder: Path, ready: Future[Opened]) -> None:
    """Keep a session open until it is over."""
    over = trio.Event()
    async with Kernel.open() as kernel, kernel.session(workspaces=[folder], channel="app") as session:
        ready.set_result((trio.lowlevel.current_trio_token(), session, over))
        await over.wait()


def failed(ended: Future[None], ready: Future[Opened]) -> None:
    """Tell whoever waits for the session that it could not be opened."""
    error = ended.exception()
    if error is not None and not ready.done():
        ready.set_exception(error)


async def main(folder: Path) -> None:
    """Offer and call from asyncio."""
    with session_in_a_thread(folder) as (session, run):
        request = session.request("How much is that?", principal=Principal("ann", "user"))
        offer = await asyncio.to_thread(run, session.offer, request)
        calls = [ToolCall(name="calc", arguments={"expression": "7 * 6"}, id="call_1")]
        for answer in await asyncio.to_thread(run, offer.call, calls):
            print(answer.id, answer.text)


if __name__ == "__main__":
    asyncio.run(main(Path.cwd()))
