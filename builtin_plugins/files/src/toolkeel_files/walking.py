"""Going through a tree of folders by their descriptors, never through a link."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import Literal, NamedTuple

from .beneath import LISTED
from .stopping import Watch

Kind = Literal["file", "folder", "link", "other"]

_DEPTH = 100
_CROWD = 50_000


class Entry(NamedTuple):
    """One entry: an open folder, its name there, and its path below the start."""

    folder: int
    name: str
    path: str
    kind: Kind

    def status(self) -> os.stat_result:
        """What is there now, never what a link leads to."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)


class Walk:
    """One walk in the order of names, a folder's content right after the folder.

    Args:
        watch: ends the walk.
        enter: whether to go into a folder.
        entered: told of each folder that is gone into: its descriptor and its path with ``/`` at the end.

    ``left_out`` counts what could not be looked at, by reason; ``cut_short`` says that the watch ended the walk.
    """

    def __init__(
        self, watch: Watch, enter: Callable[[Entry], bool], entered: Callable[[int, str], None] | None = None
    ) -> None:
        self._watch = watch
        self._enter = enter
        self._entered = entered
        self.left_out: dict[str, int] = {}
        self.cut_short = False

    def entries(self, folder: int, prefix: str = "", depth: int = 0) -> Generator[Entry]:
        """The entries below an open folder, which stays the caller's. Each is good until the next is taken."""
        if self._entered:
            self._entered(folder, prefix)
        for name, kind in self._sorted(folder):
            entry = Entry(folder, name, prefix + name, kind)
            yield entry
            if kind == "folder" and self._enter(entry):
                yield from self._below(entry, depth)
            if self.cut_short or self._watch.over:
                self.cut_short = True
                return

    def leave_out(self, reason: str) -> None:
        """Count something that is not looked at."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def _below(self, entry: Entry, depth: int) -> Generator[Entry]:
        if depth >= _DEPTH:
            self.leave_out("too deep")
            return
        try:
            opened = os.open(entry.name, LISTED, dir_fd=entry.folder)
        except OSError:
            self.leave_out("unreadable")
            return
        try:
            yield from self.entries(opened, f"{entry.path}/", depth + 1)
        except PermissionError:
            self.leave_out("unreadable")
        finally:
            os.close(opened)

    def _sorted(self, folder: int) -> list[tuple[str, Kind]]:
        found: list[tuple[str, Kind]] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_text(entry.name):
                    found.append((entry.name, _kind(entry)))
                else:
                    self.leave_out("named in another encoding than UTF-8")
                if len(found) >= _CROWD:
                    self.leave_out(f"entries after the first {_CROWD:,} of a folder")
                    break
        found.sort()
        return found


def _is_text(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
