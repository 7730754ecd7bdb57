"""The entry of the command ``toolkeel``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .screen import Screen


def main() -> None:
    """Run the command line of this process; ends it with the exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; gives the exit code. See ``toolkeel_cli.exits``."""
    from typer.exceptions import Abort, TyperException

    from .app import main_group
    from .exits import Exit, cause, exit_for
    from .running import silence_stdout
    from .screen import Screen

    _open_what_is_closed()
    screen = Screen(as_json="--json" in arguments)
    try:
        _encode_leniently()
        code = main_group(screen).main(list(arguments), prog_name="toolkeel", standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        _usage_fault(error, screen)
        return Exit.USAGE
    except (KeyboardInterrupt, Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        return Exit.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - what goes wrong before a command runs ends here
        code = exit_for(cause(error))
        screen.error(cause(error), code=code)
    return int(code or 0)


def _open_what_is_closed() -> None:
    """Where the shell closed an output (``>&-``), what is written goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the life of the process


def _encode_leniently() -> None:
    """What an old terminal's encoding cannot say is replaced instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="replace")


def _usage_fault(error: Exception, screen: Screen) -> None:
    from .exits import Exit, UsageError

    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else "toolkeel"
    what = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    usage = context.get_usage().removeprefix("Usage: ") if context else ""
    screen.error(UsageError(what, where=usage, remedy=f"{path} --help"), code=Exit.USAGE)
