"""Typed services between plugins."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from .errors import DefinitionError, ServiceMissing

Service = TypeVar("Service")


class Services:
    """What plugins give each other, each under a protocol that both import from the giver's public package.

    >>> services.provide(StateStore, store, plugin="state")
    >>> services.get(StateStore).read("key")
    """

    def __init__(self) -> None:
        self._by_protocol: dict[type[Any], tuple[str, object]] = {}

    def provide(self, protocol: type[Service], service: Service, *, plugin: str) -> None:
        """Offer ``service`` under ``protocol``. A second giver of one protocol is an error that names both."""
        other = self._by_protocol.get(protocol)
        if other is not None and other[0] != plugin:
            raise DefinitionError(
                f"plugins {other[0]!r} and {plugin!r} both provide {protocol.__qualname__}",
                remedy=f"Disable one of them under kernel.disable: [{plugin}]",
            )
        self._by_protocol[protocol] = (plugin, service)

    def get(self, protocol: type[Service]) -> Service:
        """The service under ``protocol``; raises ``ServiceMissing`` where no active plugin provides it."""
        found = self._by_protocol.get(protocol)
        if found is None:
            raise ServiceMissing(
                f"no active plugin provides {protocol.__module__}.{protocol.__qualname__}",
                remedy="`toolkeel plugins` shows what is installed and why a plugin is not active",
            )
        return cast("Service", found[1])

    def find(self, protocol: type[Service]) -> Service | None:
        """Like ``get``, or ``None``."""
        found = self._by_protocol.get(protocol)
        return None if found is None else cast("Service", found[1])

    def withdraw(self, plugin: str) -> None:
        """Take back all that ``plugin`` provides."""
        self._by_protocol = {key: value for key, value in self._by_protocol.items() if value[0] != plugin}
