"""Where the lines of an output start: one newline count per block, counted once."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from .content import Content

BLOCK = 256 * 1024
_FINE = 4 * 1024


class LineIndex:
    """Lines are counted from 0. The newline that ends a line belongs to it; the last line may have none."""

    __slots__ = ("_before", "_content", "count")

    def __init__(self, content: Content) -> None:
        self._content = content
        self._before = array("Q", [0])  # newlines before each block, and before the end
        for start in range(0, content.size, BLOCK):
            end = min(start + BLOCK, content.size)
            self._before.append(self._before[-1] + content.newlines(start, end))
        unended = content.size > 0 and not content.ends_with(b"\n", content.size)
        self.count = self._before[-1] + unended

    def start_of(self, line: int) -> int:
        """The position of a line's first byte; the size for lines behind the last."""
        if line <= 0:
            return 0
        if line >= self.count:
            return self._content.size
        block = bisect_left(self._before, line) - 1
        missing = line - self._before[block]
        start = block * BLOCK
        while True:
            newlines = self._content.newlines(start, start + _FINE)
            if newlines >= missing:
                break
            missing -= newlines
            start += _FINE
        window = self._content.part(start, start + _FINE)
        position = -1
        for _ in range(missing):
            position = window.find(b"\n", position + 1)
        return start + position + 1

    def line_at(self, position: int) -> int:
        """The line that holds the byte at ``position``."""
        block = min(position, self._content.size) // BLOCK
        return self._before[block] + self._content.newlines(block * BLOCK, min(position, self._content.size))
