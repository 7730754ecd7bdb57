"""Which tools a request is offered, and why."""

from __future__ import annotations

import difflib
import fnmatch
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

import msgspec

from . import hooks, rendering
from .calls import Answer, Reason, ToolCall
from .hooks import HookFailure, HookSet, Report
from .plugin import Plugin
from .scope import Request
from .selection import Pin, Ranking
from .settings import KernelSettings
from .tools import Tool
from .validate import Validator

_SHORTLIST = 50
_REFERENCED = 3
_ALIKE = 0.6
Progress = Callable[[str, float, float | None, str], None]
"""What hears of progress: the model's call id, done, total, text. Called from any thread."""
Pins = dict[str, tuple[Pin, str]]
Run = Callable[["Offer", Sequence[ToolCall], Progress | None], Awaitable[list[Answer]]]


class Entry:
    """A tool as the kernel runs it: with its plugin and all that is looked up once."""

    __slots__ = ("asynchronous", "context_parameter", "group", "owner", "tool", "validator")

    def __init__(self, tool: Tool, owner: Plugin) -> None:
        self.tool = tool
        self.owner = owner
        self.validator = Validator(tool)
        self.asynchronous = tool.asynchronous
        self.context_parameter = tool.context_parameter
        self.group = tool.group or owner.name


class Table:
    """The tools of a session, by name. Sessions with the same tools share one."""

    def __init__(self, entries: Mapping[str, Entry], diagnostics: tuple[str, ...]) -> None:
        self.entries = dict(sorted(entries.items()))
        self.tools = tuple(entry.tool for entry in self.entries.values())
        self.optional = frozenset(tool.name for tool in self.tools if tool.optional)
        self.diagnostics = diagnostics
        self._encoded: dict[str, bytes] = {}

    def encoded(self, name: str) -> bytes:
        """A tool's listing as JSON: name, description, parameters. Encoded once."""
        found = self._encoded.get(name)
        if found is None:
            tool = self.entries[name].tool
            listing = {"name": name, "description": described(tool), "parameters": tool.parameters}
            found = self._encoded[name] = rendering.to_json(listing)
        return found


def described(tool: Tool) -> str:
    """A tool's description with its presets, in stored order."""
    if not tool.presets:
        return tool.description
    lines = [
        f"- {preset.name}: {rendering.to_json(preset.arguments).decode()}"
        + (f" {preset.description}" if preset.description else "")
        for preset in tool.presets
    ]
    return "\n".join([tool.description, "", "Presets:", *lines])


def build_table(
    registered: Iterable[tuple[Plugin, tuple[Tool, ...]]], prefer: Mapping[str, str], known: dict[int, Entry]
) -> Table:
    """Put what the factories gave into one table; equal names go to the first plugin, or the preferred one."""
    entries: dict[str, Entry] = {}
    diagnostics: list[str] = []
    for plugin, tools in registered:
        for tool in tools:
            entry = known.get(id(tool))
            if entry is None or entry.owner is not plugin or entry.tool is not tool:
                entry = known[id(tool)] = Entry(tool, plugin)
            other = entries.get(tool.name)
            if other is None:
                entries[tool.name] = entry
                continue
            if other.owner is plugin:
                diagnostics.append(f"plugin {plugin.name!r} gives two tools {tool.name!r}; the first one is taken")
                continue
            wins = entry if prefer.get(tool.name) == plugin.name else other
            entries[tool.name] = wins
            diagnostics.append(
                f"tool {tool.name!r} is given by plugins {other.owner.name!r} and {plugin.name!r}; that of "
                f"{wins.owner.name!r} is taken. Decide it with kernel.prefer.{tool.name}"
            )
    return Table(entries, tuple(diagnostics))


class Step(msgspec.Struct, frozen=True):
    """One step of offering, as ``explain`` shows it: what it is, whether the tool passed, who decided and why."""

    stage: str
    passed: bool
    text: str
    by: str = ""
    setting: str = ""


class Explanation(msgspec.Struct, frozen=True):
    """Whether a tool is offered for a request, and every rule that had a say."""

    tool: str
    offered: bool
    steps: tuple[Step, ...]
    nearest: tuple[str, ...] = ()


class Offer:
    """The tools of one request, and how to call them.

    ``tools`` is what the model may be shown, in order. ``reasons`` says for each why it is in; ``withheld`` for others
    why not, in the words that a call of it is refused with. ``queue`` names the session in the pool.
    """

    def __init__(
        self,
        session: Any,
        request: Request,
        table: Table,
        tools: tuple[Tool, ...],
        reasons: Mapping[str, str],
        withheld: Mapping[str, Reason],
        steps: Mapping[str, tuple[Step, ...]],
        run: Run,
    ) -> None:
        self.session = session
        self.queue = f"{request.scope.agent}\0{request.scope.session}"
        self.request = request
        self.table = table
        self.tools = tools
        self.names = frozenset(tool.name for tool in tools)
        self.reasons = reasons
        self.withheld = withheld
        self._steps = steps
        self._run = run

    def call(self, calls: Sequence[ToolCall], *, progress: Progress | None = None) -> Awaitable[list[Answer]]:
        """Run the calls of one model response, concurrently; the answers come in the model's order.

        A call that cannot run is an answer too (``refused``, ``failed``); only cancelling raises.
        """
        return self._run(self, calls, progress)

    def for_request(self, request: Request) -> Offer:
        """The same offer for another request of the same session that nothing distinguishes."""
        copy = Offer.__new__(Offer)
        copy.__dict__.update(self.__dict__)
        copy.request = request
        return copy

    def json(self) -> bytes:
        """The offered tools as a JSON array of name, description and parameters."""
        return b"[" + b",".join([self.table.encoded(tool.name) for tool in self.tools]) + b"]"

    def not_offered(self, name: str) -> Reason:
        """Why a tool is not offered, in words for the model."""
        reason = self.withheld.get(name)
        if reason is not None:
            return reason
        near = self.nearest(name)
        text = f"there is no tool {name[:100]!r} here."
        if near:
            text += f" Nearest: {', '.join(near)}."
        if "search_tools" in self.names:
            text += " search_tools finds others."
        elif not near:
            text += f" Offered: {', '.join(sorted(self.names)[:20]) or 'none'}."
        return Reason(text, rule="offer")

    def nearest(self, name: str) -> tuple[str, ...]:
        """The offered names that are most like a name."""
        return nearest(name, self.names)

    def explain(self, name: str) -> Explanation:
        """Why a tool is offered or not: each step that had a say."""
        entry = self.table.entries.get(name)
        if entry is not None:
            given = Step("registry", passed=True, text=f"given by plugin {entry.owner.name!r}", by=entry.owner.name)
            return Explanation(name, name in self.names, (given, *self._steps.get(name, ())))
        near = nearest(name, self.table.entries)
        step = Step("registry", passed=False, text="no active plugin gives a tool of this name to the session")
        return Explanation(name, offered=False, steps=(step,), nearest=near)


def nearest(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Up to three names that are like ``name``, in spelling or by its words."""
    folded = name[:100].lower()
    words = _words(folded)
    scored: list[tuple[float, str]] = []
    for other in sorted(names):
        shared = len(words & _words(other)) / len(words | _words(other)) if words else 0.0
        matcher = difflib.SequenceMatcher(None, folded, other.lower())
        alike = matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE else 0.0
        if shared or alike >= _ALIKE:
            scored.append((-max(shared, alike), other))
    return tuple(other for _, other in sorted(scored)[:_REFERENCED])


def _words(name: str) -> set[str]:
    return {word for word in name.lower().replace("-", "_").replace(".", "_").split("_") if len(word) > 2}


class Offering:
    """The steps from a session's table to a request's offer. Each step only narrows."""

    def __init__(self, settings: KernelSettings, report: Report, run: Run) -> None:
        self._settings = settings
        self._report = report
        self._run = run
        self.cut: dict[str, str] = {}

    async def offer(self, session: Any, request: Request, table: Table, hookset: HookSet) -> Offer:
        """Make the offer of a request."""
        trace = _Trace(table)
        if hookset.lacking:
            text = f"required plugins are not active: {hookset.lacking}. An operator must see to it."
            for tool in table.tools:
                trace.out(tool.name, "require", Reason(text, "kernel.require", "require"))
            return Offer(session, request, table, (), {}, trace.withheld, trace.steps, self._run)
        left = [tool for tool in table.tools if self._capped(tool, request, trace)]
        left = self._admitted(left, request, hookset, trace)
        left = self._withheld(left, request, hookset, trace)
        chosen = await self._selected(left, request, hookset, trace)
        reasons = {tool.name: trace.why_in(tool.name) for tool in chosen}
        return Offer(session, request, table, tuple(chosen), reasons, trace.withheld, trace.steps, self._run)

    def _capped(self, tool: Tool, request: Request, trace: _Trace) -> bool:
        cap = request.tool_cap
        if cap is None:
            return True
        inside = tool.name in cap
        if inside:
            trace.passed(tool.name, "cap", "stands in the run's tool cap")
        else:
            trace.out(tool.name, "cap", Reason(f"{tool.name} is outside the tools of this run.", "", "cap"))
        return inside

    def _admitted(self, tools: list[Tool], request: Request, hookset: HookSet, trace: _Trace) -> list[Tool]:
        optional = [tool for tool in tools if tool.optional]
        if not optional:
            return tools
        admitted: dict[str, tuple[str, Reason]] = {}
        for plugin, answer in hooks.collect(hookset["admit_tools"], self._report, _reasons, optional, request):
            for name, reason in answer.items():
                admitted.setdefault(name, (plugin, reason))
        patterns = self._settings.optional
        for tool in optional:
            entry = trace.table.entries[tool.name]
            names = (tool.name, entry.owner.name, f"group:{entry.group}")
            match = next((p for p in patterns if any(fnmatch.fnmatchcase(name, p) for name in names)), None)
            if match is not None:
                admitted.setdefault(tool.name, ("", Reason(f"named by {match!r}", "kernel.optional")))
            if tool.name in admitted:
                by, reason = admitted[tool.name]
                trace.passed(tool.name, "optional", reason.text, by, reason.setting)
            else:
                text = f"{tool.name} is optional and no policy names it."
                trace.out(tool.name, "optional", Reason(text, "kernel.optional", "optional"))
        return [tool for tool in tools if not tool.optional or tool.name in admitted]

    def _withheld(self, tools: list[Tool], request: Request, hookset: HookSet, trace: _Trace) -> list[Tool]:
        for one in hookset["withhold_tools"]:
            try:
                answer = one.run(tuple(tools), request)
                said: dict[str, Reason] = {} if answer is None else one.read(_reasons, answer)
            except HookFailure as failure:
                self._report(failure)
                text = f"every tool is withheld: {failure.what} in withhold_tools. An operator must mend it."
                said = {tool.name: Reason(text, f"plugins: {one.plugin}", "failure") for tool in tools}
            for tool in tools:
                if tool.name in said:
                    trace.out(tool.name, said[tool.name].rule, said[tool.name], one.plugin)
                else:
                    trace.passed(tool.name, "policy", "has no objection", one.plugin)
            tools = [tool for tool in tools if tool.name not in said]
        return tools

    async def _selected(self, tools: list[Tool], request: Request, hookset: HookSet, trace: _Trace) -> list[Tool]:
        limit = self._settings.hook_time_limit
        offered = tuple(tools)
        by_name = {tool.name: tool for tool in tools}
        pins = await self._pins(request, offered, hookset, by_name)
        for pin, plugin in pins.values():
            trace.passed(pin.name, "pin", pin.reason, plugin)
        if hookset["select_tools"] or hookset["rank_tools"]:
            rankings = await hooks.collect_async(
                hookset["rank_tools"], self._report, read_ranking, limit, request, offered
            )
            ranked = [one if one.source else msgspec.structs.replace(one, source=plugin) for plugin, one in rankings]
            pinned = [pin for pin, _ in pins.values()]
            names = await hooks.serve_async(
                hookset["select_tools"], self._report, hooks.names, limit, request, offered, pinned, ranked
            )
            if names is not None:
                tools = self._narrowed(names, by_name, pins, trace, hookset)
                tools = await self._reranked(tools, request, hookset, pins)
        return self._limited(tools, pins, trace, chosen=bool(hookset["select_tools"]))

    def _limited(self, tools: list[Tool], pins: Pins, trace: _Trace, *, chosen: bool) -> list[Tool]:
        """At most so many tools: pins first, then as the selector ordered, or in fair shares of the plugins."""
        cap = self._settings.tool_limit
        if len(tools) <= cap:
            return tools
        pinned = [tool for tool in tools if tool.name in pins]
        rest = [tool for tool in tools if tool.name not in pins]
        first = [*pinned, *(rest if chosen else _in_turns(rest, trace.table))][:cap]
        kept = {tool.name for tool in first}
        cut: Counter[str] = Counter()
        for tool in tools:
            if tool.name not in kept:
                cut[trace.table.entries[tool.name].owner.name] += 1
                text = f"{tool.name} is over the limit of {cap} tools."
                trace.out(tool.name, "limit", Reason(text, "kernel.tool_limit", "limit"))
        gives = Counter(entry.owner.name for entry in trace.table.entries.values())
        self.cut = {
            plugin: f"plugin {plugin!r} gives {gives[plugin]:,} tools; kernel.tool_limit ({cap}) cut {count:,} of them"
            for plugin, count in cut.items()
        }
        return [tool for tool in tools if tool.name in kept]

    async def _pins(
        self, request: Request, offered: tuple[Tool, ...], hookset: HookSet, by_name: Mapping[str, Tool]
    ) -> Pins:
        implementations = hookset["pin_tools"]
        pins: Pins = {}
        if implementations:
            limit = self._settings.hook_time_limit
            found = await hooks.collect_async(implementations, self._report, _read_pins, limit, request, offered)
            for plugin, answer in found:
                for pin in answer:
                    if pin.name in by_name:
                        pins.setdefault(pin.name, (pin, plugin))
        return pins

    def _narrowed(
        self, names: list[str], by_name: Mapping[str, Tool], pins: Pins, trace: _Trace, hookset: HookSet
    ) -> list[Tool]:
        selector = hookset["select_tools"][0].plugin
        chosen = dict.fromkeys(name for name in names if name in by_name)
        kept = {**chosen, **dict.fromkeys(pins)}
        for name in by_name:
            if name in chosen:
                trace.passed(name, "selection", "was selected for this message", selector)
            elif name not in kept:
                text = f"{name} was not selected for this message."
                if "search_tools" in kept:
                    text += " search_tools makes it callable."
                trace.out(name, "selection", Reason(text, "selector", "selection"), selector)
        return [by_name[name] for name in kept]

    async def _reranked(self, tools: list[Tool], request: Request, hookset: HookSet, pins: Pins) -> list[Tool]:
        implementations = hookset["rerank_tools"]
        if not implementations:
            return tools
        shortlist = tuple(tool for tool in tools if tool.name not in pins)[:_SHORTLIST]
        limit = self._settings.hook_time_limit
        names = await hooks.serve_async(implementations, self._report, hooks.names, limit, request, shortlist)
        if names is None:
            return tools
        by_name = {tool.name: tool for tool in tools}
        order = dict.fromkeys(name for name in names if name in by_name and name not in pins)
        first = [tool for tool in tools if tool.name in pins]
        rest = [tool for tool in tools if tool.name not in pins and tool.name not in order]
        return [*first, *(by_name[name] for name in order), *rest]


class _Trace:
    """What each step said of each tool."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.steps: dict[str, tuple[Step, ...]] = {}
        self.withheld: dict[str, Reason] = {}

    def passed(self, name: str, stage: str, text: str, by: str = "", setting: str = "") -> None:
        self.steps[name] = (*self.steps.get(name, ()), Step(stage, passed=True, text=text, by=by, setting=setting))

    def out(self, name: str, stage: str, reason: Reason, by: str = "") -> None:
        step = Step(stage, passed=False, text=reason.text, by=by, setting=reason.setting)
        self.steps[name] = (*self.steps.get(name, ()), step)
        self.withheld[name] = reason

    def why_in(self, name: str) -> str:
        steps = self.steps.get(name)
        if not steps:
            return f"given by plugin {self.table.entries[name].owner.name!r}; nothing narrows the offer"
        last = next((step for step in reversed(steps) if step.stage in ("pin", "selection", "optional")), steps[-1])
        return f"{last.stage}: {last.text}"


def _in_turns(tools: list[Tool], table: Table) -> list[Tool]:
    """The tools of all plugins in turns, so that none drives out the others."""
    by_plugin: dict[str, list[Tool]] = {}
    for tool in tools:
        by_plugin.setdefault(table.entries[tool.name].owner.name, []).append(tool)
    turns = zip_longest(*by_plugin.values())
    return [tool for turn in turns for tool in turn if tool is not None]


def read_ranking(answer: Any) -> Ranking:
    """A ranking whose scores are a mapping."""
    if not isinstance(answer, Ranking) or not isinstance(cast("Any", answer.scores), Mapping):
        raise hooks.wrong(answer)
    return answer


def _read_pins(answer: Any) -> list[Pin]:
    pins = list(answer)
    for pin in pins:
        if not isinstance(pin, Pin) or not isinstance(cast("Any", pin.name), str):
            raise hooks.wrong(pin)
    return pins


def _reasons(answer: Any) -> dict[str, Reason]:
    if not isinstance(answer, Mapping):
        raise hooks.wrong(answer)
    return {str(name): _reason(reason) for name, reason in cast("Mapping[Any, Any]", answer).items()}


def _reason(value: object) -> Reason:
    return value if isinstance(value, Reason) else Reason(str(value))
