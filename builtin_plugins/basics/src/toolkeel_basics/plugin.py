"""The hooks of toolkeel-basics."""

from __future__ import annotations

from toolkeel import Tool, hookimpl


@hookimpl
def register_tools() -> tuple[Tool, ...]:
    """Give calc, datetime, json_transform, regex and text_utils: the same ones to every session."""
    from .tools import TOOLS

    return TOOLS
