"""The exit codes of the command, and which error gives which."""

from __future__ import annotations

from enum import IntEnum
from typing import cast

from toolkeel import ToolkeelError
from toolkeel.errors import ManifestError, PluginError, SettingsError


class Exit(IntEnum):
    """What the shell gets."""

    OK = 0
    FAILED = 1
    """A call failed, ``doctor`` found trouble, or the system refused something (a full disk, say)."""
    USAGE = 2
    """The command line, or what came on standard input, cannot be read."""
    SETTINGS = 3
    """The settings are wrong, or a plugin cannot be used and ``TOOLKEEL_STRICT=1`` is set."""
    REFUSED = 4
    """A call was refused."""
    INTERNAL = 5
    """A fault of toolkeel's own."""
    INTERRUPTED = 130
    """Ctrl-C or a termination signal; what ran was cancelled."""
    BROKEN_PIPE = 141
    """Whoever read the output stopped reading."""


class UsageError(ToolkeelError):
    """A command line, or input, that cannot be read."""


def exit_for(error: BaseException) -> Exit:
    """The exit code of an error that ended a command."""
    from .wire import WireError

    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return Exit.BROKEN_PIPE
    if isinstance(error, (UsageError, WireError)):
        return Exit.USAGE
    if isinstance(error, (SettingsError, ManifestError, PluginError)):
        return Exit.SETTINGS
    return Exit.FAILED if isinstance(error, (ToolkeelError, OSError)) else Exit.INTERNAL


def cause(error: BaseException) -> BaseException:
    """The one error that matters in a group: what a person did first, then what toolkeel says on purpose."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    causes = [cause(inner) for inner in group.exceptions]
    for kind in (KeyboardInterrupt, BrokenPipeError, ToolkeelError):
        for inner in causes:
            if isinstance(inner, kind):
                return inner
    return causes[0] if len(causes) == 1 else group
