"""Opening what lies beneath a workspace folder, and nothing else.

A path becomes a ``Place``: an open folder and one name in it. Whoever reads, writes or lists works through that
descriptor and never follows a link at that name, so that no link which is swapped in the meantime leads out.

A path without links takes one ``openat2``, by which the Linux kernel itself keeps it beneath the folder. A path with
links, and every path where that call is missing, is walked part by part without following: a link is read, its target
is judged, and the walk goes on from an open folder. Links that stay inside, absolute ones too, lead where they say.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from toolkeel import ToolError

from . import openat2
from .names import PathRefused
from .shown import reason, shown

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""How a folder is opened to go through it: not followed, not read, never waited for."""
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened to be listed or synced."""
FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""How a file is opened, besides the mode: not followed, never waited for."""

_LINKS = 40
_STEPS = 100_000
_NO_FOLLOW_CODES = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP))
"""What systems answer to opening a link, or something that is no folder, as a folder."""

Admit = Callable[[Sequence[str], Sequence[str]], None]
"""Asked before folders are made: the real parts that exist, the names that are new. Refuses by raising."""


@contextlib.contextmanager
def closing(opened: int) -> Generator[None]:
    """Close a descriptor at the end."""
    try:
        yield
    finally:
        os.close(opened)


class PathMissing(ToolError):
    """Nothing is at the path."""


class Place:
    """Where a path really leads. A context manager: it holds open folders.

    ``folder`` is the open folder, ``name`` a name in it (``.`` where the path is that folder itself), ``parts`` the
    real names from the workspace folder down. ``status`` is what is there, never a link; ``None`` where nothing is.
    """

    def __init__(
        self, root: Root, folder: int, name: str, parts: tuple[str, ...], status: os.stat_result | None, made: int = 0
    ) -> None:
        self.root = root
        self.folder = folder
        self.name = name
        self.parts = parts
        self.status = status
        self._made = made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the folders."""
        os.close(self.folder)
        self.root.close()

    @property
    def path(self) -> str:
        """The real path from the workspace folder down, with ``/``; ``.`` for that folder."""
        return "/".join(self.parts) or "."

    @property
    def is_folder(self) -> bool:
        """Whether a folder is there."""
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    def look_again(self) -> os.stat_result | None:
        """What is at the name now; ``None`` where nothing is."""
        return _look(self.name, self.folder)

    def open_file(self) -> tuple[int, os.stat_result]:
        """Open for reading what is there, if it is a regular file with one name.

        Raises:
            PathRefused: it is something else, or it was swapped meanwhile.
            PathMissing: nothing is there.
        """
        if self.status is None:
            raise PathMissing("there is no such file", where=shown(self.path))
        refuse_special(self.status, self.path)  # before opening: opening alone can wake a device
        try:
            opened = os.open(self.name, os.O_RDONLY | FILE, dir_fd=self.folder)
        except FileNotFoundError:
            raise PathMissing("the file went away", where=shown(self.path)) from None
        except OSError as error:
            raise _swapped_or(error, self.path, "opened") from None
        status = os.fstat(opened)
        try:
            refuse_special(status, self.path)
        except PathRefused:
            os.close(opened)
            raise
        return opened, status

    def open_folder(self) -> int:
        """Open for listing the folder that is there."""
        try:
            return os.open(self.name, LISTED, dir_fd=self.folder)
        except OSError as error:
            raise _swapped_or(error, self.path, "listed") from None

    def follow_note(self, path: str) -> str:
        """What there is to say of the link at ``path`` from the workspace folder: empty where it may be followed."""
        try:
            with self.root.again().locate(path) as goal:
                return "" if goal.status else "to nothing"
        except PathMissing:
            return "to nothing"
        except ToolError:
            return "not followed: it leads out of the workspace or nowhere"

    def remove_made_folders(self) -> None:
        """Take back the folders that were made to get here, as far as they are empty."""
        for depth in range(len(self.parts) - 1, len(self.parts) - 1 - self._made, -1):
            try:
                above = self.root.descend(self.parts[: depth - 1])
            except OSError:
                return
            try:
                os.rmdir(self.parts[depth - 1], dir_fd=above)
            except OSError:
                return
            finally:
                os.close(above)


class Root:
    """An opened workspace folder.

    Args:
        path: the folder, absolute and without links.
        by_kernel: whether ``openat2`` may be used; the default is whether it works here.

    Raises:
        ToolError: the folder is gone, or is no longer reached without links.
    """

    by_kernel_here = openat2.usable()

    def __init__(self, path: Path, *, by_kernel: bool | None = None) -> None:
        self.path = path
        self._by_kernel = self.by_kernel_here if by_kernel is None else by_kernel
        self._descriptor = -1
        top = os.open(path.anchor, _FOLDER)
        try:
            self._descriptor = self._descend_from(top, path.parts[1:])
        except OSError as error:
            raise ToolError(
                f"the workspace folder cannot be opened: {reason(error)}",
                where=shown(str(path)),
                remedy="Register the real path of an existing folder, without links",
            ) from None
        finally:
            os.close(top)

    def close(self) -> None:
        """Close the folder."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def again(self) -> Root:
        """The same folder, opened once more."""
        return Root(self.path, by_kernel=self._by_kernel)

    def locate(self, path: str, *, make: Admit | None = None) -> Place:
        """Find where ``path`` (relative, with ``/``) leads. The place takes this root over and closes it.

        With ``make`` missing folders on the way are made, once it admits them.

        Raises:
            PathRefused: the path leads out, or through something that is no folder.
            PathMissing: a folder on the way is missing.
        """
        parts = [part for part in path.split("/") if part not in ("", ".")]
        folder_meant = path.endswith(("/", "/."))
        try:
            found = self._locate_by_kernel(parts, folder_meant) if self._by_kernel else None
            return found or _Walk(self, path, make).locate(parts, folder_meant)
        except BaseException:
            self.close()
            raise

    def descend(self, names: Sequence[str]) -> int:
        """Open the folder at ``names``, none of which may be a link."""
        return self._descend_from(self._descriptor, names)

    def inside(self, path: str) -> list[str] | None:
        """The parts of an absolute path beneath this folder by its text, ``None`` for a path elsewhere."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        own = list(self.path.parts[1:])
        return parts[len(own) :] if parts[: len(own)] == own else None

    def _descend_from(self, start: int, names: Sequence[str]) -> int:
        if self._by_kernel:
            try:
                return openat2.open_beneath(start, "/".join(names) or ".", _FOLDER)
            except OSError as error:
                if error.errno not in openat2.UNUSABLE:
                    raise
        folder = os.open(".", _FOLDER, dir_fd=start)
        for name in names:
            try:
                deeper = os.open(name, _FOLDER, dir_fd=folder)
            finally:
                os.close(folder)
            folder = deeper
        return folder

    def _locate_by_kernel(self, parts: Sequence[str], folder_meant: bool) -> Place | None:
        """The place when there is no link on the way and nothing to object to; else the walk finds out what it is."""
        if not parts or parts[-1] == "..":
            return None
        try:
            folder = openat2.open_beneath(self._descriptor, "/".join(parts[:-1]) or ".", _FOLDER)
        except OSError:
            return None
        try:
            status = _look(parts[-1], folder)
        except OSError:
            os.close(folder)
            return None
        if status is not None and (stat.S_ISLNK(status.st_mode) or (folder_meant and not stat.S_ISDIR(status.st_mode))):
            os.close(folder)
            return None
        return Place(self, folder, parts[-1], _without_dots(parts), status)


class _Walk:
    """One walk from the root down, following no link: each is read and its target walked in its place."""

    def __init__(self, root: Root, asked: str, make: Admit | None) -> None:
        self._root = root
        self._where = shown(asked)
        self._make = make
        self._folder = root.descend(())
        self._names: list[str] = []
        self._links = 0
        self._steps = 0
        self._made = 0

    def locate(self, parts: Sequence[str], folder_meant: bool) -> Place:
        try:
            return self._locate(list(reversed(parts)), folder_meant)
        except BaseException:
            os.close(self._folder)
            raise

    def _locate(self, pending: list[str], folder_meant: bool) -> Place:
        while pending:
            part = pending.pop()
            if part == "..":
                self._go_up()
            elif pending:
                self._go_down(part, pending)
            else:
                status = self._status(part)
                if status is not None and stat.S_ISLNK(status.st_mode):
                    folder_meant = self._follow(part, pending) or folder_meant
                    continue
                if status is not None and folder_meant and not stat.S_ISDIR(status.st_mode):
                    raise PathRefused(f"{kind_of(status)}, not a folder", where=self._where)
                return Place(self._root, self._folder, part, (*self._names, part), status, self._made)
        return Place(self._root, self._folder, ".", tuple(self._names), os.fstat(self._folder), self._made)

    def _status(self, part: str) -> os.stat_result | None:
        try:
            return _look(part, self._folder)
        except OSError as error:
            raise _swapped_or(error, self._where, "looked up") from None

    def _go_up(self) -> None:
        if not self._names:
            raise PathRefused(
                "the path leads out of the workspace folder", where=self._where, remedy="Stay inside the workspace"
            )
        self._names.pop()
        # '..' of an open folder would be asked of the system, and a renamed folder has another one
        self._enter(self._descend())

    def _descend(self) -> int:
        self._spend(len(self._names) + 1)
        try:
            return self._root.descend(self._names)
        except OSError as error:
            raise _swapped_or(error, self._where, "opened") from None

    def _go_down(self, part: str, pending: list[str]) -> None:
        self._spend(1)
        try:
            self._enter(os.open(part, _FOLDER, dir_fd=self._folder))
        except FileNotFoundError:
            self._make_folder(part, pending)
        except OSError as error:
            if error.errno not in _NO_FOLLOW_CODES:
                raise PathRefused(f"{shown(part)} cannot be opened: {reason(error)}", where=self._where) from None
            self._follow(part, pending)
            return
        self._names.append(part)

    def _make_folder(self, part: str, pending: list[str]) -> None:
        if self._make is None or ".." in pending:
            missing = "/".join((*self._names, part))
            raise PathMissing(f"there is no folder {shown(missing)}", where=self._where)
        self._make(self._names, (part, *reversed(pending)))
        try:
            os.mkdir(part, dir_fd=self._folder)
            self._made += 1
        except FileExistsError:
            pass  # someone else made it; whether it is a folder shows on opening
        except OSError as error:
            raise ToolError(f"folder {shown(part)} cannot be made: {reason(error)}", where=self._where) from None
        try:
            self._enter(os.open(part, _FOLDER, dir_fd=self._folder))
        except OSError as error:
            raise _swapped_or(error, self._where, "opened") from None

    def _follow(self, part: str, pending: list[str]) -> bool:
        """Put the target of a link before what is pending; says whether the target is written as a folder."""
        self._links += 1
        if self._links > _LINKS:
            raise PathRefused("the path goes through too many links, or round in a loop", where=self._where)
        try:
            target = os.readlink(part, dir_fd=self._folder)
        except OSError as error:
            if error.errno == errno.EINVAL:
                at = "/".join((*self._names, part))
                raise PathRefused(f"{shown(at)} is not a folder", where=self._where) from None
            raise _swapped_or(error, self._where, "opened") from None
        if target.startswith("/"):
            inside = self._root.inside(target)
            if inside is None:
                at = "/".join((*self._names, part))
                raise PathRefused(
                    f"{shown(at)} is a link that leads out of the workspace folder",
                    where=self._where,
                    remedy="Stay inside the workspace",
                )
            self._names.clear()
            self._enter(self._descend())
            steps = inside
        else:
            steps = [step for step in target.split("/") if step not in ("", ".")]
        pending.extend(reversed(steps))
        return target.endswith(("/", "/."))

    def _enter(self, folder: int) -> None:
        os.close(self._folder)
        self._folder = folder

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _STEPS:
            raise PathRefused("the path is too tangled", where=self._where, remedy="Use the plain path")


def kind_of(status: os.stat_result) -> str:
    """What kind of thing a status describes, in words: ``a folder``."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")


_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def refuse_special(status: os.stat_result, path: str) -> None:
    """Refuse what is no regular file, and a file with a second name: that may lie anywhere.

    Raises:
        PathRefused: it is a folder, a link, a pipe, a socket, a device, or has several hard links.
    """
    if not stat.S_ISREG(status.st_mode):
        remedy = "file_list shows what is in it" if stat.S_ISDIR(status.st_mode) else ""
        raise PathRefused(f"this is {kind_of(status)}, not a regular file", where=shown(path), remedy=remedy)
    if status.st_nlink > 1:
        raise PathRefused(
            f"the file has {status.st_nlink} hard links, so it may be a file outside the workspace",
            where=shown(path),
            remedy="Ask the user to replace it by a copy",
        )


def _look(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _without_dots(parts: Sequence[str]) -> tuple[str, ...]:
    """Exact only for a path that was opened without meeting a link."""
    names: list[str] = []
    for part in parts:
        if part == "..":
            names.pop()
        else:
            names.append(part)
    return tuple(names)


def _swapped_or(error: OSError, path: str, doing: str) -> ToolError:
    if error.errno in (*_NO_FOLLOW_CODES, errno.EXDEV):
        return PathRefused(f"something on the way changed while the path was being {doing}", where=shown(path))
    return PathRefused(f"cannot be {doing}: {reason(error)}", where=shown(path))
