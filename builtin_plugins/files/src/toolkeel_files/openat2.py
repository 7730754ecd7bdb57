"""The system call openat2: the Linux kernel itself keeps an opening beneath a folder."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_NUMBER = 437  # the same on every architecture that Python 3.11 supports
_RESOLVE = 0x02 | 0x04 | 0x08  # NO_MAGICLINKS, NO_SYMLINKS, BENEATH
_AT_FDCWD = -100
_RETRIES = 100

UNUSABLE = (errno.ENOSYS, errno.EPERM)
"""What systems answer that lack the call, and container profiles that answer so to what they do not know."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _system_call() -> ctypes._NamedFuncPointer | None:  # pyright: ignore[reportPrivateUsage]
    if sys.platform != "linux":
        return None
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)
    call.restype = ctypes.c_long
    return call


_CALL = _system_call()


def open_beneath(folder: int, path: str, flags: int) -> int:
    """Open ``path`` relative to the open ``folder``: never above it, and through no link at all.

    Raises:
        OSError: what the system says. ``ELOOP``: there is a link; ``EXDEV``: the path leads out; ``ENOSYS``: this
            system has no such call, or does not let this process use it.
    """
    if _CALL is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    how = _How(flags | os.O_CLOEXEC, 0, _RESOLVE)
    code = errno.EAGAIN
    for _ in range(_RETRIES):
        opened: int = _CALL(_NUMBER, folder, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
        if opened >= 0:
            return opened
        code = ctypes.get_errno()
        # EAGAIN: somewhere a folder was renamed while '..' was being judged, which says nothing about this path
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)


def usable() -> bool:
    """Whether the call works here."""
    try:
        os.close(open_beneath(_AT_FDCWD, ".", os.O_RDONLY | os.O_DIRECTORY))
    except OSError as error:
        return error.errno not in UNUSABLE
    return True
