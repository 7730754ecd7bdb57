"""The hooks of toolkeel-basics."""

from __future__ import annotations

from toolkeel import Scope, Tool, hookimpl


@hookimpl
def register_tools(scope: Scope) -> tuple[Tool, ...]:  # noqa: ARG001 - the tools are the same for every session
    """Give calc, datetime, json_transform, regex and text_utils."""
    from .tools import TOOLS

    return TOOLS
