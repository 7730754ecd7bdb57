"""What a command writes: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO, cast

import orjson

from toolkeel import ToolkeelError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 120
"""Columns where nobody says how wide the output is."""
NARROW = 70
"""Columns below which a table's rows are told one below the other."""
Cell = str | tuple[str, str]
"""A cell's text, or its text and style."""


class Screen:
    """Where one command writes. ``as_json``: machines read it, so standard error holds errors only, as JSON."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._results = sys.stdout  # what plugins print while a kernel is open goes elsewhere: see opening

    @cached_property
    def out(self) -> Console:
        """Standard output, for people."""
        return _console(self._results)

    @cached_property
    def err(self) -> Console:
        """Standard error, for people."""
        return _console(sys.stderr)

    def text(self, text: str) -> None:
        """Write a result as it is; on a terminal, control characters become visible, so that no result drives it."""
        if self._results.isatty():
            text = visible(text)
        data = text.encode("utf-8", "replace")
        self._write(data if data.endswith(b"\n") else data + b"\n")

    def json(self, value: object) -> None:
        """Write a value as JSON: one line with ``--json`` or in a pipe, indented on a terminal."""
        indented = not self.as_json and self._results.isatty()
        data = to_json(value, indented=indented)
        self._write((_escaped(data.decode()).encode() if self._results.isatty() else data) + b"\n")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Write a table without lines. On a terminal cells wrap; in a pipe each row is one line, for grep and cut."""
        if _styled(self._results):
            if self.out.width < NARROW:
                self._stack(columns, rows)
            else:
                self.out.print(_rich_table(columns, rows))
            return
        lines = [list(columns), *([" ".join(_plain_text(cell).split()) for cell in row] for row in rows)]
        widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
        for line in lines:
            self.line("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())

    def _stack(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """A table where its columns have no room beside each other: what each row says stands below its name."""
        from rich.padding import Padding
        from rich.text import Text

        for name, *cells in rows:
            self.out.print(Text(*_styled_text(name), overflow="fold") if _plain_text(name) else Text("-"))
            for column, cell in zip(columns[1:], cells, strict=True):
                if _plain_text(cell):
                    self.out.print(Padding(Text.assemble((f"{column}: ", "dim"), _styled_text(cell)), (0, 0, 0, 2)))

    def line(self, *parts: Cell, style: str = "") -> None:
        """Write one line for people, of parts that may have a style each; it is never folded."""
        self._line(self._results, parts, style)

    def say(self, *parts: Cell, style: str = "") -> None:
        """Like ``line``, on standard error."""
        self._line(sys.stderr, parts, style)

    def note(self, text: str) -> None:
        """Tell a person something beside the result; machines are not told."""
        if not self.as_json:
            self.say(text, style="dim")

    def log(self, level: str, name: str, text: str) -> None:
        """Write a line of the log that ``-v`` asked for, on standard error."""
        if self.as_json:
            self._json_error({"log": {"level": level, "name": name, "text": text}})
        else:
            self.say((f"{level:<8}", "bold"), (f"{name}: ", "dim"), text)

    def error(self, error: BaseException, *, code: int) -> None:
        """Show an error that ended the command: what, where, remedy."""
        words = told(error)
        if self.as_json:
            self._json_error({"error": {**words, "exit_code": code}})
            return
        self.say(("error: ", "bold red"), words["what"])
        if words["where"]:
            self.say(("  where:  ", "dim"), words["where"])
        if words["remedy"]:
            self.say(("  remedy: ", "dim"), words["remedy"])

    def _json_error(self, value: object) -> None:
        text = to_json(value).decode()
        sys.stderr.write((_escaped(text) if sys.stderr.isatty() else text) + "\n")

    def _line(self, stream: TextIO, parts: Sequence[Cell], style: str) -> None:
        if not _styled(stream):
            stream.write("".join(_plain_text(part) for part in parts) + "\n")
            return
        from rich.text import Text

        console = self.out if stream is self._results else self.err
        console.print(Text.assemble(*map(_styled_text, parts), style=style), soft_wrap=True)

    def _write(self, data: bytes) -> None:
        self._results.flush()
        self._results.buffer.write(data)
        self._results.buffer.flush()


def told(error: BaseException) -> dict[str, str]:
    """An error in words: what, where, remedy."""
    if isinstance(error, ToolkeelError):
        what, where, remedy = error.what, error.where, error.remedy
    elif isinstance(error, OSError):
        what, where, remedy = error.strerror or str(error), str(error.filename or ""), ""
    else:
        what, where = f"{type(error).__name__}: {error}", ""
        remedy = "This is a fault of toolkeel, or of a plugin's command; --trace shows where it happened"
    return {"what": what, "where": where, "remedy": remedy}


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        made.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        made.add_row(*(Text(*_styled_text(cell)) for cell in row))
    return made


def _plain_text(cell: Cell) -> str:
    return visible(cell if isinstance(cell, str) else cell[0])


def _styled_text(cell: Cell) -> tuple[str, str]:
    return (visible(cell), "") if isinstance(cell, str) else (visible(cell[0]), cell[1])


def _styled(stream: TextIO) -> bool:
    """Whether a person looks at it on a terminal. Elsewhere rich is not even imported."""
    return stream.isatty() or bool(os.environ.get("FORCE_COLOR"))


def to_json(value: object, *, indented: bool = False) -> bytes:
    """JSON of whatever a command knows: structs, paths, mappings; what it cannot express is written as text."""
    options = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if indented else 0)
    try:
        return orjson.dumps(value, default=_plain, option=options)
    except TypeError:  # text that is no UTF-8, or whole numbers over 64 bits
        import json

        plain = json.dumps(value, default=_plain, ensure_ascii=True, indent=2 if indented else None)
        return plain.encode()


def _plain(value: Any) -> Any:
    import msgspec

    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=str)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_VISIBLE = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
"""Control characters, also those that turn the direction of writing, by which text can look like other text."""


def visible(text: str) -> str:
    """Text whose control characters are shown instead of obeyed, so that no tool's output can drive a terminal."""
    return text.translate(_VISIBLE)


def _escaped(text: str) -> str:
    """JSON without the control characters that JSON itself leaves as they are."""
    return text.translate({code: f"\\u{code:04x}" for code in _VISIBLE if code >= 0x7F})


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
