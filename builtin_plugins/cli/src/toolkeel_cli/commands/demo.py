"""toolkeel demo: the real engine at work on a small workspace, driven by a recorded model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkeel import Answer, Config, Kernel, Offer, Principal, Session, ToolCall
from toolkeel.errors import PluginError
from toolkeel_cli.demo.recording import MESSAGE, Turn, conversation
from toolkeel_cli.demo.workspace import ORDERS, build
from toolkeel_cli.exits import UsageError
from toolkeel_cli.options import Options
from toolkeel_cli.screen import Screen
from toolkeel_cli.wire import read_response, write_results

if TYPE_CHECKING:
    from toolkeel_cli.demo.telling import Teller

_PLUGINS = ("basics", "files", "outputs")
_CHANGING = ("file_edit", "file_write")


async def demo(
    options: Options,
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Build the workspace there and leave it, to play with")
    ] = None,
) -> None:
    """Watch the engine at work: no key and no network is needed, and nothing outside a temporary folder is touched.

    The model is a recording. What it is offered, the running of its calls and every result are real.
    """
    screen = Screen(as_json=options.json)
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError("the folder is there and is not empty", where=str(keep), remedy="Name another with --keep")
    with tempfile.TemporaryDirectory(prefix="toolkeel-demo-") as temporary:
        workspace = (keep or Path(temporary) / "harbour-books").resolve()
        build(workspace)
        config = Config.of({"kernel": {"only": list(_PLUGINS)}}, state_folder=Path(temporary) / "state")
        async with (
            Kernel.open(config) as kernel,
            kernel.session(agent="demo", workspaces=[workspace]) as session,
        ):
            _require_plugins(kernel)
            if options.json:
                screen.json(await _as_json(session))
            else:
                from toolkeel_cli.demo.telling import Teller

                await _tell(session, Teller(screen), workspace, kept=keep is not None)


def _require_plugins(kernel: Kernel) -> None:
    states = {info.name: info for info in kernel.plugins.list()}
    for name in _PLUGINS:
        info = states.get(name)
        if info is None or info.state != "active":
            why = f"is {info.state}: {info.reason}" if info else "is not installed"
            remedy = (info.remedy if info else "") or "pip install toolkeel-all"
            raise PluginError(f"the demo needs it, and it {why}", where=f"plugin {name!r}", remedy=remedy)


class _Run:
    """The conversation as it runs: each turn through the wire form, the engine, and back."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._conversation = conversation()
        self.answers: list[Answer] = []
        self.calls: list[ToolCall] = []
        self.messages: list[dict[str, object]] = []
        self.took = 0.0

    async def offer(self, cap: Sequence[str] | None = None) -> Offer:
        principal = Principal("ann", "user")
        return await self._session.offer(self._session.request(MESSAGE, principal=principal, tool_cap=cap))

    async def turn(self, turn: Turn) -> Turn | str:
        """Run one turn's calls; gives the next turn, or what the model says at the end."""
        response = read_response(turn.on_the_wire())
        offer = await self.offer()
        started = time.perf_counter()
        self.calls, self.answers = response.tool_calls, await offer.call(response.tool_calls)
        self.took = time.perf_counter() - started
        self.messages = write_results(response, self.answers)
        try:
            return self._conversation.send(self.answers)
        except StopIteration as end:
            return str(end.value)

    def begin(self) -> Turn:
        """The first turn."""
        return next(self._conversation)


async def _tell(session: Session, teller: Teller, workspace: Path, *, kept: bool) -> None:
    run = _Run(session)
    teller.say(
        f"A bookshop's folder was made at {workspace}: notes, a small Python project, and an export of {ORDERS:,} "
        "orders. A recorded model works on it through the real engine: no result below is made up."
    )

    teller.heading("What the model is offered, and why")
    teller.person(MESSAGE)
    offer = await run.offer()
    capped = await run.offer([tool.name for tool in offer.tools if tool.effect == "read"])
    teller.offer(offer, [capped.explain(name) for name in _CHANGING])

    teller.heading("Eight calls at once")
    turn = run.begin()
    teller.model(turn.says, turn.form)
    following = await run.turn(turn)
    teller.calls(run.calls, run.answers, run.took)
    teller.say("Two of the eight results, as the model gets them:")
    teller.answer(run.calls[1], run.answers[1])
    teller.answer(run.calls[4], run.answers[4])

    teller.heading("A refusal, a repaired argument, and a path that leads out")
    following = await _tell_turn(run, teller, following)

    teller.heading("A result too large for a model: kept whole, shown as a preview, read on by its ref")
    following = await _tell_turn(run, teller, following, lines=8, last=5)
    following = await _tell_turn(run, teller, following, lines=5, last=1)

    teller.heading("The answer")
    final = await _tell_turn(run, teller, following)
    teller.model(str(final))

    teller.heading("What to do next")
    teller.gap()
    for command, text in _next(workspace, kept=kept):
        teller.command(command, text)
    teller.gap()


async def _tell_turn(run: _Run, teller: Teller, turn: Turn | str, lines: int = 8, last: int = 0) -> Turn | str:
    if isinstance(turn, str):
        raise AssertionError(turn)
    teller.model(turn.says, turn.form)
    following = await run.turn(turn)
    for call, answer in zip(run.calls, run.answers, strict=True):
        teller.answer(call, answer, lines, last)
    return following


def _next(workspace: Path, *, kept: bool) -> list[tuple[str, str]]:
    first = (
        (f"toolkeel tools -w {workspace}", "what a model is offered in this workspace")
        if kept
        else ("toolkeel demo --keep shop", "the same, and the workspace stays to play with")
    )
    return [
        first,
        ("toolkeel tools --format openai", "the tool list for your own model's API"),
        ("toolkeel exec < response.json", "run your model's calls, get the messages to send"),
        ("toolkeel call calc expression='0.1 + 0.2'", "one call by hand"),
        ("toolkeel new-plugin NAME", "start a plugin with tools of your own"),
        ("toolkeel doctor", "check this installation"),
    ]


async def _as_json(session: Session) -> dict[str, object]:
    run = _Run(session)
    offer = await run.offer()
    turns: list[dict[str, object]] = []
    turn: Turn | str = run.begin()
    while isinstance(turn, Turn):
        following = await run.turn(turn)
        turns.append(
            {
                "says": turn.says,
                "form": turn.form,
                "calls": [{"name": name, "arguments": arguments} for name, arguments in turn.calls],
                "answers": [
                    {"status": answer.status, "text": answer.text, "ref": answer.ref, "repairs": answer.record.repairs}
                    for answer in run.answers
                ],
                "messages": run.messages,
                "seconds": round(run.took, 6),
            }
        )
        turn = following
    offered = [{"name": tool.name, "reason": offer.reasons[tool.name]} for tool in offer.tools]
    return {"message": MESSAGE, "offered": offered, "turns": turns, "answer": turn}
