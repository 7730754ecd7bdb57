"""Shows on standard error how far calls are, while they run."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from .screen import Screen, visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class Progress:
    """Bars on a terminal; elsewhere nothing, since nobody watches a log move. ``report`` may come from any thread."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = not screen.as_json and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            if self._bars is not None:
                self._bars.stop()

    def report(self, call: str, done: float, total: float | None, text: str) -> None:
        """Show that a call is so far."""
        if not self._shown:
            return
        with self._lock:
            bars = self._bars = self._bars or self._started()
            task = self._tasks.get(call)
            if task is None:
                task = self._tasks[call] = bars.add_task(visible(call), total=total)
            values: dict[str, Any] = {"completed": done, "total": total}
            bars.update(task, description=visible(f"{call}  {text}" if text else call), **values)

    def _started(self) -> Bars:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        bars = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
            console=self._screen.err, transient=True,
        )  # fmt: skip
        bars.start()
        return bars
