"""Searching the text of files, bounded in time, bytes and matches."""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .beneath import FILE, Place, closing
from .charset import detect
from .finding import Find
from .names import Names
from .patterns import Glob, Ignored
from .shown import count, shown, size
from .stopping import Watch
from .walking import Entry, Walk

_SAMPLE = 8_192
_PIECE = 8 << 20
"""Larger files are searched in pieces of about this size, cut between lines."""
_LONGEST_LINE = 4 * _PIECE
_LINE_BYTES = 300
_PROGRESS_EVERY = 500


class Query(NamedTuple):
    """What is looked for, in files that ``glob`` means, with ``context`` lines around each match.

    ``everything``: also in what .gitignore files and the settings leave out; never in what is protected.
    """

    find: Find
    glob: Glob | None
    context: int
    limit: int
    everything: bool


class _Hit(NamedTuple):
    line: int
    begin: int
    end: int
    match: int


class Searcher:
    """One search, over one or more places.

    Args:
        query: what is looked for.
        names: what is protected.
        skips: whether a folder of this name is left out.
        watch: how long it may take.
        most_bytes: how much it may read.
        progress: told now and then how many files were searched.

    ``lines`` is the answer, the matches of a file together: ``path:line: text``, and ``path-line- text`` for context.
    """

    def __init__(
        self,
        query: Query,
        names: Names,
        skips: Callable[[str], bool],
        watch: Watch,
        most_bytes: int,
        progress: Callable[[int], None],
    ) -> None:
        self.lines: list[str] = []
        self._query = query
        self._names = names
        self._skips = skips
        self._watch = watch
        self._most_bytes = most_bytes
        self._progress = progress
        self._matches = self._matched_files = self._files = self._bytes = 0
        self._left_out: Counter[str] = Counter()
        self._stopped = ""

    def search(self, place: Place, shown_as: str) -> None:
        """Search the file at a place, which the answer calls ``shown_as``, or the folder, whose paths begin with it."""
        if self._stopped:
            return
        if place.is_folder:
            opened = place.open_folder()
            with closing(opened):
                self._search_folder(opened, place, shown_as)
        else:
            opened, status = place.open_file()
            with closing(opened):
                self._search_file(opened, status.st_size, shown_as)

    def summary(self) -> str:
        """What was found, gone through and left out, and where it stopped."""
        found = (
            f"{count(self._matches, 'match', 'matches')} in {count(self._matched_files, 'file')}"
            if self._matches
            else "no match"
        )
        notes = [f"{count(self._files, 'file')} searched, {size(self._bytes)}"]
        if self._left_out:
            left_out = (f"{number:,} {why}" for why, number in sorted(self._left_out.items()))
            notes.append(f"left out: {', '.join(left_out)}")
        if self._stopped:
            notes.append(self._stopped)
        return "; ".join([found, *notes])

    def _search_folder(self, opened: int, place: Place, prefix: str) -> None:
        below = "" if place.path == "." else f"{place.path}/"
        ignored = Ignored() if self._query.everything else _ignored_above(place)
        walk = Walk(
            self._watch,
            lambda entry: self._enters(entry, ignored, below),
            None if self._query.everything else lambda folder, path: ignored.enter(folder, below + path),
        )
        with contextlib.closing(walk.entries(opened)) as entries:
            for entry in entries:
                if entry.kind == "file" and self._wants(entry, ignored, below):
                    self._search_entry(entry, prefix + entry.path)
                    if self._stopped:
                        break
        if walk.cut_short:
            self._stop(f"{self._watch.seconds:g} s", "")
        self._left_out.update(walk.left_out)

    def _enters(self, entry: Entry, ignored: Ignored, below: str) -> bool:
        if self._names.protection(entry.name) == "protected":
            self._left_out["protected"] += 1
            return False
        if self._query.everything:
            return True
        if self._skips(entry.name) or ignored.ignores(below + entry.path, folder=True):
            self._left_out["ignored"] += 1
            return False
        return True

    def _wants(self, entry: Entry, ignored: Ignored, below: str) -> bool:
        if self._query.glob and not self._query.glob.matches(entry.path):
            return False
        if self._names.protection(entry.name) == "protected":
            self._left_out["protected"] += 1
            return False
        if not self._query.everything and ignored.ignores(below + entry.path, folder=False):
            self._left_out["ignored"] += 1
            return False
        return True

    def _search_entry(self, entry: Entry, path: str) -> None:
        try:
            opened = os.open(entry.name, os.O_RDONLY | FILE, dir_fd=entry.folder)
        except OSError:
            self._left_out["unreadable"] += 1
            return
        with closing(opened):
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                self._left_out["hard links or special"] += 1
                return
            self._search_file(opened, status.st_size, path)

    def _search_file(self, opened: int, length: int, path: str) -> None:
        """Search an open file; a match that runs over the end of a piece of a huge line may be missed."""
        before = self._matches
        line = 1
        try:
            start = os.read(opened, min(length + 1, _PIECE))
            text = _plain_text(opened, start)
            if text is None:
                self._left_out["binary"] += 1
                return
            for piece in _pieces(opened, text, more=length >= _PIECE):
                self._bytes += len(piece)
                hits = list(self._hits(piece, line))
                self._render(path, piece, hits)
                if self._stopped or self._over(path):
                    break
                line += piece.count(b"\n")
        except OSError:
            self._left_out["unreadable"] += 1
            return
        self._files += 1
        self._matched_files += self._matches > before
        if self._files % _PROGRESS_EVERY == 0:
            self._progress(self._files)

    def _hits(self, data: bytes, line: int) -> Iterator[_Hit]:
        find = self._query.find
        at = counted = 0
        while at < len(data):
            found = find(data, at)
            if found is None or found[0] == len(data):
                return
            begin = data.rfind(b"\n", 0, found[0]) + 1
            end = data.find(b"\n", found[0])
            end = len(data) if end < 0 else end
            line += data.count(b"\n", counted, begin)
            counted = begin
            if self._matches == self._query.limit:
                self._stop(count(self._matches, "match", "matches"), "")
                return
            self._matches += 1
            yield _Hit(line, begin, end, found[0])
            at = end + 1

    def _render(self, path: str, data: bytes, hits: list[_Hit]) -> None:
        """Write the lines of hits with their context, none twice; groups that do not touch are set apart."""
        name = shown(path)
        done = 0
        for index, hit in enumerate(hits):
            above = _lines_above(data, hit.begin, done, self._query.context)
            first = above[0][0] if above else hit.begin
            if self._query.context and self.lines and (first > done or not index):
                self.lines.append("--")
            for distance, (begin, end) in zip(range(len(above), 0, -1), above, strict=True):
                self.lines.append(f"{name}-{hit.line - distance}- {_cut(data, begin, end, begin)}")
            self.lines.append(f"{name}:{hit.line}: {_cut(data, hit.begin, hit.end, hit.match)}")
            done = hit.end + 1
            limit = hits[index + 1].begin if index + 1 < len(hits) else len(data)
            for distance in range(1, self._query.context + 1):
                if done >= limit:
                    break
                end = data.find(b"\n", done)
                end = len(data) if end < 0 else end
                self.lines.append(f"{name}-{hit.line + distance}- {_cut(data, done, end, done)}")
                done = end + 1

    def _over(self, path: str) -> bool:
        if self._bytes >= self._most_bytes:
            self._stop(size(self._bytes), path)
        elif self._watch.over:
            self._stop(f"{self._watch.seconds:g} s", path)
        return bool(self._stopped)

    def _stop(self, after: str, path: str) -> None:
        at = f", in {shown(path)}" if path else ""
        self._stopped = f"stopped after {after}{at}: narrow the query, the path or the glob"


def _ignored_above(place: Place) -> Ignored:
    """The .gitignore rules above a place; none where they leave the place itself out, since it was asked for."""
    ignored = Ignored()
    for depth in range(len(place.parts)):
        try:
            folder = place.root.descend(place.parts[:depth])
        except OSError:
            return ignored  # moved meanwhile
        with closing(folder):
            ignored.enter(folder, "".join(f"{part}/" for part in place.parts[:depth]))
        if ignored.ignores("/".join(place.parts[: depth + 1]), folder=True):
            return Ignored()
    return ignored


def _plain_text(opened: int, start: bytes) -> bytes | None:
    """The start of a file as UTF-8, all of it where it is UTF-16 or UTF-32; ``None`` where it is no text."""
    if b"\0" not in start[:_SAMPLE]:
        return start.removeprefix(codecs.BOM_UTF8)
    charset = detect(start, whole=False)
    if charset is None or os.read(opened, 1):  # such a text of several pieces counts as none
        return None
    return charset.show(start).encode()


def _pieces(opened: int, data: bytes, *, more: bool) -> Iterator[bytes]:
    """``data`` and what follows it in the file, line ends plain, in pieces that end with a line."""
    while data:
        following = os.read(opened, _PIECE) if more else b""
        end = data.rfind(b"\n") + 1 if following else len(data)
        if not end and len(data) > _LONGEST_LINE:
            end = len(data)
        if end:
            yield data[:end].replace(b"\r\n", b"\n") if b"\r\n" in data else data[:end]
        data = data[end:] + following


def _lines_above(data: bytes, begin: int, floor: int, number: int) -> list[tuple[int, int]]:
    """The spans of up to ``number`` lines before an index, none of them above ``floor``."""
    spans: list[tuple[int, int]] = []
    while len(spans) < number and begin > floor:
        end = begin - 1
        begin = max(data.rfind(b"\n", 0, end) + 1, floor)
        spans.append((begin, end))
    return spans[::-1]


def _cut(data: bytes, begin: int, end: int, match: int) -> str:
    """A line as text, a long one cut around the match."""
    if end - begin <= _LINE_BYTES:
        return data[begin:end].decode(errors="replace")
    low = max(begin, min(match - _LINE_BYTES // 3, end - _LINE_BYTES))
    high = min(end, low + _LINE_BYTES)
    text = data[low:high].decode(errors="ignore")
    return f"{'…' if low > begin else ''}{text}{'…' if high < end else ''}"
