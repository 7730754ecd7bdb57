"""What a vendor's form needs to know of an answer."""

from __future__ import annotations

import msgspec

from toolkeel import Answer, Media, Parts, ToolCall


class Outcome(msgspec.Struct, frozen=True):
    """The text of a result, whether it is an error, and media that a form may be able to show."""

    text: str
    failed: bool = False
    media: tuple[Media, ...] = ()


def outcome_of(answer: Answer) -> Outcome:
    """The outcome of a call that the engine answered."""
    result = answer.result
    items = result.items if isinstance(result, Parts) else (result,)
    return Outcome(answer.text, answer.failed, tuple(item for item in items if isinstance(item, Media)))


def not_run(call: ToolCall, reason: str) -> Outcome:
    """The outcome of a call that could not be run because the response ended in the middle of it."""
    return Outcome(f"{call.name} was not run: {reason}. Call it again, with less in it or with a higher limit.", True)
