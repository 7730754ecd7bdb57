"""Runs a command's function: under trio where it is async, with interrupts that cancel and errors that are shown."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import trio

from .exits import Exit, cause, exit_for
from .options import Options
from .screen import Screen


def run(function: Callable[..., Any], options: Options, arguments: dict[str, Any]) -> int:
    """Run a command's function; whatever it raises is shown and becomes an exit code."""
    _show_warnings(Screen(as_json=options.json))
    try:
        answer = function(**arguments)
        if inspect.isawaitable(answer):
            answer = _run_async(answer)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - here every error ends
        return _ended_by(cause(error), options)
    return int(answer or Exit.OK)


def _show_warnings(screen: Screen) -> None:
    """What the kernel warns of, a quarantined plugin for one, is a note for a person and nothing for a machine."""
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            screen.note(record.getMessage())

    log = logging.getLogger("toolkeel")
    log.handlers[:] = [Notes(logging.WARNING)]
    log.setLevel(logging.WARNING)
    log.propagate = False


def keep_warnings_quiet() -> None:
    """For commands that show all of it themselves."""
    import logging

    logging.getLogger("toolkeel").setLevel(logging.CRITICAL)


def _run_async(awaitable: Awaitable[Any]) -> Any:
    async def main() -> Any:
        interrupted = False
        answer: Any = None

        async def listen(task_status: trio.TaskStatus[None]) -> None:
            nonlocal interrupted
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                task_status.started()
                async for _ in signals:
                    if interrupted:  # the second time is meant
                        os._exit(Exit.INTERRUPTED)
                    interrupted = True
                    (_work[-1] if _work else nursery.cancel_scope).cancel()

        async with trio.open_nursery() as nursery:
            await nursery.start(listen)
            answer = await awaitable
            nursery.cancel_scope.cancel()
        if interrupted:
            raise KeyboardInterrupt
        return answer

    return trio.run(main)


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

        traceback.print_exception(error)
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
