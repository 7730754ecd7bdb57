"""Putting a file's new content in place of the old as one step: whoever looks sees the old or the new, whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from toolkeel import ToolError

from .beneath import FILE, LISTED, Place, refuse_special
from .names import PathRefused
from .shown import reason, shown

_COMMIT = threading.Lock()
_BUSY_SECONDS = 10.0

_KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access", "security.selinux")
"""Extended attributes that a new content keeps; others (capabilities) fall with the old content, as in any write."""


def write(place: Place, content: Iterable[bytes], *, before: os.stat_result | None = None, new: bool = False) -> None:
    """Make ``content`` the file at a place: written aside, synced, then moved there. A failure changes nothing.

    A replaced file keeps its permission bits, owner (where that is allowed), access list and user attributes.

    Args:
        place: where; its file, if there is one, is regular and has one name.
        content: the bytes, in pieces.
        before: what the file was when it was read; where it is no longer that, nothing is written.
        new: whether the file must not exist yet.

    Raises:
        ToolError: it changed meanwhile, exists already, may not be written, or the disk is full.
    """
    try:
        _write(place, content, before, new)
    except OSError as error:
        raise ToolError(
            f"cannot be written: {reason(error)}", where=shown(place.path), remedy="Nothing was changed"
        ) from None


def _write(place: Place, content: Iterable[bytes], before: os.stat_result | None, new: bool) -> None:
    old = place.status
    if old is not None:
        refuse_special(old, place.path)
        _ask_permission(place)
    with _Draft(place.folder, 0o666 if old is None else 0o600) as draft:
        for piece in content:
            draft.write(piece)
        if old is not None:
            draft.take_after(place.name, old)
        draft.sync()
        with _commit(place):
            now = place.look_again()
            if now is not None:
                refuse_special(now, place.path)
            if before is not None and (now is None or not same_content(before, now)):
                raise ToolError(
                    "the file was changed by someone else meanwhile, and nothing was written",
                    where=shown(place.path),
                    remedy="Read it again",
                )
            if new:
                draft.become_new(place.name)
            else:
                draft.replace(place.name)
    _sync_folder(place.folder)


@contextmanager
def _commit(place: Place) -> Generator[None]:
    """Hold the folder while a file is compared with what was read of it and replaced: of two edits none is lost.

    Threads of this process wait for each other, and processes for each other by a lock on the folder, where its file
    system has locks.
    """
    with _COMMIT:
        folder = os.open(".", LISTED, dir_fd=place.folder)
        try:
            _lock(folder, place)
            yield
        finally:
            os.close(folder)


def _lock(folder: int, place: Place) -> None:
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ToolError(
                    f"another program has held the folder for {_BUSY_SECONDS:g} s, and nothing was written",
                    where=shown(place.path),
                    remedy="Try again",
                ) from None
            time.sleep(0.002)
        except OSError:  # a file system without locks
            return
        else:
            return


def same_content(before: os.stat_result, now: os.stat_result) -> bool:
    """Whether a file is the one that was looked at before, and was not written to since."""
    return (before.st_dev, before.st_ino, before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
    )  # fmt: skip


def _ask_permission(place: Place) -> None:
    """Moving a file over another asks only the folder; a file that may not be written shall stay."""
    try:
        os.close(os.open(place.name, os.O_WRONLY | FILE, dir_fd=place.folder))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathRefused("the file was swapped for a link meanwhile", where=shown(place.path)) from None
        raise


class _Draft:
    """A file on its way. It has no name until it is done, so that a killed process leaves nothing behind.

    Where the system has no nameless files it is a hidden one beside its goal.
    """

    def __init__(self, folder: int, mode: int) -> None:
        self._folder = folder
        self._name = ""
        self._opened = self._open(mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._opened)
        if self._name:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._folder)

    def write(self, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(self._opened, rest) :]

    def take_after(self, name: str, old: os.stat_result) -> None:
        """Take over what belongs to the file rather than to its content."""
        mine = os.fstat(self._opened)
        if (old.st_uid, old.st_gid) != (mine.st_uid, mine.st_gid):
            with contextlib.suppress(PermissionError):
                os.fchown(self._opened, old.st_uid, old.st_gid)
        # like any write, this one ends a file's setuid and setgid
        os.fchmod(self._opened, stat.S_IMODE(old.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
        if hasattr(os, "listxattr"):
            self._take_attributes(name)

    def _take_attributes(self, name: str) -> None:
        # a disk may have none, or not let us: the content matters more
        with contextlib.suppress(OSError):
            source = os.open(name, os.O_RDONLY | FILE, dir_fd=self._folder)
            try:
                for attribute in os.listxattr(source):
                    if attribute.startswith(_KEPT_ATTRIBUTES):
                        os.setxattr(self._opened, attribute, os.getxattr(source, attribute))
            finally:
                os.close(source)

    def sync(self) -> None:
        os.fsync(self._opened)

    def become_new(self, name: str) -> None:
        """Take the name, which nothing may have."""
        if not self._name:
            self._link(name)
            return
        # between these two a crash leaves both names, which makes the file unreadable here: a rename that does not
        # replace would be better, but is not to be had everywhere
        os.link(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        os.unlink(self._name, dir_fd=self._folder)
        self._name = ""

    def replace(self, name: str) -> None:
        """Take the name from whatever has it."""
        if not self._name:
            hidden = _hidden_name()
            self._link(hidden)
            self._name = hidden
        os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._name = ""

    def _open(self, mode: int) -> int:
        if NAMELESS:
            try:
                return os.open(".", _NAMELESS_FLAGS | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=self._folder)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                    raise
        self._name = _hidden_name()
        return os.open(self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE, mode, dir_fd=self._folder)

    def _link(self, name: str) -> None:
        os.link(f"/proc/self/fd/{self._opened}", name, dst_dir_fd=self._folder, follow_symlinks=True)


_NAMELESS_FLAGS = getattr(os, "O_TMPFILE", 0)
NAMELESS = bool(_NAMELESS_FLAGS) and os.path.exists("/proc/self/fd")
"""Whether files without a name can be made here, and given one."""


def _hidden_name() -> str:
    return f".{secrets.token_hex(8)}.toolkeel-draft"


def _sync_folder(folder: int) -> None:
    """Make the new name last; some file systems cannot, and some folders may be written but not opened."""
    with contextlib.suppress(OSError):
        opened = os.open(".", LISTED, dir_fd=folder)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
