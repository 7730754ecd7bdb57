"""The answers of calls: formatted, and spilled where they are large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from . import hooks, rendering
from .admission import call_of
from .calls import Answer, encodable
from .hooks import HookSet, Report, describe
from .live import Live
from .outputs import Media, Result, Spilled, Text
from .settings import KernelSettings

_SPILL_LIMIT = 30.0


class Answers:
    """Makes the answer of a call that ended. Nothing here changes its status."""

    def __init__(self, settings: KernelSettings, hooks: Callable[[], HookSet], report: Report) -> None:
        self._settings = settings
        self._hooks = hooks
        self._report = report

    def at_once(self, live: Live) -> bool:
        """Make the answer at once where the result is short text or a scalar, as most are."""
        result = live.result
        text = rendering.render_small(cast("Result", result))
        entry = live.entry
        if not text or len(text) > self._settings.max_result_chars or entry is None or entry.tool.spill == "always":
            return False
        if not text.isascii():
            text = encodable(text)
        live.delivering = True
        record = live.record_at_end or live.record()
        live.answer = Answer(live.model_id, live.name, live.status, text, cast("Result", result), record)
        return True

    async def make(self, live: Live) -> None:
        """Make the answer of a call that ended. Nothing here changes its status."""
        live.delivering = True
        result = cast("Result", live.result)
        ref = ""
        try:
            text = await rendering.render(result, live.batch.offer.request.format)
        except Exception as error:  # noqa: BLE001 - the call ended; only its text cannot be made
            text = f"{live.name} finished, but its result cannot be written as JSON: {describe(error)}"
        limit = self._settings.max_result_chars
        spill = live.entry.tool.spill if live.entry else "large"
        if not isinstance(text, str) or len(text) > limit or (spill == "always" and live.status == "completed"):
            text, ref = await self._shortened(live, text, limit, spill)
        text = encodable(cast("str", text))
        shown = result if not ref or isinstance(result, Media) else Text(text)
        record = live.record_at_end or live.record()
        live.answer = Answer(live.model_id, live.name, live.status, text or rendering.EMPTY, shown, record, ref)

    async def _shortened(self, live: Live, text: str | bytes, limit: int, spill: str) -> tuple[str, str]:
        if isinstance(text, bytes) and len(text) <= limit and spill != "always":
            return text.decode("utf-8", "replace"), ""
        if spill == "never":
            return (text if isinstance(text, str) else text.decode("utf-8", "replace")), ""
        content = text.encode("utf-8", "replace") if isinstance(text, str) else text
        if spill != "always" and len(content) <= 4 * limit:
            whole = content.decode("utf-8", "replace")
            if len(whole) <= limit:
                return whole, ""
        if live.entry is not None and isinstance(live.arguments, Mapping):
            kind = rendering.media_type(cast("Result", live.result))
            spilled = await hooks.serve_async(
                self._hooks()["spill_result"],
                self._report,
                hooks.a(Spilled),
                _SPILL_LIMIT,
                call_of(live),
                content,
                kind,
            )
            if spilled is not None:
                return spilled.text, spilled.ref
        if len(content) <= limit:
            return content.decode("utf-8", "replace"), ""
        head = content[: 4 * limit].decode("utf-8", "ignore")[:limit]
        hidden = len(content) - len(head.encode())
        return f"{head}\n[{hidden:,} more bytes were cut: no active plugin stores large results]", ""
