"""Writes tool results and tool lists in a vendor's form."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from toolkeel import Answer

from . import anthropic, openai_chat, openai_responses
from .forms import Form, Response, ToolListing, WireCall
from .outcome import Outcome, not_run, outcome_of

_RESULTS: dict[Form, Callable[[list[tuple[WireCall, Outcome]]], list[dict[str, object]]]] = {
    "openai": openai_chat.results,
    "responses": openai_responses.results,
    "anthropic": anthropic.results,
}
_ENTRIES: dict[Form, Callable[[ToolListing], dict[str, object]]] = {
    "openai": openai_chat.tool_entry,
    "responses": openai_responses.tool_entry,
    "anthropic": anthropic.tool_entry,
}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMBINED = ("anyOf", "oneOf", "allOf")


def write_results(response: Response, answers: Sequence[Answer]) -> list[dict[str, object]]:
    """The messages (or items) that go behind the response in the conversation, in the response's own form.

    ``answers`` are those to ``response.tool_calls``, in that order. Unfinished calls are answered as not run.
    """
    remaining = iter(answers)
    outcomes = [
        (wire, not_run(wire.call, wire.unfinished) if wire.unfinished else outcome_of(next(remaining)))
        for wire in response.calls
    ]
    return _RESULTS[response.form](outcomes)


def tool_list(offered: bytes, form: Form) -> tuple[list[dict[str, object]], list[str]]:
    """The ``tools`` of a request to a model, and notes on what the vendor is likely to refuse.

    ``offered`` is what ``Offer.json`` gives.
    """
    entries: list[dict[str, object]] = []
    notes: list[str] = []
    for tool in msgspec.json.decode(offered, type=list[ToolListing]):
        entries.append(_ENTRIES[form](tool))
        if not _NAME.fullmatch(tool.name):
            notes.append(f"{tool.name}: the APIs take names of 1 to 64 of A-Z, a-z, 0-9, _ and -")
        combined = [word for word in _COMBINED if word in tool.parameters]
        if combined and form == "anthropic":
            notes.append(f"{tool.name}: Anthropic's API refuses a schema with {combined[0]} at its top")
    return entries, notes
