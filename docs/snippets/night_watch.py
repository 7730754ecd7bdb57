"""No writes at night: a decider with a setting."""

from __future__ import annotations

import time

from pydantic import BaseModel, ConfigDict, Field
from toolkeel import Call, PluginContext, Reason, Refuse, hookimpl


# [start:settings]
class Settings(BaseModel):
    """When nothing may be changed, in hours of the machine's local time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    begins: int = Field(22, ge=0, le=23, description="The hour from which on writes are refused")
    ends: int = Field(6, ge=0, le=23, description="The hour from which on they are allowed again")


# [end:settings]


# [start:class]
class NightWatch:
    """Refuses tools that change something, between two hours."""

    Settings = Settings
    PRIORITY = 200

    def __init__(self, context: PluginContext) -> None:
        self._settings: Settings = context.settings
        self._clock = context.clock
        # [end:class]

    @hookimpl
    async def authorize_tool_call(self, call: Call) -> Refuse | None:
        """Refuse a write or destructive call at night; have no objection otherwise."""
        hour = time.localtime(self._clock()).tm_hour
        begins, ends = self._settings.begins, self._settings.ends
        night = begins <= hour or hour < ends if begins > ends else begins <= hour < ends
        if call.tool.effect == "read" or not night:
            return None
        text = (
            f"Nothing is changed between {begins}:00 and {ends}:00. Read what you need, and change it after {ends}:00"
        )
        return Refuse(Reason(text, setting="plugins.nightwatch", rule="night"))
