"""What every form has in common: the calls of a response, decoding, errors that name the place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeVar, get_args

import msgspec

from toolkeel import ToolCall, ToolkeelError

Form = Literal["openai", "responses", "anthropic"]
"""OpenAI's chat completions (and everything compatible), OpenAI's responses, Anthropic's messages."""
FORMS: tuple[Form, ...] = get_args(Form)

Decoded = TypeVar("Decoded")


class WireError(ToolkeelError):
    """Input that is not a model's response in a form that is read here. ``where`` is the JSON path."""


class WireCall(msgspec.Struct, frozen=True):
    """One tool call of a response.

    ``call.id`` is never empty: a call without an id gets one. ``path`` is where the call stands in the input.
    ``custom`` marks calls of free text (OpenAI's custom tools), whose results have a form of their own. ``unfinished``
    says why a call must not run: the response ended in the middle of it. ``echo`` are fields that the vendor wants
    repeated in the result.
    """

    call: ToolCall
    path: str
    custom: bool = False
    unfinished: str = ""
    echo: dict[str, object] = msgspec.field(default_factory=dict[str, object])


class ToolListing(msgspec.Struct, frozen=True):
    """A tool as an offer lists it (``Offer.json``): the description already names the tool's presets."""

    name: str
    description: str
    parameters: dict[str, object]


class Response(msgspec.Struct, frozen=True):
    """The tool calls of one model response, in the model's order; ``notes`` is what a person should know of it."""

    form: Form
    calls: tuple[WireCall, ...]
    notes: tuple[str, ...] = ()

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls that may run: all but the unfinished ones."""
        return [wire.call for wire in self.calls if not wire.unfinished]


def decode(data: bytes, kind: type[Decoded]) -> Decoded:
    """Decode JSON as ``kind``; raises ``WireError`` with the JSON path, or with line and column."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at ")
        where = path.strip("`").removeprefix("$").removeprefix(".")
        raise WireError(_lower(what).replace("`str", "`string"), where=where, remedy="" if where else _REMEDY) from None
    except msgspec.DecodeError as error:
        raise WireError(_syntax(str(error), data), remedy=_REMEDY) from None
    except RecursionError:
        raise WireError("the JSON is nested too deeply", remedy="Give the response as the model sent it") from None


def arguments_of(raw: msgspec.Raw) -> str | None:
    """Arguments as the model wrote them: the text of a JSON string, else the JSON text itself; ``None`` for none.

    Nothing is parsed: what is wrong with the arguments is for the kernel to say, in words that the model can use.
    """
    text = bytes(raw).strip()
    if text in (b"", b"null"):
        return None
    if text.startswith(b'"'):
        return decode(text, str) or None
    return text.decode("utf-8", "replace")


def echoed(**fields: msgspec.Raw) -> dict[str, object]:
    """Those fields that are there and not null, decoded."""
    found: dict[str, object] = {}
    for name, raw in fields.items():
        if bytes(raw).strip() in (b"", b"null"):
            continue
        try:
            found[name] = decode(bytes(raw), object)
        except WireError as error:
            raise WireError(error.what, where=name, remedy=_REMEDY) from None
    return found


def is_json(arguments: object) -> bool:
    """Whether arguments are complete: absent, decoded already, or text that parses as JSON."""
    if not isinstance(arguments, (str, bytes)):
        return True
    try:
        msgspec.json.decode(arguments, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F]([0-9a-fA-F]{2})|.)", re.DOTALL
)


def readable(data: bytes) -> bytes:
    """A response with each half of a surrogate pair, which streams cut off and JSON allows, made U+FFFD.

    Raises:
        WireError: the data is not UTF-8; says where.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"not UTF-8 at {_place(data, error.start)}", remedy=_REMEDY) from None
    if b"\\ud" not in data.lower():
        return data
    return _ESCAPE.sub(lambda found: found[0] if found[1] is None else b"\\ufffd", data)


_REMEDY = "Give one whole response as JSON"


class Ids:
    """Call ids of one response: makes missing ones up and notes duplicates."""

    def __init__(self, given: Iterable[str | None], prefix: str) -> None:
        self._given = {each for each in given if each}
        self._prefix = prefix
        self._seen: set[str] = set()
        self.notes: list[str] = []

    def use(self, given: str | None, path: str) -> str:
        """The id of the call at ``path``."""
        if not given:
            count = len(self._given)
            while (made := f"{self._prefix}{count}") in self._given:
                count += 1
            self._given.add(made)
            self.notes.append(f"{path} has no id; its result carries {made}: give the call you send back the same")
            return made
        if given in self._seen:
            self.notes.append(f"{path} repeats the id {given}; both calls run and both results carry it")
        self._seen.add(given)
        return given


_BYTE = re.compile(r"\(byte (\d+)\)$")


def _syntax(message: str, data: bytes) -> str:
    found = _BYTE.search(message)
    if not data.strip():
        return "the input is empty"
    if not found:
        return f"not JSON: {_lower(message)}"
    reason = message.removeprefix("JSON is malformed: ")[: -len(found[0])].strip()
    return f"not JSON: {reason} at {_place(data, int(found[1]))}"


def _place(data: bytes, offset: int) -> str:
    line, column = data.count(b"\n", 0, offset) + 1, offset - data.rfind(b"\n", 0, offset)
    return f"line {line}, column {column}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
