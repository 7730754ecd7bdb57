"""The hooks of toolkeel-glossary. Keep this file light: every start of toolkeel imports it."""

from __future__ import annotations

from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field
from toolkeel import PluginContext, Tool, hookimpl


class Settings(BaseModel):
    """What the operator fills in, under ``plugins.glossary``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    terms: dict[str, str] = Field(default_factory=dict, description="Words and what they mean")


class Glossary:
    """Brings the tool, where there is something to look up."""

    Settings = Settings

    def __init__(self, context: PluginContext) -> None:
        self._terms: dict[str, str] = context.settings.terms

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        """Give the same tool to every session; none without terms."""
        return self._tools if self._terms else ()

    @cached_property
    def _tools(self) -> tuple[Tool, ...]:
        from .lookup import lookup_tool

        return (lookup_tool(self._terms),)
