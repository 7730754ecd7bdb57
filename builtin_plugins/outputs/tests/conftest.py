"""What the tests of outputs share: a store that tests hold the clock of, and a reader that follows answers."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from toolkeel import Scope
from toolkeel_outputs.content import Content
from toolkeel_outputs.reading import Reading
from toolkeel_outputs.store import Output, OutputStore


class Clock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class _Context:
    """The one thing that `read_output` asks of a call's context."""

    scope: Scope


class Reader:
    """A store and its `read_output`, called as a model would, with answers of at most ``limit`` bytes."""

    def __init__(self, limit: int, clock: Clock | None = None, **options: Any) -> None:
        settings: dict[str, Any] = {"ttl": 3_600.0, "max_entries": 200, "max_bytes": 1 << 30, **options}
        self.clock = clock or Clock()
        self.store = OutputStore(clock=self.clock, **settings)
        self.reading = Reading(self.store, limit)
        self.limit = limit

    def keep(self, data: bytes, agent: str = "main", session: str = "s1", tool: str = "orders") -> Output:
        output = Output((agent, session), tool, f"{tool}(n=5)", Content(data))
        assert self.store.keep(output)
        return output

    def read(self, ref: str, agent: str = "main", session: str = "s1", **options: Any) -> str:
        context: Any = _Context(Scope(agent=agent, session=session))
        content = self.reading.read_output(context, ref, **options).content
        assert isinstance(content, str)
        assert len(content.encode()) <= self.limit
        return content

    @staticmethod
    def following(answer: str) -> dict[str, Any] | None:
        """The arguments of the call with which an answer says to read on, read as a model would read them."""
        last = answer.splitlines()[-1]
        assert last.startswith("[")
        assert last.endswith("]")
        found = re.search(r"(?:Read on|What comes before): (read_output\(.*\))\]$", last)
        if found is None:
            return None
        call = ast.parse(found[1].replace("=true", "=True"), mode="eval").body
        assert isinstance(call, ast.Call)
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}

    @staticmethod
    def body(answer: str) -> str:
        """An answer without its last line."""
        return answer[: answer.rindex("\n[") + 1] if "\n[" in answer else ""


@pytest.fixture(scope="session")
def reader() -> Callable[..., Reader]:
    """Makes readers; for the whole session, since the examples of a property share its fixtures."""

    def make(limit: int = 81_920, **options: Any) -> Reader:
        return Reader(limit, **options)

    return make
