"""Parts of a stored output by lines and by bytes: what fits into an answer, and where to read on."""

from __future__ import annotations

from toolkeel import ToolError

from .answers import FOOTER, ended, read_call
from .hexdump import ROW, ROW_TEXT, hex_dump
from .store import Output
from .texts import counted


class Parts:
    """Answers from one output, each at most ``limit`` bytes of UTF-8. Binary data is shown as a hex dump."""

    def __init__(self, output: Output, limit: int) -> None:
        self._output = output
        self._content = output.content
        self._limit = limit
        room = limit - FOOTER
        self._room = room * ROW // ROW_TEXT // ROW * ROW if output.binary else room

    def whole(self) -> str:
        """All of it, or an error that says how to read it in parts."""
        size = self._content.size
        text = self._shown(0, size) if size <= self._room else ""
        if size > self._room or len(text.encode()) > self._limit - FOOTER:
            raise ToolError(
                f'the output has {counted(size, "bytes")}; mode="all" gives at most {self._room:,}',
                remedy='Use mode="search" for what you look for, or mode="head", "tail" or "slice"',
            )
        lines = counted(self._output.lines.count, "lines")
        return ended(text, f"{lines}, {counted(size, 'bytes')}: the whole output.")

    def lines(self, first: int, last: int, step: int) -> str:
        """Lines ``first`` to ``last``, counted from 0, the end exclusive; reading on goes ``step`` lines further."""
        index, content = self._output.lines, self._content
        if first >= index.count:
            raise ToolError(
                f"line {first + 1:,} is behind the end: the output has {counted(index.count, 'lines')}",
                remedy='Use mode="tail" for the last lines',
            )
        begin, finish = index.start_of(first), index.start_of(min(last, index.count))
        stop = self._fitting(begin, finish, whole_lines=True)
        text = self._shown(begin, stop)
        if stop < finish and not content.ends_with(b"\n", stop):
            said = f"Stopped inside line {first + 1:,}, before byte {stop:,} of {content.size:,}"
            return ended(text, f"{said}. Read on: {self._call(mode='slice', unit='bytes', start=stop)}")
        last = min(last, index.count) if stop == finish else index.line_at(stop)
        said = f"Lines {first + 1:,} to {last:,} of {index.count:,}"
        if last == index.count:
            return ended(text, f"{said}: the end.")
        following = min(index.count, last + step)
        return ended(text, f"{said}. Read on: {self._call(mode='slice', start=last + 1, end=following)}")

    def tail(self, lines: int) -> str:
        """The last lines, as far as they fit: from the start of a line, unless that line alone is too long."""
        index, content = self._output.lines, self._content
        begin = index.start_of(index.count - lines)
        earliest = content.size - self._room
        if begin < earliest or self._growth(begin, content.size) > self._room:
            begin = content.character_start(max(begin, earliest))
            if self._growth(begin, content.size) > self._room:
                begin = content.character_start(content.size - self._room // 3)
            newline = content.newline_after(begin)
            begin = newline + 1 if newline + 1 < content.size else begin
        text = self._shown(begin, content.size)
        if begin == 0:
            return ended(text, f"Lines 1 to {index.count:,} of {index.count:,}: the whole output.")
        line = index.line_at(begin)
        if content.ends_with(b"\n", begin):
            said = f"Lines {line + 1:,} to {index.count:,} of {index.count:,}: the end"
            before = self._call(mode="slice", start=max(1, line + 1 - lines), end=line)
        else:
            said = f"The end, from byte {begin:,} of {content.size:,}, inside line {line + 1:,}"
            before = self._call(mode="slice", unit="bytes", start=max(0, begin - self._room), end=begin)
        return ended(text, f"{said}. What comes before: {before}")

    def bytes(self, begin: int, end: int | None = None) -> str:
        """Bytes from ``begin`` to ``end`` or as many as fit. Cuts no character in two."""
        content = self._content
        if begin >= content.size:
            raise ToolError(
                f"byte {begin:,} is behind the end: the output has {counted(content.size, 'bytes')}",
                remedy='Use mode="tail" for the end',
            )
        stop = min(content.size, begin + self._room)
        stop = stop if end is None else min(stop, end)
        said = ""
        if not self._output.binary:
            begin, stop = content.character_start(begin), content.character_start(stop)
            if stop <= begin:  # part of one character was asked for
                stop = next(at for at in range(begin + 1, begin + 5) if content.character_start(at) == at)
            stop = self._fitting(begin, stop, whole_lines=False)
            said = f", in line {self._output.lines.line_at(begin) + 1:,}"
        said = f"Bytes {begin:,} to {stop:,} of {content.size:,}{said}"
        text = self._shown(begin, stop)
        if stop == content.size:
            return ended(text, f"{said}: the end.")
        return ended(text, f"{said}. Read on: {self._call(mode='slice', unit='bytes', start=stop)}")

    def rows(self, first: int, last: int) -> str:
        """Rows of the hex dump of binary data, counted from 0, the end exclusive."""
        return self.bytes(first * ROW, last * ROW)

    def last_rows(self, rows: int) -> str:
        """The last rows of the hex dump."""
        whole = -(-self._content.size // ROW)
        return self.rows(max(0, whole - min(rows, self._room // ROW)), whole)

    def _fitting(self, begin: int, finish: int, *, whole_lines: bool) -> int:
        """Where an answer from ``begin`` has to stop: at ``finish``, behind an earlier line, or else inside one."""
        if self._growth(begin, finish) <= self._room:
            return finish
        stop = self._content.character_start(min(finish, begin + self._room))
        if self._growth(begin, stop) > self._room:
            stop = self._content.character_start(begin + self._room // 3)
        newline = self._content.newline_before(stop, begin) if whole_lines else -1
        return newline + 1 if newline >= begin else stop

    def _growth(self, begin: int, finish: int) -> int:
        """Bytes that a part takes in an answer: a byte that is not UTF-8 takes three."""
        if finish - begin > self._room:
            return finish - begin
        return len(str(self._content.view(begin, finish), "utf-8", "replace").encode())

    def _shown(self, begin: int, stop: int) -> str:
        if self._output.binary:
            return hex_dump(self._content.part(begin, stop), begin)
        return str(self._content.view(begin, stop), "utf-8", "replace")

    def _call(self, **options: str | int) -> str:
        return read_call(self._output.ref, **options)
