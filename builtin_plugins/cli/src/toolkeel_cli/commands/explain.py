"""toolkeel explain: whether a tool is offered, and which rules decided."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkeel import Explanation
from toolkeel_cli.exits import Exit
from toolkeel_cli.opening import open_session, request_of
from toolkeel_cli.options import Options
from toolkeel_cli.screen import Screen


async def explain(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name")],
    options: Options,
    message: Annotated[str, typer.Option(help="What a person said, for selectors that go by it")] = "",
) -> int:
    """Say whether a tool is offered, and name each rule that had a say with its setting.

    The exit code is 0 where it is offered and 4 where it is not.
    """
    screen = Screen(as_json=options.json)
    async with open_session(options) as session:
        explanation = await session.explain(tool, request_of(session, options, message))
        entry = (await session.table()).entries.get(tool)
        plugin = entry.owner.name if entry else ""
    if options.json:
        screen.json({"plugin": plugin, **_as_json(explanation)})
    else:
        _show(explanation, plugin, screen)
    return Exit.OK if explanation.offered else Exit.REFUSED


def _as_json(explanation: Explanation) -> dict[str, object]:
    return {
        "tool": explanation.tool,
        "offered": explanation.offered,
        "steps": explanation.steps,
        "nearest": explanation.nearest,
    }


def _show(explanation: Explanation, plugin: str, screen: Screen) -> None:
    verdict = "is offered" if explanation.offered else "is not offered"
    origin = f", given by plugin {plugin}" if plugin else ""
    screen.line(f"{explanation.tool} {verdict}{origin}", style="bold green" if explanation.offered else "bold red")
    rows = [
        (("passed", "green") if step.passed else ("stopped", "red"), step.stage, step.by, step.setting, step.text)
        for step in explanation.steps
    ]
    if rows:
        screen.line()
        screen.table(("rule", "stage", "plugin", "setting", "what was said"), rows)
    if explanation.nearest:
        screen.line(f"nearest: {', '.join(explanation.nearest)}")
