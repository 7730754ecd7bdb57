"""A plugin of one file."""

from __future__ import annotations

from toolkeel import Tool, hookimpl, tool


@tool(effect="read")
def greet(name: str) -> str:
    """Greet somebody.

    Args:
        name: who is greeted.
    """
    return f"Hello, {name}!"


@hookimpl
def register_tools() -> Tool:
    """Give the one tool."""
    return greet
