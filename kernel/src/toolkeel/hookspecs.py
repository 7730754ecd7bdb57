"""The contract: every hook that the kernel calls.

A plugin implements a hook by a function of the same name, marked ``@hookimpl``. It may leave out parameters that it
does not need. A hook is sync or async (its colour); an implementation has the colour of its hook. Each hook belongs to
one verb, and the verb is its failure rule:

========  ================================================  =====================================================
verb      runs                                              a failure
========  ================================================  =====================================================
notify    every implementation, in order                    is recorded and stops nothing
collect   every implementation; results keep their plugin   is recorded; the others count
decide    in order until one refuses                        is a refusal that names plugin and error
serve     until one answers; the kernel's own answer last   is recorded; the next one runs
around    an onion                                          is the call's failure
========  ================================================  =====================================================

Order is by priority, then by plugin name: lower is earlier, and outermost in ``around``. A plugin's priority is its
``PRIORITY`` (100 when it has none), which an operator overrides at ``kernel.priority.<plugin>``. Every async
implementation has a time limit (``kernel.hook_time_limit``, 5 s); running into it is a failure.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import msgspec
import pluggy
import trio

from . import events
from .calls import Answered, Ask, Call, Reason, Verdict
from .outputs import Preview, Result, Spilled
from .scope import Request, Scope
from .selection import Pin, Ranking
from .services import Services
from .skills import PromptSection, Skill
from .tools import Tool

PROJECT = "toolkeel"
API_VERSION = 1
"""The version of this contract. It grows when a hook is removed or changes its meaning, not when one is added."""

Verb = Literal["notify", "collect", "decide", "serve", "around"]
Function = TypeVar("Function", bound=Callable[..., Any])

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as an implementation of the hook with its name. Plain: order comes from priorities alone."""

_mark = pluggy.HookspecMarker(PROJECT)


class Contract(msgspec.Struct, frozen=True):
    """What the kernel knows of a hook: verb, colour, parameters, and the setting that names its plugin if exclusive."""

    name: str
    verb: Verb
    asynchronous: bool
    parameters: tuple[str, ...]
    exclusive: str = ""


def hookspec(verb: Verb, *, exclusive: str = "") -> Callable[[Function], Function]:
    """Declare a hook: its colour is the function's, its contract the docstring, its failure rule the verb.

    ``exclusive`` names the top-level setting whose value is the one plugin that this hook is compiled with.
    """

    def mark(function: Function) -> Function:
        contract = Contract(
            name=function.__name__,
            verb=verb,
            asynchronous=inspect.iscoroutinefunction(function),
            parameters=tuple(inspect.signature(function).parameters),
            exclusive=exclusive,
        )
        marked = _mark(function)
        marked.toolkeel_contract = contract  # type: ignore[attr-defined]
        return marked

    return mark


class Hooks(Protocol):
    """How a plugin calls hooks: its own that others implement, or the kernel's (a spiller asks for previews)."""

    def collect(self, hook: str, /, *arguments: object) -> list[tuple[str, Any]]:
        """Every implementation's answer to a sync hook with its plugin's name; ``None`` answers are left out."""
        ...

    def serve(self, hook: str, /, *arguments: object) -> Any:
        """The first answer of a sync hook that is not ``None``, else ``None``."""
        ...

    async def collect_async(self, hook: str, /, *arguments: object) -> list[tuple[str, Any]]:
        """Like ``collect``, for an async hook."""
        ...

    async def serve_async(self, hook: str, /, *arguments: object) -> Any:
        """Like ``serve``, for an async hook."""
        ...

    async def notify(self, hook: str, /, *arguments: object) -> None:
        """Tell every implementation of an async hook."""
        ...


class PluginContext(msgspec.Struct, frozen=True):
    """What a plugin class is built with: ``def __init__(self, context: PluginContext)``.

    ``settings`` is an instance of the plugin's ``Settings`` model, ``None`` where it has none. ``state_folder`` is the
    plugin's own folder for files; it is made on first use by the plugin. ``clock`` gives seconds since the epoch.
    """

    name: str
    settings: Any
    services: Services
    hooks: Hooks
    log: logging.Logger
    state_folder: Path
    clock: Callable[[], float]


# Tools -------------------------------------------------------------------------------------------------------------


@hookspec("collect")
def register_tools(scope: Scope) -> Tool | Iterable[Tool] | None:
    """Give the tools that a session may have.

    Called once per session, off the loop in a worker thread, and again after the plugin set changed. It should give
    the same tuple of the same tools to every session that may have them; what differs by session reaches the tool
    through its ``ToolContext``. Ten seconds is the limit; a failure or a hang quarantines the plugin.

    Args:
        scope: the session: configuration, workspace folders, agent, channel. There is no principal in it.

    Returns:
        One tool, several, or ``None``.

    Since 1.
    """


@hookspec("collect")
def admit_tools(tools: Sequence[Tool], request: Request) -> Mapping[str, Reason] | None:
    """Name the optional tools that a policy admits for a request. Tools that are not optional need no admission.

    Args:
        tools: the optional tools of the session, sorted by name.
        request: the request, with principal and scope.

    Returns:
        The admitted names, each with the reason and the setting's path. Other names are ignored.

    Since 1.
    """


@hookspec("decide")
def withhold_tools(tools: Sequence[Tool], request: Request) -> Mapping[str, Reason] | None:
    """Withhold tools from a request. It can only narrow. Sync and quick: it runs for every request.

    A failure withholds every tool, naming the plugin: a rule that cannot be read is not a rule that allows.

    Args:
        tools: what earlier steps left, sorted by name.
        request: the request, with principal and scope.

    Returns:
        The names to withhold, each with its reason. The reason's text is what the model reads when it calls the tool
        all the same.

    Since 1.
    """


@hookspec("decide")
async def rewrite_tool_call(call: Call) -> Mapping[str, Any] | None:
    """Change the arguments of a call. The only place that does; each implementation gets what earlier ones made.

    The result is validated again and frozen. A failure, a time-out or arguments that the tool does not take refuse the
    call.

    Args:
        call: the call, validated.

    Returns:
        The whole new arguments, or ``None`` to leave them.

    Since 1.
    """


@hookspec("decide")
async def authorize_tool_call(call: Call) -> Verdict | None:
    """Decide whether a call may run: allow, refuse, or ask a person.

    The first refusal ends the stage. ``Allow`` and ``None`` mean no objection and outrank nobody. Asks are collected
    into one question after every decider passed. An error, a time-out or a wrong type refuses. Deciders run again after
    an ask was answered. Priorities by custom: roles 100, policy 200, plan mode 300, rules 400.

    Args:
        call: the call, validated and rewritten.

    Returns:
        ``Allow``, ``Refuse``, ``Ask`` or ``None``.

    Since 1.
    """


@hookspec("serve")
async def resolve_ask(call: Call, asks: Sequence[Ask]) -> Answered | None:
    """Answer an ask: the place of approvals. It may wait for a person; its time limit is ``kernel.ask_time_limit``.

    The call holds no slot of the pool meanwhile; only later calls of its batch that touch the same resources wait.
    Nobody answering means that the call is refused.

    Args:
        call: the call in question.
        asks: every ask of the deciders, in their order.

    Returns:
        The answer, or ``None`` to leave it to the next one.

    Since 1.
    """


@hookspec("around")
async def around_tool_call(call: Call, call_next: Callable[[], Awaitable[Result]]) -> Result:
    """Wrap the running of a call: caches, duplicate guards, tracing, retries.

    ``call_next()`` takes no arguments, so that what was authorised is what runs. It may be left out (to answer in the
    tool's place), and awaited again, in turn, for a read or an idempotent tool only. Priorities by custom: tracing 100,
    duplicates 200, cache 300, retries 400. What a hook sets in context variables it resets. If a hook fails after the
    tool returned, the answer says that the tool finished, so that a model does not repeat a write.

    Args:
        call: the call as authorised.
        call_next: runs the next layer, at last the tool.

    Returns:
        The result. A ``Failure`` result fails the call.

    Since 1.
    """
    return await call_next()


# Skills ------------------------------------------------------------------------------------------------------------


@hookspec("collect")
def register_skills(scope: Scope) -> Skill | Iterable[Skill] | None:
    """Give the skills that a session may have. The same rules as ``register_tools``.

    Args:
        scope: the session.

    Returns:
        One skill, several, or ``None``. A skill of a later plugin replaces one of the same name.

    Since 1.
    """


@hookspec("collect")
async def prompt_sections(scope: Scope, request: Request) -> PromptSection | Iterable[PromptSection] | None:
    """Contribute parts of the prompt.

    Args:
        scope: the session.
        request: the request that the prompt is for.

    Returns:
        One section, several, or ``None``.

    Since 1.
    """


@hookspec("collect")
async def rank_skills(request: Request, skills: Sequence[Skill]) -> Ranking | None:
    """Score the skills of a session for a request.

    Args:
        request: the request.
        skills: the session's skills, sorted by name.

    Returns:
        Scores by name, or ``None`` for no say.

    Since 1.
    """


@hookspec("serve", exclusive="selector")
async def select_skills(request: Request, skills: Sequence[Skill], ranked: Sequence[Ranking]) -> Sequence[str] | None:
    """Choose the skills of a request. Exclusive: the plugin that the setting ``selector`` names.

    Args:
        request: the request.
        skills: the session's skills, sorted by name.
        ranked: what the rankers said.

    Returns:
        Names in the order of the catalogue. Unknown names are dropped. ``None``: all skills.

    Since 1.
    """


# Selectors ---------------------------------------------------------------------------------------------------------


@hookspec("collect")
async def pin_tools(request: Request, offered: Sequence[Tool]) -> Iterable[Pin] | None:
    """Name tools that stay in whatever the selection says.

    Args:
        request: the request.
        offered: what may be offered, sorted by name.

    Returns:
        Pins with their reasons. A pin of a tool that may not be offered has no effect.

    Since 1.
    """


@hookspec("collect")
async def rank_tools(request: Request, offered: Sequence[Tool]) -> Ranking | None:
    """Score the tools for a request.

    Args:
        request: the request.
        offered: what may be offered, sorted by name.

    Returns:
        Scores by name, or ``None`` for no say.

    Since 1.
    """


@hookspec("serve")
async def rerank_tools(request: Request, shortlist: Sequence[Tool]) -> Sequence[str] | None:
    """Put a shortlist of at most 50 tools in a better order, by whatever costs more than a ranking. Optional.

    Args:
        request: the request.
        shortlist: the best of the rankings, best first.

    Returns:
        The names in their new order; names left out stay behind them. ``None``: no say.

    Since 1.
    """


@hookspec("serve", exclusive="selector")
async def select_tools(
    request: Request, offered: Sequence[Tool], pinned: Sequence[Pin], ranked: Sequence[Ranking]
) -> Sequence[str] | None:
    """Choose the final, ordered list of tools. Exclusive: the plugin that the setting ``selector`` names.

    The kernel re-applies what may be offered, the pins and the cap (``kernel.tool_limit``, 128) to the answer, so a
    selector can only narrow. Without a selector every tool is offered, sorted by name, up to the cap.

    Args:
        request: the request.
        offered: what may be offered, sorted by name.
        pinned: the pins, in the order of their plugins.
        ranked: what the rankers said.

    Returns:
        Names in the order of the offer. ``None``: all.

    Since 1.
    """


# Spillers ----------------------------------------------------------------------------------------------------------


@hookspec("serve")
def preview_output(kind: str, data: memoryview, limit: int) -> Preview | None:
    """Make a readable preview of an output, by its type. Called in a worker thread when the data is over 1 MB.

    The data is never copied whole and never decoded whole: look at the start, count the rest.

    Args:
        kind: what the tool says the data is (a media type), empty where it does not say.
        data: the output, UTF-8 where it is text.
        limit: at most this many characters of preview.

    Returns:
        The preview, or ``None`` for a type that this plugin does not know.

    Since 1.
    """


@hookspec("serve", exclusive="spiller")
async def spill_result(call: Call, content: bytes, media_type: str) -> Spilled | None:
    """Keep a large result whole and answer with a preview and a ref. Exclusive: the setting ``spiller``.

    Called for results over ``kernel.max_result_chars`` characters, for every result of a tool with ``spill="always"``,
    and never for a tool with ``spill="never"``. Where nobody answers the kernel cuts the text and says so.

    Args:
        call: the call.
        content: the formatted result in UTF-8, whole.
        media_type: what the tool says it is, empty where it does not say.

    Returns:
        What the model gets, with the ref; ``None``: not stored.

    Since 1.
    """


# Lifecycle events --------------------------------------------------------------------------------------------------


@hookspec("notify")
async def on_gateway_start(event: events.GatewayStarted) -> None:
    """Observe that the kernel is open and every plugin has started.

    Events are delivered by one task, in order, after the fact: an observer never holds up the call it observes, and
    nothing is dropped (calls do not start while the queue is full). An observer that runs into its time limit three
    times in a row is suspended, which `toolkeel plugins` shows.

    Args:
        event: the event.

    Since 1.
    """


@hookspec("notify")
async def on_gateway_stop(event: events.GatewayStopping) -> None:
    """Observe that the kernel is about to close; plugins still run.

    Args:
        event: the event.

    Since 1.
    """


@hookspec("notify")
async def on_session_start(event: events.SessionStarted) -> None:
    """Observe that a session was opened.

    Args:
        event: the event, with the session's scope.

    Since 1.
    """


@hookspec("notify")
async def on_session_end(event: events.SessionEnded) -> None:
    """Observe that a session was closed.

    Args:
        event: the event, with the session's scope.

    Since 1.
    """


@hookspec("notify")
async def on_message_received(event: events.MessageReceived) -> None:
    """Observe a message of a person.

    Args:
        event: the event, with the request.

    Since 1.
    """


@hookspec("notify")
async def on_message_sending(event: events.MessageSending) -> None:
    """Observe an answer that is about to be sent to a person.

    Args:
        event: the event, with the request and the text.

    Since 1.
    """


@hookspec("notify")
async def on_message_sent(event: events.MessageSent) -> None:
    """Observe an answer that was sent to a person.

    Args:
        event: the event, with the request and the text.

    Since 1.
    """


@hookspec("notify")
async def on_prompt_build(event: events.PromptBuilding) -> None:
    """Observe that the prompt of a model request is about to be built.

    Args:
        event: the event, with the request.

    Since 1.
    """


@hookspec("notify")
async def on_llm_input(event: events.LlmInput) -> None:
    """Observe a request to a model.

    Args:
        event: the event, with provider, model and sizes.

    Since 1.
    """


@hookspec("notify")
async def on_llm_output(event: events.LlmOutput) -> None:
    """Observe the answer of a model.

    Args:
        event: the event, with provider, model and usage.

    Since 1.
    """


@hookspec("notify")
async def on_tool_call_start(event: events.ToolCallStarting) -> None:
    """Observe a call that passed every decider and is about to run.

    Args:
        event: the event, with the call's record.

    Since 1.
    """


@hookspec("notify")
async def on_tool_call_end(event: events.ToolCallEnded) -> None:
    """Observe a call that reached its final status, whichever that is. Exactly once per call.

    Args:
        event: the event, with the call's record.

    Since 1.
    """


@hookspec("notify")
async def on_call_changed(event: events.CallChanged) -> None:
    """Observe each change of a call's status. An audit log is such an observer.

    Args:
        event: the event, with the call's record.

    Since 1.
    """


@hookspec("notify")
async def on_tools_changed(event: events.ToolsChanged) -> None:
    """Observe that what sessions may be offered changed.

    Args:
        event: the event, with the reason.

    Since 1.
    """


# The kernel's own --------------------------------------------------------------------------------------------------


@hookspec("collect")
def declare_hookspecs() -> object:
    """Declare hooks of this plugin's own, which others implement.

    Called once, before any other hook of any plugin.

    Returns:
        A module or an object whose functions are marked ``@hookspec(verb)``.

    Since 1.
    """


@hookspec("notify")
async def plugin_start(context: PluginContext, nursery: trio.Nursery) -> None:
    """Start what the plugin needs running: connections, background tasks.

    Called once per plugin, in the order of loading, before the gateway starts. A failure quarantines the plugin.

    Args:
        context: the plugin's context; services are provided here (``context.services.provide``).
        nursery: the plugin's own nursery; it is cancelled when the plugin stops.

    Since 1.
    """


@hookspec("notify")
async def plugin_stop() -> None:
    """Put away what ``plugin_start`` made. Called after the plugin's last call ended, with a limit.

    Since 1.
    """
