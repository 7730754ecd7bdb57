"""One plugin gives a service under a protocol, another uses it."""

from __future__ import annotations

from typing import Protocol

from toolkeel import PluginContext, ToolContext, hookimpl, tool


class PhoneBook(Protocol):
    """Who can be reached where."""

    def number(self, name: str) -> str | None:
        """The number of somebody, ``None`` where it is not known."""
        ...


class Paper:
    """A phone book that is printed."""

    def number(self, name: str) -> str | None:
        """Look it up."""
        return {"Ann": "23"}.get(name)


class Giver:
    """Provides the service when it starts."""

    NAME = "giver"

    @hookimpl
    async def plugin_start(self, context: PluginContext) -> None:
        """Provide what others may ask for."""
        context.services.provide(PhoneBook, Paper(), plugin=context.name)


@tool(effect="read")
def phone_number(name: str, context: ToolContext) -> str:
    """Look up somebody's phone number.

    Args:
        name: whose number.
    """
    return context.service(PhoneBook).number(name) or f"{name} has no number here."


class User:
    """Its tool asks for the service when it runs."""

    NAME = "user"

    @hookimpl
    def register_tools(self) -> object:
        """Give the one tool."""
        return phone_number
