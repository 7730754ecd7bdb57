"""The plugin `outputs`: its settings and hooks."""

from __future__ import annotations

from typing import Annotated

import trio
from pydantic import BaseModel, ConfigDict, Field

from toolkeel import Call, PluginContext, Preview, Scope, Spilled, Tool, hookimpl, narrowing, tool

from .answers import described
from .content import Content
from .reading import Reading
from .spilling import spilled_text, unkept_text
from .store import Output, OutputStore

_INLINE = 16 * 1024
"""Bytes up to which a preview is made on the loop; a thread costs more than such a preview."""


class Settings(BaseModel):
    """Settings of the plugin, under ``plugins.outputs:``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ttl: Annotated[float, Field(gt=0)] = Field(
        3_600, description="Seconds that an output is kept", json_schema_extra=narrowing("lower")
    )
    max_entries: Annotated[int, Field(ge=1)] = Field(
        200, description="Outputs kept for each agent; the oldest goes first", json_schema_extra=narrowing("lower")
    )
    max_bytes: Annotated[int, Field(ge=1)] = Field(
        512 * 1024 * 1024,
        description="Bytes kept in memory for all agents together; the oldest goes first",
        json_schema_extra=narrowing("lower"),
    )
    preview_chars: Annotated[int, Field(ge=400, le=100_000)] = Field(
        4_000, description="Characters of a preview", json_schema_extra=narrowing("lower")
    )
    preview_items: Annotated[int, Field(ge=1, le=100)] = Field(
        5, description="JSON items and keys, JSON lines and CSV rows in a preview", json_schema_extra=narrowing("lower")
    )
    preview_lines: Annotated[int, Field(ge=1, le=1_000)] = Field(
        60, description="Lines of text in a preview", json_schema_extra=narrowing("lower")
    )
    preview_xml_lines: Annotated[int, Field(ge=1, le=1_000)] = Field(
        10, description="Lines of XML in a preview", json_schema_extra=narrowing("lower")
    )
    answer_bytes: Annotated[int, Field(ge=40_000, le=1_000_000)] = Field(
        81_920, description="Bytes of one answer of read_output", json_schema_extra=narrowing("lower")
    )


class Outputs:
    """Keeps large results in memory and hands out previews; `read_output` reads on.

    The priority is late so that another plugin's preview of a type goes before the ones here, which know every type.
    """

    PRIORITY = 900

    def __init__(self, context: PluginContext) -> None:
        settings: Settings = context.settings
        self._settings = settings
        self._hooks = context.hooks
        self._store = OutputStore(
            ttl=settings.ttl, max_entries=settings.max_entries, max_bytes=settings.max_bytes, clock=context.clock
        )
        reading = Reading(self._store, settings.answer_bytes)
        self._tools = (tool(effect="read", group="outputs", spill="never")(reading.read_output),)

    @hookimpl
    def register_tools(self, scope: Scope) -> tuple[Tool, ...]:
        """The tool `read_output`; the session comes to it with each call."""
        del scope
        return self._tools

    @hookimpl
    def preview_output(self, kind: str, data: memoryview, limit: int) -> Preview:
        """A preview of JSON, JSON lines, HTML, XML, CSV, text or binary data, whatever ``kind`` says or leaves out."""
        from .previews import Limits, make_preview

        settings = self._settings
        limits = Limits(limit, settings.preview_items, settings.preview_lines, settings.preview_xml_lines)
        return make_preview(Content(data), kind, limits)

    @hookimpl
    async def spill_result(self, call: Call, content: bytes, media_type: str) -> Spilled:
        """Store the result and answer with its preview. The bytes are kept as they are."""
        scope = call.scope
        output = Output(
            (scope.agent, scope.session), call.tool.name, described(call.tool.name, call.arguments), Content(content)
        )
        if output.content.size <= _INLINE:
            preview = self._examined(output, media_type)
        else:
            preview = await trio.to_thread.run_sync(self._examined, output, media_type, abandon_on_cancel=True)
        settings, kept = self._settings, self._store.keep(output)
        if kept:
            text = spilled_text(output, preview, settings.preview_chars, settings.ttl, settings.answer_bytes)
        else:
            text = unkept_text(output, preview, settings.preview_chars, settings.max_bytes)
        return Spilled(text=text, ref=output.ref, size=output.content.size, kind=preview.kind)

    @hookimpl
    async def plugin_stop(self) -> None:
        """Let the stored outputs go, which a session's tools would else hold on to."""
        self._store.clear()

    def _examined(self, output: Output, media_type: str) -> Preview:
        """The preview, by whichever plugin knows the type; the lines are counted on the way."""
        limit = self._settings.preview_chars
        view = output.content.view(0, output.content.size)
        preview: Preview | None = self._hooks.serve("preview_output", media_type, view, limit)
        if preview is None:
            from .previews import Limits, plain

            preview = plain.preview(output.content, Limits(limit))
        _ = output.lines  # counted here, so that the loop need not
        return preview
