"""toolkeel tools: what is offered, for people or as a model's API takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import typer

from toolkeel import Offer, Tool, ToolkeelError
from toolkeel_cli.opening import open_session, request_of
from toolkeel_cli.options import Options
from toolkeel_cli.screen import Screen
from toolkeel_cli.wire import Form, tool_list


async def tools(
    options: Options,
    name: Annotated[
        str, typer.Argument(metavar="[TOOL]", help="Only this tool, with its whole description and its parameters")
    ] = "",
    form: Annotated[
        Form | None,
        typer.Option("--format", help="Print the list as an API takes it: chat completions, responses, messages"),
    ] = None,
    message: Annotated[str, typer.Option(help="What a person said, for selectors that go by it")] = "",
    withheld: Annotated[bool, typer.Option("--withheld", help="Also those that are not offered, and why")] = False,
) -> None:
    """List the tools that are offered, or show one of them."""
    screen = Screen(as_json=options.json)
    async with open_session(options) as session:
        offer = await session.offer(request_of(session, options, message))
        if name and name not in offer.names:
            told = offer.not_offered(name)
            raise ToolkeelError(
                told.text,
                where=told.setting,
                remedy=f"toolkeel explain {name}" if name in offer.withheld else "toolkeel tools",
            )
        if form:
            entries, notes = tool_list(offer.json(), form)
            entries = [entry for entry, tool in zip(entries, offer.tools, strict=True) if name in ("", tool.name)]
            screen.json(entries)
            for note in notes:
                screen.note(note)
        elif options.json:
            listed = _listed(offer)
            screen.json(
                next(each for each in listed if each["name"] == name)
                if name
                else {"tools": listed, "withheld": _withheld(offer)}
            )
        elif name:
            _show_one(next(tool for tool in offer.tools if tool.name == name), screen)
        else:
            _show(offer, screen, withheld=withheld)


def _show_one(tool: Tool, screen: Screen) -> None:
    screen.line((tool.name, "bold"), f"  {tool.effect}")
    screen.line()
    screen.text(tool.description)
    properties = cast("Mapping[str, Mapping[str, Any]]", tool.parameters.get("properties", {}))
    if not properties:
        return
    required = cast("Sequence[str]", tool.parameters.get("required", ()))
    rows = [(key, _kind(schema), _default(key, schema, required), _said(schema)) for key, schema in properties.items()]
    screen.line()
    screen.table(("parameter", "type", "default", "what it is"), rows)


def _kind(schema: Mapping[str, Any]) -> str:
    """A parameter's type in a word or two; what is deeper, ``--json`` shows whole."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    parts = schema.get("anyOf") or schema.get("oneOf")
    if parts:
        return " | ".join(_kind(part) for part in parts)
    kind = schema.get("type", "any")
    if kind == "array" and schema.get("items"):
        return f"array of {_kind(schema['items'])}"
    return " | ".join(map(str, cast("list[object]", kind))) if isinstance(kind, list) else str(kind)


def _default(key: str, schema: Mapping[str, Any], required: Sequence[str]) -> str:
    if key in required:
        return "(required)"
    return json.dumps(schema["default"], ensure_ascii=False) if "default" in schema else ""


def _said(schema: Mapping[str, Any]) -> str:
    return " ".join(str(schema.get("description", "")).split())


def _listed(offer: Offer) -> list[dict[str, object]]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "effect": tool.effect,
            "plugin": offer.table.entries[tool.name].owner.name,
            "reason": offer.reasons[tool.name],
        }
        for tool in offer.tools
    ]


def _withheld(offer: Offer) -> dict[str, dict[str, str]]:
    return {name: {"reason": reason.text, "setting": reason.setting} for name, reason in offer.withheld.items()}


def _show(offer: Offer, screen: Screen, *, withheld: bool) -> None:
    rows: list[tuple[str, ...]] = [
        (tool.name, tool.effect, offer.table.entries[tool.name].owner.name, first_sentence(tool.description))
        for tool in offer.tools
    ]
    if rows:
        screen.table(("tool", "effect", "plugin", "what it does"), rows)
    else:
        screen.note("no tool is offered: `toolkeel plugins` shows what is installed")
    if withheld and offer.withheld:
        screen.line()
        rows = [(name, reason.setting, reason.text) for name, reason in sorted(offer.withheld.items())]
        screen.table(("withheld", "setting", "why"), rows)
    elif offer.withheld:
        screen.note(f"{len(offer.withheld)} more withheld: --withheld shows why")


def first_sentence(text: str) -> str:
    """The first sentence of a description, on one line."""
    line = " ".join(text.split("\n\n")[0].split())
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]
