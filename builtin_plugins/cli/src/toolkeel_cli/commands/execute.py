"""toolkeel exec: runs the tool calls of a model's response, for people who have their own loop."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from toolkeel import Answer, Session
from toolkeel_cli import stdin
from toolkeel_cli.exits import Exit, cause, exit_for
from toolkeel_cli.opening import open_session, request_of
from toolkeel_cli.options import Options
from toolkeel_cli.progress import Progress
from toolkeel_cli.screen import Screen, told
from toolkeel_cli.wire import Form, Response, read_response, write_results


async def execute(
    options: Options,
    form: Annotated[
        Form | None, typer.Option("--format", help="The response's form; found out by its shape where it is not said")
    ] = None,
    choice: Annotated[
        int | None, typer.Option(metavar="N", help="Which choice of a chat completion to run, from 0")
    ] = None,
    message: Annotated[str, typer.Option(help="What a person said, for selectors that go by it")] = "",
    each_line: Annotated[
        bool,
        typer.Option(
            "--lines", help="Read one response per line and answer each with one line, in one session, until the end"
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where a call did not complete")] = False,
) -> int:
    """Run the tool calls of a model's response, read from standard input, and print their results as messages.

    The response is that of OpenAI's chat completions or responses or of Anthropic's messages, whole or only the
    assistant's message. What is printed is a JSON list in the same form: append it to the messages (or the input) of
    the next request. A call that fails is a result too, which the model should read.
    """
    screen = Screen(as_json=options.json or each_line)
    run = _Run(options, screen, form, choice, message)
    if each_line:
        async with open_session(options) as session:
            async for line in stdin.lines():
                await run.line(session, line)
    else:
        response = read_response(await stdin.read_all(), form, choice)
        async with open_session(options) as session:
            await run.response(session, response)
    return run.code if each_line or strict else Exit.OK


class _Run:
    """What one invocation keeps: how to read, where to write, and whether all went well."""

    def __init__(self, options: Options, screen: Screen, form: Form | None, choice: int | None, message: str) -> None:
        self._options = options
        self._screen = screen
        self._form: Form | None = form
        self._choice = choice
        self._message = message
        self.code: int = Exit.OK

    async def line(self, session: Session, line: bytes) -> None:
        """Answer one line with one line, whatever it holds."""
        try:
            written: object = await self._messages(session, read_response(line, self._form, self._choice))
        except Exception as error:  # noqa: BLE001 - whatever one line holds, the next one is answered too
            found = cause(error)
            self.code = exit_for(found)
            written = {"error": told(found)}
        self._screen.json(written)

    async def response(self, session: Session, response: Response) -> None:
        """Run the calls of one response and write the messages."""
        self._screen.json(await self._messages(session, response))

    async def _messages(self, session: Session, response: Response) -> list[dict[str, object]]:
        for note in response.notes:
            self._screen.note(f"note: {note}")
        if not response.calls:
            self._screen.note("the response has no tool calls")
        offer = await session.offer(request_of(session, self._options, self._message))
        started = time.perf_counter()
        with Progress(self._screen) as progress:
            answers = await offer.call(response.tool_calls, progress=progress.report)
        took = time.perf_counter() - started
        if response.calls:
            self._screen.note(_summary(response, answers, took))
        if any(answer.failed for answer in answers) or len(answers) < len(response.calls):
            self.code = self.code or Exit.FAILED
        return write_results(response, answers)


def _summary(response: Response, answers: list[Answer], took: float) -> str:
    counts: dict[str, int] = {}
    for status in [*(answer.status for answer in answers), *("not run" for wire in response.calls if wire.unfinished)]:
        counts[status] = counts.get(status, 0) + 1
    said = ", ".join(f"{count} {status}" for status, count in counts.items())
    calls = "1 call" if len(response.calls) == 1 else f"{len(response.calls)} calls"
    return f"{calls} in {took * 1000:.1f} ms: {said}"
