"""Listing a folder: sorted, bounded, links shown as links."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import NamedTuple

from toolkeel import ToolError

from .beneath import Place, kind_of
from .names import Names
from .patterns import Glob
from .shown import count, reason, shown, size
from .stopping import Watch
from .walking import Entry, Walk


class Listed(NamedTuple):
    """What is asked for: entries that the pattern means, so many levels down (0: all), at most ``limit``."""

    pattern: Glob | None
    depth: int
    hidden: bool
    limit: int


class Listing(NamedTuple):
    """The lines of an answer, and notes on what is not in it."""

    lines: list[str]
    notes: list[str]


class Lister:
    """Lists folders.

    Args:
        names: what is protected; it is shown, and not gone into.
        skips: whether a folder of this name is not gone into.
        link_leads: says in words where the link at a path below the folder leads, if it may not be followed.
        watch: how long it may take.
    """

    def __init__(
        self, names: Names, skips: Callable[[str], bool], link_leads: Callable[[Place, str], str], watch: Watch
    ) -> None:
        self._names = names
        self._skips = skips
        self._link_leads = link_leads
        self._watch = watch

    def list(self, place: Place, prefix: str, wanted: Listed) -> Listing:
        """List the folder at a place; ``prefix`` begins each path of the answer."""
        walk = Walk(self._watch, lambda entry: self._goes_deeper(entry, wanted) and not self._closed(entry))
        lines: list[str] = []
        notes: list[str] = []
        hidden = 0
        opened = place.open_folder()
        try:
            with contextlib.closing(walk.entries(opened)) as entries:
                for entry in entries:
                    if not wanted.hidden and _is_hidden(entry):
                        hidden += 1
                    elif wanted.pattern and not wanted.pattern.matches(entry.path, folder=entry.kind == "folder"):
                        continue
                    elif len(lines) == wanted.limit:
                        most = count(wanted.limit, "entry", "entries")
                        notes.append(
                            f"stopped after {most}, before {shown(entry.path)}: narrow the path or the pattern"
                        )
                        break
                    else:
                        lines.append(self._line(place, prefix, entry, wanted))
        except OSError as error:
            raise ToolError(f"cannot be listed: {reason(error)}", where=shown(place.path)) from None
        finally:
            os.close(opened)
        if walk.cut_short:
            notes.append(f"stopped after {self._watch.seconds:g} s")
        if hidden:
            notes.append(f"{count(hidden, 'hidden entry', 'hidden entries')} left out")
        notes += [f"{number:,} left out ({why})" for why, number in walk.left_out.items()]
        return Listing(lines, notes)

    def _line(self, place: Place, prefix: str, entry: Entry, wanted: Listed) -> str:
        path = shown(prefix + entry.path)
        if entry.kind == "link":
            return f"{path} -> {self._target(place, entry)}"
        if self._names.protection(entry.name) == "protected":
            return f"{path}{'/' if entry.kind == 'folder' else ''}  (protected)"
        if entry.kind == "folder":
            return f"{path}/  (not entered)" if self._goes_deeper(entry, wanted) and self._closed(entry) else f"{path}/"
        try:
            status = entry.status()
        except OSError:
            return f"{path}  (went away)"
        return f"{path}  ({size(status.st_size) if entry.kind == 'file' else kind_of(status)})"

    def _target(self, place: Place, entry: Entry) -> str:
        try:
            target = shown(os.readlink(entry.name, dir_fd=entry.folder))
        except OSError:
            return "?"
        note = self._link_leads(place, entry.path)
        return f"{target}  ({note})" if note else target

    def _goes_deeper(self, entry: Entry, wanted: Listed) -> bool:
        if wanted.depth and entry.path.count("/") + 1 >= wanted.depth:
            return False
        return wanted.hidden or not _is_hidden(entry)

    def _closed(self, entry: Entry) -> bool:
        return self._skips(entry.name) or self._names.protection(entry.name) == "protected"


def _is_hidden(entry: Entry) -> bool:
    return entry.name.startswith(".")
