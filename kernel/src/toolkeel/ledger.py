"""The states of calls: who writes them, who is told."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import events
from .calls import FINAL, Status
from .delivery import Delivery
from .hooks import HookSet
from .live import Live
from .outputs import Failure


class Ledger:
    """The only writer of final statuses. Observers get each change."""

    def __init__(self, hooks: Callable[[], HookSet], delivery: Delivery) -> None:
        self._hooks = hooks
        self._delivery = delivery

    def refuse(self, live: Live, text: str, by: str, setting: str = "", plugin: str = "") -> None:
        """End a call as refused: the words for the model, the stage or rule, the setting, the plugin."""
        live.reason = text
        live.refused_by = f"{by} ({plugin})" if plugin and plugin != by else by
        live.setting = setting
        place = f" [{setting}]" if setting else ""
        live.result = Failure(f"{live.name[:100]} was not run: {text}{place}", "refused")
        self.finish(live, "refused")

    def finish(self, live: Live, status: Status) -> None:
        """End a call; raises where it has ended before."""
        if live.status in FINAL:
            raise AssertionError(f"call {live.id} ended twice: {live.status}, {status}")
        live.status = status
        live.ended = time.time()
        hookset = self._hooks()
        record = live.record_at_end = live.record()
        if hookset.changed:
            self._delivery.emit("on_call_changed", events.CallChanged(time=live.ended, record=record))
        if hookset.ended:
            self._delivery.emit("on_tool_call_end", events.ToolCallEnded(time=live.ended, record=record))

    def starting(self, live: Live, hookset: HookSet) -> None:
        """Tell that a call runs from now on."""
        record = live.record()
        when = record.started or record.created
        if hookset.changed:
            self._delivery.emit("on_call_changed", events.CallChanged(time=when, record=record))
        if hookset.starting:
            self._delivery.emit("on_tool_call_start", events.ToolCallStarting(time=when, record=record))

    def changed(self, live: Live) -> None:
        """Tell of a change of status."""
        record = live.record()
        when = record.ended or record.started or record.created
        self._delivery.emit("on_call_changed", events.CallChanged(time=when, record=record))
