"""A call of a tool: what the model asks, what hooks see and decide, what is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, cast

import msgspec

from .outputs import Result
from .scope import Principal, Request, Scope
from .tools import Key, Tool

Status = Literal["pending", "executing", "completed", "failed", "refused", "cancelled"]
_SCALARS = frozenset({str, int, float, bool, type(None)})
FINAL: frozenset[Status] = frozenset({"completed", "failed", "refused", "cancelled"})


def frozen(value: Any) -> Any:
    """A JSON value that nobody can change: mappings read-only, arrays as tuples.

    A flat mapping is not copied: hand in one that is your own.
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        for item in members.values():
            if type(item) not in _SCALARS:
                return MappingProxyType({key: frozen(inner) for key, inner in members.items()})
        return MappingProxyType(members)
    if isinstance(value, list):
        return tuple(frozen(item) for item in cast("list[Any]", value))
    return value


def thawed(value: Any) -> Any:
    """A copy of a frozen JSON value in plain dicts and lists, to change or to write as JSON."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {key: i if type(i) in _SCALARS else thawed(i) for key, i in members.items()}
    if isinstance(value, (list, tuple)):
        return [thawed(item) for item in cast("Sequence[Any]", value)]
    return value


def encodable(text: str) -> str:
    """The text without lone surrogates, which no surface and no log can write."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


class ToolCall(msgspec.Struct, frozen=True):
    """One call as the model wrote it. ``arguments`` is the JSON text or the already decoded value."""

    name: str
    arguments: str | bytes | Mapping[str, Any] | None = None
    id: str = ""


class Reason(msgspec.Struct, frozen=True):
    """Why something was withheld or refused: words for the model and, where one decided, the setting's path.

    ``rule`` is the kind of rule (``role``, ``policy``, ``plan_mode``, ``cap`` …).
    """

    text: str
    setting: str = ""
    rule: str = "policy"


class Allow(msgspec.Struct, frozen=True):
    """A decider has no objection; it never outranks a later one. The same as returning ``None``."""

    reason: str = ""


class Refuse(msgspec.Struct, frozen=True):
    """A decider refuses the call; the stage ends. A string is a reason in plain words."""

    reason: Reason | str


class Ask(msgspec.Struct, frozen=True):
    """A decider wants a person to be asked, once every decider has passed the call."""

    question: str
    reason: Reason | str = ""


Verdict = Allow | Refuse | Ask
"""What a decider may answer."""


class Answered(msgspec.Struct, frozen=True):
    """A person's answer to an ask. ``arguments`` replaces the call's arguments; they are validated and judged again."""

    allowed: bool
    by: str
    reason: str = ""
    arguments: Mapping[str, Any] | None = None


class Call(msgspec.Struct, frozen=True):
    """A call as hooks see it: validated, its arguments repaired and frozen.

    ``id`` is unique in the process; ``model_id`` is what the model called it. ``arguments`` is frozen to its depth
    (arrays are tuples; ``thawed`` gives a copy to change). ``plugin`` brought the tool. ``parent`` is the id of the
    call that made this one, empty at the top.
    """

    id: str
    model_id: str
    tool: Tool
    arguments: Mapping[str, Any]
    request: Request
    plugin: str
    parent: str = ""
    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()

    @property
    def scope(self) -> Scope:
        """The session that the call belongs to."""
        return self.request.scope

    @property
    def principal(self) -> Principal:
        """On whose behalf the call runs."""
        return self.request.principal


class Repair(msgspec.Struct, frozen=True):
    """A harmless slip in the arguments that was put right: where (``items[2].price``) and what."""

    path: str
    what: str


class CallRecord(msgspec.Struct, frozen=True):
    """One state of one call, as observers and the audit get it. Times are seconds since the epoch, ``None`` until then.

    ``arguments`` are those that were authorised, frozen (``thawed`` gives plain JSON), or what the model sent where it
    came to no authorisation.
    ``refused_by`` names the stage, plugin or rule.
    """

    id: str
    model_id: str
    tool: str
    plugin: str
    arguments: object
    status: Status
    agent: str
    session: str
    principal: str
    role: str
    created: float
    parent: str = ""
    started: float | None = None
    ended: float | None = None
    reason: str = ""
    refused_by: str = ""
    setting: str = ""
    repairs: tuple[Repair, ...] = ()
    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """What the model gets for one call.

    ``text`` is the formatted content, already shortened when the whole was stored under ``ref``. ``result`` is the
    typed result (the preview's text where it was spilled), so that a surface can show media.
    """

    id: str
    tool: str
    status: Status
    text: str
    result: Result
    record: CallRecord
    ref: str = ""

    @property
    def failed(self) -> bool:
        """Whether the model should read the text as an error."""
        return self.status != "completed"
