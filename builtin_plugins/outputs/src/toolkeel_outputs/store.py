"""Stored outputs: whole results in memory, each a capability of the session that it was made in."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Literal

import msgspec

from .content import Content
from .detect import SNIFF, is_binary
from .lines import LineIndex

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 13
_GONE_REMEMBERED = 5_000

Session = tuple[str, str]
"""Agent and session: who may read an output."""
Why = Literal["old", "many", "large"]
"""Over its time, over the entries of its agent, over the bytes of the store."""


def new_ref() -> str:
    """A ref of 65 random bits, without letters that look like others."""
    return "out_" + "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


class Output:
    """One result. ``call`` is the call that made it, shortened, for people and models to recognise.

    ``ref`` is empty until a store keeps it.
    """

    def __init__(self, session: Session, tool: str, call: str, content: Content) -> None:
        self.ref = ""
        self.session = session
        self.tool = tool
        self.call = call
        self.content = content
        self.binary = is_binary(content.part(0, SNIFF))
        self.created = 0.0

    @cached_property
    def lines(self) -> LineIndex:
        """Where its lines start; counted on first use."""
        return LineIndex(self.content)


class Gone(msgspec.Struct, frozen=True):
    """What is remembered of an output that is no longer stored."""

    session: Session
    tool: str
    call: str
    why: Why


class OutputStore:
    """Keeps outputs for a time, so many for each agent, so many bytes in all; the oldest go first.

    The bytes are kept as they were given. Thread-safe. Nothing runs in the background: what is over its time goes when
    something is next kept or looked up.
    """

    def __init__(
        self,
        *,
        ttl: float,
        max_entries: int,
        max_bytes: int,
        clock: Callable[[], float],
        make_ref: Callable[[], str] = new_ref,
    ) -> None:
        self.ttl = ttl
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self._clock = clock
        self._make_ref = make_ref
        self._lock = threading.Lock()
        self._outputs: OrderedDict[str, Output] = OrderedDict()  # the oldest first
        self._by_agent: dict[str, OrderedDict[str, None]] = {}
        self._gone: OrderedDict[str, Gone] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that are stored."""
        return self._size

    def __len__(self) -> int:
        return len(self._outputs)

    def keep(self, output: Output) -> bool:
        """Store a result under a new ref. ``False`` where it alone is over the budget of bytes."""
        size, agent = output.content.size, output.session[0]
        if size > self.max_bytes:
            return False
        with self._lock:
            self._expire()
            while len(self._by_agent.get(agent, ())) >= self.max_entries:
                self._drop(next(iter(self._by_agent[agent])), "many")
            while self._size + size > self.max_bytes:
                self._drop(next(iter(self._outputs)), "large")
            output.ref, output.created = self._unused_ref(), self._clock()
            self._outputs[output.ref] = output
            self._by_agent.setdefault(agent, OrderedDict())[output.ref] = None
            self._size += size
        return True

    def find(self, session: Session, ref: str) -> Output | Gone | None:
        """The output, or what is remembered of it. Another session's ref is ``None``, like one that never was."""
        with self._lock:
            self._expire()
            found = self._outputs.get(ref) or self._gone.get(ref)
        return found if found is not None and found.session == session else None

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._outputs.clear()
            self._by_agent.clear()
            self._gone.clear()
            self._size = 0

    def _unused_ref(self) -> str:
        while (ref := self._make_ref()) in self._outputs or ref in self._gone:
            pass
        return ref

    def _expire(self) -> None:
        limit = self._clock() - self.ttl
        while self._outputs:
            oldest = next(iter(self._outputs.values()))
            if oldest.created > limit:
                break
            self._drop(oldest.ref, "old")

    def _drop(self, ref: str, why: Why) -> None:
        output = self._outputs.pop(ref)
        self._size -= output.content.size
        agent = self._by_agent[output.session[0]]
        del agent[ref]
        if not agent:
            del self._by_agent[output.session[0]]
        self._gone[ref] = Gone(output.session, output.tool, output.call, why)
        if len(self._gone) > _GONE_REMEMBERED:
            self._gone.popitem(last=False)
