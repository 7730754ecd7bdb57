"""Checks of what every plugin promises, all faults at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from toolkeel.errors import ToolkeelError
from toolkeel.kernel import Kernel
from toolkeel.scope import Scope
from toolkeel.tools import Tool
from toolkeel.validate import check_definition

from .kit import kernel_with

_DESCRIPTION_LIMIT = 2_048
_PORTABLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_PORTABLE_LENGTH = 64


class Fault(msgspec.Struct, frozen=True):
    """Something that a plugin should mend: a stable code, the place, what is wrong, what to do."""

    code: str
    where: str
    what: str
    remedy: str = ""


async def check_plugin(plugin: object, *, settings: dict[str, Any] | None = None) -> list[Fault]:
    """Load a plugin into a kernel of its own and check what it promises. An empty list means that nothing is wrong.

    ===== =====================================================================
    code  what it says
    ===== =====================================================================
    TK001 the plugin is quarantined
    TK002 a factory gives other tools to the same scope the second time
    TK101 a tool has no description, or one that is too long
    TK102 a parameter has no description
    TK103 a name that some model providers refuse
    TK104 the schema does not compile
    TK105 a write tool declares no resource keys
    ===== =====================================================================
    """
    async with kernel_with(plugin, settings=settings, broken=True) as kit:
        faults = [
            Fault("TK001", info.name, f"quarantined at {info.stage}: {info.reason}", info.remedy)
            for info in kit.kernel.plugins.list()
            if info.state == "quarantined"
        ]
        faults += await _factories(kit.kernel, kit.session.scope)
        for tool in kit.offer.table.tools:
            faults += _tool(tool)
        return faults


async def _factories(kernel: Kernel, scope: Scope) -> list[Fault]:
    first = await kernel.plugins.register("register_tools", scope, Tool)
    second = await kernel.plugins.register("register_tools", scope, Tool)
    return [
        Fault("TK002", one[0].name, "register_tools gives new tools each time", "Build the tuple once and return it")
        for one, other in zip(first, second, strict=False)
        if one[1] is not other[1]
    ]


def _tool(tool: Tool) -> Iterable[Fault]:
    where = f"tool {tool.name}"
    if not tool.description.strip() or len(tool.description) > _DESCRIPTION_LIMIT:
        yield Fault("TK101", where, f"its description has {len(tool.description)} characters", "Write 1 to 2,048")
    for name, schema in cast("Mapping[str, Any]", tool.parameters.get("properties") or {}).items():
        if not isinstance(schema, dict) or not cast("Mapping[str, Any]", schema).get("description"):
            yield Fault("TK102", f"{where}: {name}", "has no description", "Describe it in the docstring's Args")
    if len(tool.name) > _PORTABLE_LENGTH or not set(tool.name) <= _PORTABLE:
        yield Fault("TK103", where, "some providers refuse the name", "Use at most 64 of A-Z a-z 0-9 _ -")
    try:
        check_definition(tool)
    except ToolkeelError as error:
        yield Fault("TK104", where, str(error))
    if tool.effect != "read" and tool.writes is None:
        yield Fault("TK105", where, "declares no keys, so it runs alone in its group", "Pass writes= to @tool")
