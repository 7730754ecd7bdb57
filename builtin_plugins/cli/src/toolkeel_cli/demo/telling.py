"""Tells the demo step by step, on a terminal or into a pipe."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from toolkeel import Answer, Explanation, Offer, ToolCall
from toolkeel_cli.screen import Screen, visible
from toolkeel_cli.wire import Form

_WIDTH = 110
_BAR = 36
_FEW = 3
"""Lines up to which a result is shown whole, however long they are."""
_VENDORS: dict[Form, str] = {
    "openai": "an OpenAI chat completion",
    "responses": "an OpenAI response",
    "anthropic": "an Anthropic message",
}
_STATUS = {"completed": "green", "failed": "yellow", "refused": "red"}


class Teller:
    """Writes the demo for people. Every figure and text that it writes comes from the engine."""

    def __init__(self, screen: Screen) -> None:
        self._out: Console = screen.out
        self._width = min(self._out.width, _WIDTH)
        ascii_only = self._out.options.ascii_only
        self._cell, self._more = ("#", "...") if ascii_only else ("█", "…")
        self._step = 0

    def heading(self, title: str) -> None:
        """Begin a step."""
        self._step += 1
        self._out.print()
        self._out.print(Rule(f"{self._step}  {title}", align="left", style="cyan"), width=self._width)

    def say(self, text: str, style: str = "") -> None:
        """A paragraph."""
        self._out.print()
        for line in Text(text, style).wrap(self._out, self._width):
            line.rstrip()
            self._out.print(line)

    def person(self, text: str) -> None:
        """What the person asks."""
        self._spoken("person", text, "bold magenta")

    def model(self, text: str, form: Form | None = None) -> None:
        """What the model says, and in which form its answer came."""
        self._spoken("model", text, "bold blue")
        if form:
            self._out.print(Text(f"        (it comes as {_VENDORS[form]})", "dim"))

    def _spoken(self, who: str, text: str, style: str) -> None:
        self._out.print()
        label = Text(f"{who:<8}", style)
        for line in Text(text).wrap(self._out, self._width - len(label)):
            line.rstrip()
            self._out.print(label + line)
            label = Text(" " * len(label))

    def offer(self, offer: Offer, withheld: Sequence[Explanation]) -> None:
        """The tools that are offered, each with its reason; tools that a narrower request is not."""
        self._out.print()
        wide = max(len(tool.name) for tool in offer.tools)
        for tool in offer.tools:
            start = Text.assemble("  ", (f"{tool.name:<{wide}}", "bold"), f"  {tool.effect:<11}  ")
            self._out.print(start.append(offer.reasons[tool.name], "dim"))
        self.say("In a run whose tools are capped to those that read, the others are withheld:")
        self._out.print()
        for explanation in withheld:
            step = next(step for step in explanation.steps if not step.passed)
            start = Text.assemble("  ", (f"{explanation.tool:<{wide}}", "bold"), ("  withheld     ", "red"))
            self._out.print(start.append(step.text, "dim"))

    def calls(self, calls: Sequence[ToolCall], answers: Sequence[Answer], took: float) -> None:
        """Calls with their times, as bars over the time that all took."""
        self._out.print()
        records = [answer.record for answer in answers]
        first = min(record.created for record in records)
        labels = [self._label(call, self._width - _BAR - 20) for call in calls]
        wide = max(len(label) for label in labels)
        total = 0.0
        for label, answer, record in zip(labels, answers, records, strict=True):
            start = (record.started or record.created) - first
            lasted = (record.ended or record.created) - first - start
            total += lasted
            time = (f"{lasted * 1000:7.1f} ms  ", _STATUS.get(answer.status, ""))
            self._out.print(
                Text.assemble("  ", label.ljust(wide), time, (self._bar(start / took, lasted / took), "cyan"))
            )
        self.say(
            f"{len(answers)} calls were answered in {took * 1000:.1f} ms, in the model's order; "
            f"their running times add up to {total * 1000:.1f} ms."
        )

    def answer(self, call: ToolCall, answer: Answer, lines: int = 8, last: int = 0) -> None:
        """A call and what the model gets for it: so many lines from its beginning and from its end."""
        self._out.print()
        status = (answer.status, _STATUS.get(answer.status, ""))
        self._out.print(Text.assemble("  ", (self._label(call, self._width - 16), "bold"), "  ", status))
        for repair in answer.record.repairs:
            self._out.print(Text(f"    repaired {repair.path}: {repair.what}", "cyan"))
        self._text(answer.text, lines, last)

    def command(self, command: str, text: str) -> None:
        """A command to try, and what it does."""
        self._out.print(Text.assemble("  ", (f"{command:<41}", "bold"), f"  {text}"), soft_wrap=True)

    def gap(self) -> None:
        """A blank line."""
        self._out.print()

    def _text(self, text: str, first: int, last: int) -> None:
        lines = visible(text).rstrip("\n").split("\n")
        hidden = len(lines) - first - last
        for number, line in enumerate(lines):
            if number == first and hidden > 1:
                self._out.print(Text(f"    {self._more} {hidden} more lines", "dim"))
            if hidden <= 1 or not first <= number < first + hidden:
                self._result_line(line, whole=len(lines) <= _FEW)

    def _result_line(self, line: str, *, whole: bool) -> None:
        room = self._width - 4
        for part in Text(line).wrap(self._out, room) if whole else [Text(self._cut(line, room))]:
            part.rstrip()
            self._out.print(Text("    ") + part if part else "", soft_wrap=True)

    def _label(self, call: ToolCall, room: int) -> str:
        arguments = call.arguments
        values: object = json.loads(arguments) if isinstance(arguments, (str, bytes)) else arguments
        return self._cut(visible(f"{call.name} {json.dumps(values, ensure_ascii=False)}"), room)

    def _cut(self, line: str, room: int) -> str:
        return line if len(line) <= room else line[: room - len(self._more)] + self._more

    def _bar(self, start: float, length: float) -> str:
        before = min(int(start * _BAR), _BAR - 1)
        cells = max(1, min(round(length * _BAR), _BAR - before))
        return " " * before + self._cell * cells
