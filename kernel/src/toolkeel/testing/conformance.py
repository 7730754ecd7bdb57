"""Checks of what every plugin promises, all faults at once."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec
import trio

from toolkeel.calls import Call
from toolkeel.errors import ToolkeelError
from toolkeel.kernel import Kernel
from toolkeel.outputs import Result, Text
from toolkeel.scope import Scope
from toolkeel.tools import Tool, ToolContext, raw_tool
from toolkeel.validate import check_definition

from .kit import Kit, kernel_with

_DESCRIPTION_LIMIT = 2_048
_PORTABLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_PORTABLE_LENGTH = 64
_PROBE_SECONDS = 5


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
    TK003 the plugin implements no hook
    TK101 a tool has no description, or one that is too long
    TK102 a parameter has no description
    TK103 a name that some model providers refuse
    TK104 the schema does not compile
    TK105 a write tool declares no resource keys
    TK201 a hook leaves a context variable set
    ===== =====================================================================
    """
    async with kernel_with(plugin, settings=settings, broken=True) as kit:
        faults = [
            Fault("TK001", info.name, f"quarantined at {info.stage}: {info.reason}", info.remedy)
            for info in kit.kernel.plugins.list()
            if info.state == "quarantined"
        ]
        faults += [
            Fault("TK003", info.name, "implements no hook", "Mark its functions with @hookimpl, or name the class")
            for info in kit.kernel.plugins.list()
            if info.state == "active" and not info.hooks
        ]
        faults += await _factories(kit.kernel, kit.session.scope)
        for tool in kit.offer.table.tools:
            faults += _tool(tool)
        faults += await _variables(kit)
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


async def _variables(kit: Kit) -> list[Fault]:
    """Run each hook of a call once on a probe and compare the context variables before and after."""
    probe = Call("probe", "probe", raw_tool("probe", "Probe.", {"type": "object"}, _probe, effect="read"), {},
                 kit.offer.request, "probe")  # fmt: skip
    faults: list[Fault] = []

    async def try_out(hook: str, function: Callable[..., Any]) -> None:
        before = dict(contextvars.copy_context())
        with suppress(Exception), trio.move_on_after(_PROBE_SECONDS):  # what it makes of a probe is its own affair
            await (function(probe, _answer) if hook == "around_tool_call" else function(probe))
        for variable, value in contextvars.copy_context().items():
            if variable not in before or before[variable] is not value:
                what = f"leaves the context variable {variable.name!r} set"
                faults.append(Fault("TK201", hook, what, "Reset it in a finally clause"))

    for hook in ("rewrite_tool_call", "authorize_tool_call", "around_tool_call"):
        for one in kit.kernel.hooks[hook]:
            async with trio.open_nursery() as nursery:  # a task has variables of its own
                nursery.start_soon(try_out, hook, one.function)
    return faults


async def _probe(_arguments: Mapping[str, Any], _context: ToolContext) -> str:
    return ""


async def _answer() -> Result:
    return Text("")
