"""The lifecycle events that observers get."""

from __future__ import annotations

import msgspec

from .calls import CallRecord
from .scope import Request, Scope


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What every event has: when it happened, in seconds since the epoch."""

    time: float


class GatewayStarted(Event, frozen=True, kw_only=True):
    """The kernel is open and every plugin has started."""


class GatewayStopping(Event, frozen=True, kw_only=True):
    """The kernel is about to close; plugins still run."""


class SessionStarted(Event, frozen=True, kw_only=True):
    """A session was opened."""

    scope: Scope


class SessionEnded(Event, frozen=True, kw_only=True):
    """A session was closed, by its owner or with the kernel."""

    scope: Scope


class MessageReceived(Event, frozen=True, kw_only=True):
    """A message of a person arrived."""

    request: Request


class MessageSending(Event, frozen=True, kw_only=True):
    """An answer is about to be sent to the person."""

    request: Request
    text: str


class MessageSent(Event, frozen=True, kw_only=True):
    """An answer was sent to the person."""

    request: Request
    text: str


class PromptBuilding(Event, frozen=True, kw_only=True):
    """The prompt of a model request is about to be built."""

    request: Request


class LlmInput(Event, frozen=True, kw_only=True):
    """A request goes to a model: provider, model and size; the content is in the transcript."""

    request: Request
    provider: str
    model: str
    messages: int
    tools: int


class LlmOutput(Event, frozen=True, kw_only=True):
    """A model answered: how many tool calls, and tokens where the provider says."""

    request: Request
    provider: str
    model: str
    calls: int
    input_tokens: int | None = None
    output_tokens: int | None = None


class ToolCallStarting(Event, frozen=True, kw_only=True):
    """A call passed every decider and is about to run."""

    record: CallRecord


class ToolCallEnded(Event, frozen=True, kw_only=True):
    """A call reached its final status, whichever that is."""

    record: CallRecord


class CallChanged(Event, frozen=True, kw_only=True):
    """A call changed its status: the audit reads these."""

    record: CallRecord


class ToolsChanged(Event, frozen=True, kw_only=True):
    """What sessions may be offered changed: a plugin was enabled, disabled, reloaded or quarantined."""

    reason: str
