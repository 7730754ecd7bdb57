"""A program with an agent of its own: offer tools, run the calls of a response."""

from __future__ import annotations

from pathlib import Path

import trio
from toolkeel import Kernel, Principal, ToolCall


async def main(folder: Path) -> None:
    """Offer the tools for one message and run what a model called."""
    async with Kernel.open() as kernel, kernel.session(workspaces=[folder], channel="app") as session:
        request = session.request("How long is the README?", principal=Principal("ann", "user"))
        offer = await session.offer(request)
        print(*(tool.name for tool in offer.tools))

        calls = [  # as a model's response names them
            ToolCall(name="file_read", arguments='{"path": "README.md"}', id="call_1"),
            ToolCall(name="calc", arguments='{"expression": "7 * 6"}', id="call_2"),
        ]
        for answer in await offer.call(calls):
            print(answer.id, answer.status, answer.text)


if __name__ == "__main__":
    trio.run(main, Path.cwd())
