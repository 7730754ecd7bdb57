"""toolkeel call: one call of one tool."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from toolkeel import Answer, Kernel, Media, Parts, ToolCall
from toolkeel_cli import stdin
from toolkeel_cli.exits import Exit, UsageError
from toolkeel_cli.opening import open_session, request_of
from toolkeel_cli.options import Options
from toolkeel_cli.progress import Progress
from toolkeel_cli.screen import Screen

_WHOLE = "kernel.max_result_chars=1000000000000"


async def call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name")],
    options: Options,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="A JSON object, - to read it from standard input, or name=value pairs",
            metavar="[JSON | - | NAME=VALUE...]",
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Print what a model gets: of a large result only a preview")
    ] = False,
) -> int:
    """Call one tool, through all stages, and print its result, whole.

    A value in NAME=VALUE is JSON where it reads as JSON and text where it does not; NAME:=TEXT is always text.
    """
    screen = Screen(as_json=options.json)
    given = await _arguments(arguments or [])
    if not preview:
        options = msgspec.structs.replace(options, settings=(_WHOLE, *options.settings))
    async with open_session(options) as session:
        offer = await session.offer(request_of(session, options))
        idle = () if tool in offer.table.entries else _idle(session.kernel)
        with Progress(screen) as progress:
            [answer] = await offer.call([ToolCall(tool, given, id=tool)], progress=progress.report)
    if options.json:
        screen.json(answer_as_json(answer))
    else:
        _show(answer, screen)
        for text in idle:
            screen.note(text)
    return exit_of(answer)


def _idle(kernel: Kernel) -> tuple[str, ...]:
    """The plugins that might have the tool that no active one has."""
    found = [info for info in kernel.plugins.list() if info.state in ("listed", "disabled")]
    return tuple(f"plugin {info.name} is {info.state}: {info.reason}" for info in found)


async def _arguments(given: list[str]) -> str | bytes | dict[str, object] | None:
    if not given:
        return None
    if given == ["-"]:
        return await stdin.read_all()
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        return given[0]
    return dict(_pair(text) for text in given)


def _pair(text: str) -> tuple[str, object]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise UsageError(
            f"{text!r} is neither a JSON object nor name=value",
            remedy="For example: toolkeel call calc expression='6 * 7'",
        )
    if name.endswith(":"):
        return name[:-1], value
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return name, value


def answer_as_json(answer: Answer) -> dict[str, object]:
    """An answer for machines: what the model gets, and what is recorded of the call."""
    record = answer.record
    took = None if record.started is None or record.ended is None else round(record.ended - record.started, 6)
    items = answer.result.items if isinstance(answer.result, Parts) else (answer.result,)
    return {
        "tool": answer.tool,
        "plugin": record.plugin,
        "status": answer.status,
        "text": answer.text,
        "ref": answer.ref,
        "arguments": record.arguments,
        "repairs": record.repairs,
        "reason": record.reason,
        "refused_by": record.refused_by,
        "setting": record.setting,
        "seconds": took,
        "media": [
            {"media_type": item.media_type, "name": item.name, "size": len(item.data)}
            for item in items
            if isinstance(item, Media)
        ],
    }


def exit_of(answer: Answer) -> int:
    """The exit code for one answer."""
    return {"completed": Exit.OK, "refused": Exit.REFUSED}.get(answer.status, Exit.FAILED)


def _show(answer: Answer, screen: Screen) -> None:
    for repair in answer.record.repairs:
        screen.note(f"repaired {repair.path}: {repair.what}")
    if not answer.failed:
        screen.text(answer.text)
        if answer.ref:
            screen.note(f"the ref {answer.ref} ends with this command; toolkeel exec --lines keeps a session")
        return
    screen.say((f"{answer.status}: ", "bold red"), answer.text)
    if answer.record.setting and answer.record.setting not in answer.text:
        screen.note(f"setting: {answer.record.setting}")
