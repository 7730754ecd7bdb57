"""A tool whose answer other plugins contribute to."""

from __future__ import annotations

from types import ModuleType

from toolkeel import PluginContext, Tool, hookimpl, tool


class Greetings:
    """Brings the tool `greet` and the hook `greeting_words`."""

    def __init__(self, context: PluginContext) -> None:
        @tool(effect="read")
        def greet(name: str) -> str:
            """Greet somebody.

            Args:
                name: who is greeted.
            """
            words = [said for _, said in context.hooks.collect("greeting_words", name)]
            return " ".join([f"Hello, {name}!", *words])

        self._tools = (greet,)

    @hookimpl
    def declare_hookspecs(self) -> ModuleType:
        """Give the module whose functions are marked as hookspecs."""
        from . import hookspecs

        return hookspecs

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        """Give the one tool."""
        return self._tools
