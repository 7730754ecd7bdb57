"""Which calls of a batch wait for which: dependencies by resource keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .tools import Key


class _Node:
    __slots__ = ("below", "readers", "writer")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.writer: int | None = None
        self.readers: list[int] = []


class Planner:
    """Finds, call by call in the model's order, the earlier calls that each must wait for.

    A write waits for every earlier call whose keys overlap, a read for every earlier write. Dependencies run from later
    to earlier calls only, so there is no deadlock. Keys are kept in a tree, one level per part.
    """

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, index: int, reads: Iterable[Key], writes: Iterable[Key]) -> set[int]:
        """Add the next call; answers the indexes that it must wait for."""
        waits: set[int] = set()
        reads, writes = tuple(reads), tuple(writes)
        for key in writes:
            self._overlapping(key, waits, with_readers=True)
        for key in reads:
            self._overlapping(key, waits, with_readers=False)
        for key in reads:
            self._node(key).readers.append(index)
        for key in writes:
            node = self._node(key)
            node.below, node.readers, node.writer = {}, [], index
        waits.discard(index)
        return waits

    def _node(self, key: Key) -> _Node:
        node = self._root
        for part in key:
            node = node.below.setdefault(part, _Node())
        return node

    def _overlapping(self, key: Key, waits: set[int], *, with_readers: bool) -> None:
        node: _Node | None = self._root
        for part in key:
            if node is None:
                return
            _take(node, waits, with_readers)
            node = node.below.get(part)
        todo = [node] if node is not None else []
        while todo:
            inner = todo.pop()
            _take(inner, waits, with_readers)
            todo.extend(inner.below.values())


def _take(node: _Node, waits: set[int], with_readers: bool) -> None:
    if node.writer is not None:
        waits.add(node.writer)
    if with_readers:
        waits.update(node.readers)


def overlap(some: Sequence[Key], others: Sequence[Key]) -> bool:
    """Whether any key of one overlaps with any key of the other."""
    return any(one[: len(other)] == other[: len(one)] for one in some for other in others)
