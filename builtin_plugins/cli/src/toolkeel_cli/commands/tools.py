"""toolkeel tools: what is offered, for people or as a model's API takes it."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkeel import Offer
from toolkeel_cli.opening import open_session, request_of
from toolkeel_cli.options import Options
from toolkeel_cli.screen import Screen
from toolkeel_cli.wire import Form, tool_list


async def tools(
    options: Options,
    form: Annotated[
        Form | None,
        typer.Option("--format", help="Print the list as an API takes it: chat completions, responses, messages"),
    ] = None,
    message: Annotated[str, typer.Option(help="What a person said, for selectors that go by it")] = "",
    withheld: Annotated[bool, typer.Option("--withheld", help="Also those that are not offered, and why")] = False,
) -> None:
    """List the tools that are offered."""
    screen = Screen(as_json=options.json)
    async with open_session(options) as session:
        offer = await session.offer(request_of(session, options, message))
        if form:
            entries, notes = tool_list(offer.json(), form)
            screen.json(entries)
            for note in notes:
                screen.note(note)
        elif options.json:
            screen.json(_listing(offer))
        else:
            _show(offer, screen, withheld=withheld)


def _listing(offer: Offer) -> dict[str, object]:
    offered = [
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
    withheld = {name: {"reason": reason.text, "setting": reason.setting} for name, reason in offer.withheld.items()}
    return {"tools": offered, "withheld": withheld}


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
