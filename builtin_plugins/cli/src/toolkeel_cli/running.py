"""Runs a command's function: under trio where it is async, with interrupts that cancel and errors that are shown."""

from __future__ import annotations

import _thread
import inspect
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import trio

from .exits import Exit, cause, exit_for
from .options import Options
from .screen import Screen, visible


def run(function: Callable[..., Any], options: Options, arguments: dict[str, Any]) -> int:
    """Run a command's function; whatever it raises is shown and becomes an exit code."""
    _show_log(Screen(as_json=options.json), options.verbose)
    try:
        answer = function(**arguments)
        if inspect.isawaitable(answer):
            answer = _run_async(answer)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - here every error ends
        return _ended_by(cause(error), options)
    return int(answer or Exit.OK)


def _show_log(screen: Screen, verbose: int) -> None:
    """What the kernel warns of, a quarantined plugin for one, is a note for a person and nothing for a machine.

    Whoever asks for more with ``-v`` gets it, as JSON where the rest is: the log of the kernel and of plugins from INFO
    on, and with a second ``-v`` from DEBUG on.
    """
    import logging

    class Log(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if verbose:
                screen.log(record.levelname, record.name, self.format(record))
            else:
                screen.note(record.getMessage())

    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    log = logging.getLogger("toolkeel")
    log.handlers[:] = [Log(level)]
    log.setLevel(level)
    log.propagate = False


def keep_warnings_quiet() -> None:
    """For commands that show all of it themselves; ``-v`` asks for them all the same."""
    import logging

    log = logging.getLogger("toolkeel")
    if log.level == logging.WARNING:
        log.setLevel(logging.CRITICAL)


def _run_async(awaitable: Awaitable[Any]) -> Any:
    async def main() -> Any:
        with trio.CancelScope() as whole, _interrupts(whole) as interrupted:
            answer = await awaitable
            if not interrupted():
                return answer
        raise KeyboardInterrupt

    return trio.run(main)


@contextmanager
def _interrupts(whole: trio.CancelScope) -> Generator[Callable[[], bool], None, None]:
    """The first signal cancels in order. The second ends the process, whatever Python is doing.

    The second is left to the system: a handler of Python's would wait for whatever blocks the main thread. The first
    cannot wait for that either: where the loop does not come round in time, its thread ends the process.
    """
    token = trio.lowlevel.current_trio_token()
    came_round = threading.Event()
    seen: list[bool] = []

    def cancel() -> None:
        came_round.set()
        (_work[-1] if _work else whole).cancel()

    def end_what_is_stuck() -> None:
        if not came_round.wait(PATIENCE):
            os.write(2, b"interrupted; what was running did not let go and was ended\n")
            os._exit(Exit.INTERRUPTED)

    def first(*_: object) -> None:
        seen.append(True)
        for number in _STOPPING:
            signal.signal(number, signal.SIG_DFL)
        token.run_sync_soon(cancel)
        _thread.start_new_thread(end_what_is_stuck, ())  # takes no lock that the interrupted code may hold

    before = {number: signal.signal(number, first) for number in _STOPPING}
    try:
        yield lambda: bool(seen)  # work that ended just then was interrupted all the same
    finally:
        came_round.set()
        for number, handler in before.items():
            signal.signal(number, handler)


PATIENCE = 5.0
"""Seconds that an interrupt waits for blocking work in the event loop to end."""
_STOPPING = (signal.SIGINT, signal.SIGTERM)


_work: list[trio.CancelScope] = []


@contextmanager
def interruptible() -> Generator[None, None, None]:
    """What an interrupt ends while the block runs, instead of the whole command.

    Whoever opened something around the block can so close it in order: a kernel still tells its observers that calls
    were cancelled.

    Raises:
        KeyboardInterrupt: the block was interrupted.
    """
    with trio.CancelScope() as scope:
        _work.append(scope)
        try:
            yield
        finally:
            _work.remove(scope)
    if scope.cancelled_caught:
        raise KeyboardInterrupt


def _ended_by(error: BaseException, options: Options) -> int:
    if isinstance(error, SystemExit):
        raise error
    code = exit_for(error)
    if code == Exit.BROKEN_PIPE:
        silence_stdout()
        return code
    screen = Screen(as_json=options.json)
    if options.trace and code != Exit.INTERRUPTED:
        import traceback

        sys.stderr.write(visible("".join(traceback.format_exception(error))))
    if code == Exit.INTERRUPTED:
        screen.note("interrupted; what was running is cancelled")
    else:
        screen.error(error, code=code)
    return code


def silence_stdout() -> None:
    """Nobody reads standard output any more: let the rest of it, and Python's last flush, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
