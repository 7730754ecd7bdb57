"""Which workspace folder a path means.

A path is relative (``src/a.py``), absolute inside a workspace folder, or names the folder (``api:src/a.py``; its name
is the last part of its path, with ``#2`` and so on where two are alike). A relative path means the first folder that
holds it, or the first folder of all where none does.
"""

from __future__ import annotations

import difflib
import itertools
import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from toolkeel import Key, ToolError

from .beneath import LISTED, PathMissing, Place, Root
from .names import Names, PathRefused, check_new
from .shown import shown

_NEAR_NAMES = 2_000


class Target(NamedTuple):
    """One reading of a path: a workspace folder, its name, and the path relative to it."""

    folder: Path
    name: str
    path: str


class Workspaces:
    """The registered folders of one session, in the operator's order.

    Args:
        folders: absolute, without links.
        names: what may not be touched in them.
        by_kernel: whether ``openat2`` may be used; the default is whether it works here.
    """

    def __init__(self, folders: Sequence[Path], names: Names, *, by_kernel: bool | None = None) -> None:
        if not folders:
            raise ToolError("this session has no workspace folder", remedy="Register one; the operator can")
        self._names = names
        self._by_kernel = by_kernel
        self._folders = named(folders)

    @property
    def several(self) -> bool:
        """Whether there is more than one folder, so that answers name them."""
        return len(self._folders) > 1

    @property
    def tops(self) -> tuple[str, ...]:
        """Each folder as a path that these tools take."""
        return tuple(f"{name}:." for name in self._folders) if self.several else (".",)

    def targets(self, path: str) -> tuple[Target, ...]:
        """Every reading of a path, the likeliest first.

        Raises:
            PathRefused: it is an absolute path elsewhere, or its text alone is refused.
        """
        self._names.check_text(path)
        return targets(path, self._folders)

    def find(self, path: str, *, writing: bool = False) -> Place:
        """What is at a path; the first folder that holds it.

        Raises:
            PathMissing: nothing is there, in any folder.
            PathRefused: the path leads out, goes through no folder, or is protected.
        """
        wanted = self.targets(path)
        misses: list[PathMissing] = []
        for target in wanted:
            self._check_text(target, writing)
            try:
                place = self._root(target).locate(target.path)
            except PathMissing as error:
                misses.append(error)
                continue
            if place.status is not None:
                return self._checked(place, writing)
            with place:
                misses.append(PathMissing("there is nothing at this path", where=shown(path), remedy=_near(place)))
        if len(wanted) == 1:
            raise misses[0]
        raise PathMissing(
            f"none of the workspace folders {', '.join(self._folders)} holds this path",
            where=shown(path),
            remedy=misses[0].remedy,
        )

    def find_or_make(self, path: str) -> Place:
        """What is at a path, for writing; where nothing is, a place for it, its folders made on the way.

        Raises:
            PathRefused: the path leads out, goes through no folder, is protected, or may not be made.
        """
        try:
            return self.find(path, writing=True)
        except PathMissing:
            target = self.targets(path)[0]
        if target.path.endswith(("/", "/.")):
            raise PathRefused("the path ends like a folder's", where=shown(path), remedy="Name a file in it")
        place = self._root(target).locate(target.path, make=self._admit)
        try:
            if place.status is None:
                self._admit(place.parts[:-1], place.parts[-1:])
        except ToolError:
            place.remove_made_folders()
            place.close()
            raise
        return self._checked(place, writing=True)

    def shown(self, place: Place) -> str:
        """How answers write a place: as a path that these tools take."""
        return f"{self.name(place)}:{place.path}" if self.several else place.path

    def prefix(self, place: Place) -> str:
        """How answers begin the paths of what lies in the folder at a place."""
        folder = "".join(f"{part}/" for part in place.parts)
        return f"{self.name(place)}:{folder}" if self.several else folder

    def name(self, place: Place) -> str:
        """The name of the folder that holds a place."""
        return next(name for name, folder in self._folders.items() if folder == place.root.path)

    def _root(self, target: Target) -> Root:
        return Root(target.folder, by_kernel=self._by_kernel)

    def _check_text(self, target: Target, writing: bool) -> None:
        self._names.check_use([part for part in target.path.split("/") if part not in ("", ".", "..")], writing=writing)

    def _checked(self, place: Place, writing: bool) -> Place:
        try:
            self._names.check_use(place.parts, writing=writing)
        except PathRefused:
            place.close()
            raise
        return place

    def _admit(self, there: Sequence[str], new: Sequence[str]) -> None:
        self._names.check_use((*there, *new), writing=True)
        check_new(new)


def _near(place: Place) -> str:
    """Names that the missing one may be a slip of."""
    try:
        folder = os.open(".", LISTED, dir_fd=place.folder)
    except OSError:
        return ""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, _NEAR_NAMES)]
    finally:
        os.close(folder)
    near = difflib.get_close_matches(place.name, names, 3)
    return f"Near it: {', '.join(map(shown, near))}" if near else "file_list shows what there is"


def named(folders: Sequence[Path]) -> Mapping[str, Path]:
    """The folders by name, in order."""
    seen: Counter[str] = Counter()
    by_name: dict[str, Path] = {}
    for folder in dict.fromkeys(folders):
        seen[folder.name] += 1
        by_name[folder.name if seen[folder.name] == 1 else f"{folder.name}#{seen[folder.name]}"] = folder
    return by_name


def targets(path: str, folders: Mapping[str, Path]) -> tuple[Target, ...]:
    """Every reading of a path in the named folders, the likeliest first.

    Raises:
        PathRefused: an absolute path that is in none of them.
    """
    if path.startswith("/"):
        return (_absolute(path, folders),)
    name, colon, rest = path.partition(":")
    if colon and name in folders:
        return (Target(folders[name], name, rest.lstrip("/") or "."),)
    return tuple(Target(folder, name, path) for name, folder in folders.items())


def _absolute(path: str, folders: Mapping[str, Path]) -> Target:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    for name, folder in sorted(folders.items(), key=lambda item: len(item[1].parts), reverse=True):
        own = list(folder.parts[1:])
        if parts[: len(own)] == own:
            inside = "/".join(parts[len(own) :])
            end = "/" if inside and path.endswith(("/", "/.")) else ""
            return Target(folder, name, inside + end or ".")
    raise PathRefused(
        "the path is in no workspace folder",
        where=shown(path),
        remedy=f"Use a path relative to the workspace ({', '.join(folders)})",
    )


def keys(path: str, folders: Sequence[Path]) -> list[Key]:
    """The resource keys that a call with this path may touch: a real path for each reading of it.

    Readings after the first that exists do not count; those before it do, since an earlier call of the same batch
    may make them.
    """
    try:
        wanted = targets(path, named(folders))
        found: list[Key] = []
        for target in wanted:
            # ``os.path.join`` is the point: '..' and links mean what the system makes of them
            at = os.path.join(target.folder, target.path)
            found.append(key(os.path.realpath(at)))
            if os.path.lexists(at):
                break
    except (ToolError, ValueError, OSError):  # a path that the call will refuse
        return root_keys(folders)
    return found


def root_keys(folders: Sequence[Path]) -> list[Key]:
    """The keys of everything in the folders."""
    return [key(str(folder)) for folder in folders]


def key(real_path: str) -> Key:
    """The resource key of a real path. Where the system takes two spellings for one file, so does the key."""
    if sys.platform in ("darwin", "win32"):
        real_path = unicodedata.normalize("NFC", real_path).casefold()
    return ("file", *Path(real_path).parts)
