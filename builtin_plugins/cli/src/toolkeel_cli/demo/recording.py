"""The recorded model: what it answers at each turn, in the wire form of one vendor or another.

Its calls were written beforehand. Two things it takes from the results that it gets, as any model does: the ref of an
output to read on in, and the numbers to add up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from toolkeel import Answer
from toolkeel_cli.wire import Form

MESSAGE = (
    "Customers on the islands get no parcels: read notes/incident.md. How many of our orders are held, what are they "
    "worth, and where in the code is that decided?"
)


class Turn(msgspec.Struct, frozen=True):
    """One answer of the model: what it says, the calls it makes, the form that it comes in."""

    says: str
    form: Form
    calls: tuple[tuple[str, dict[str, Any]], ...]

    def on_the_wire(self) -> bytes:
        """The response as the vendor sends it."""
        return json.dumps(_WIRE[self.form](self)).encode()


Conversation = Generator[Turn, Sequence[Answer], str]
"""Yields the model's turns, gets the answers to each, returns what the model says at the end."""


def conversation() -> Conversation:
    """The demo's conversation."""
    listing = yield Turn(
        "I look around: the folder, the notes, the code, and what the sum at stake is with tax.",
        "openai",
        (
            ("file_list", {"depth": 2}),
            ("file_read", {"path": "notes/incident.md"}),
            ("file_read", {"path": "README.md"}),
            ("file_read", {"path": "shop/rules.py", "numbers": True}),
            ("code_search", {"query": '"held"', "glob": "*.py"}),
            ("code_search", {"query": "^def ", "regex": True, "around": 1}),
            ("datetime", {"operation": "now", "zone": "Atlantic/Faroe"}),
            ("calc", {"expression": "495 * (1 + 25%)"}),
        ),
    )
    yield Turn(
        "I make three slips, as models do: a tool that is not there, a number as text, a path that leads out.",
        "anthropic",
        (
            ("read_file", {"path": "shop/rules.py"}),
            ("file_read", {"path": "shop/rules.py", "offset": "9", "limit": "5"}),
            ("file_read", {"path": "../../../../etc/passwd"}),
        ),
    )
    [export] = yield Turn(
        "Now the export of the orders, all of it.",
        "responses",
        (("file_read", {"path": "data/orders.json", "limit": 20_000}),),
    )
    [found] = yield Turn(
        "That was large: I have a preview and a ref. I search the whole for what is held.",
        "anthropic",
        (("read_output", {"ref": export.ref, "mode": "search", "query": '"status":"held"', "context": 0}),),
    )
    totals = re.findall(r'"status":"held","total":([\d.]+)', found.text)
    [worth] = yield Turn(
        "I add up what they are worth.",
        "openai",
        (("calc", {"expression": " + ".join(totals)}),),
    )
    everything = _first(r"of ([\d,]+) items", export.text)
    place = _first(r"^(shop/\S+?:\d+):", listing[4].text)
    return (
        f"{len(totals)} of {everything} orders are held; together they are worth {worth.text}. The code decides it at "
        f"{place}: what goes by sea and costs more than the limit waits for an insurance that nobody arranges."
    )


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else "?"


def _openai(turn: Turn) -> dict[str, Any]:
    calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(turn.calls, 1)
    ]
    message = {"role": "assistant", "content": turn.says, "tool_calls": calls, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}
    return {"id": "chatcmpl-demo", "object": "chat.completion", "created": 0, "model": "recorded", "choices": [choice]}


def _responses(turn: Turn) -> dict[str, Any]:
    said: dict[str, Any] = {"type": "output_text", "text": turn.says, "annotations": []}
    message: dict[str, Any] = {
        "type": "message",
        "id": "msg_demo",
        "role": "assistant",
        "status": "completed",
        "content": [said],
    }
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for number, (name, arguments) in enumerate(turn.calls, 1)
    ]
    return {"id": "resp_demo", "object": "response", "status": "completed", "error": None, "output": [message, *calls]}


def _anthropic(turn: Turn) -> dict[str, Any]:
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(turn.calls, 1)
    ]
    content = [{"type": "text", "text": turn.says}, *calls]
    return {
        "id": "msg_demo",
        "type": "message",
        "role": "assistant",
        "model": "recorded",
        "content": content,
        "stop_reason": "tool_use",
        "stop_sequence": None,
    }


_WIRE = {"openai": _openai, "responses": _responses, "anthropic": _anthropic}
