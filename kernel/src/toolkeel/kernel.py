"""The façade: open a kernel, open sessions, offer tools, run calls, close."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import difflib
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import trio

from . import discovery, events, hooks
from .calls import Answer, ToolCall
from .config import Config
from .delivery import Delivery
from .dispatch import Dispatcher
from .errors import Closed, DefinitionError, SettingsError
from .hooks import HookFailure, HookSet, Relay
from .hookspecs import Contract
from .offer import Entry, Explanation, Offer, Offering, Progress, Table, build_table, read_ranking
from .plugins import Caller, Plugins, known_sections
from .pool import Pool
from .scope import Format, Principal, Request, Scope
from .services import Services
from .settings import KernelSettings
from .skills import PromptSection, Skill
from .tools import Tool
from .watch import Watch, Watchdog

_log = logging.getLogger("toolkeel")
_DRAIN = 5.0
_LAYERS = ("system", "session", "message")
_STALLS = 10
_PLAIN_HOOKS = ("admit_tools", "withhold_tools", "pin_tools", "rank_tools", "select_tools", "rerank_tools")


class Session:
    """One conversation of one agent: a scope, its tools, and the requests made in it.

    Made by ``Kernel.session``; not to be used after it was closed.
    """

    def __init__(self, kernel: Kernel, scope: Scope) -> None:
        self.kernel = kernel
        self.scope = scope
        self.closed = False
        self._table: Table | None = None
        self._generation = -1
        self._plain: Offer | None = None
        self._lock = trio.Lock()

    def request(
        self,
        message: str = "",
        *,
        principal: Principal,
        surface: str = "",
        attachments: Sequence[str] = (),
        tool_cap: Iterable[str] | None = None,
        format: Format = "markdown",  # noqa: A002 - the field's name
        id: str = "",  # noqa: A002 - the field's name
    ) -> Request:
        """A request of this session; see ``Request`` for the fields."""
        return Request(
            scope=self.scope,
            principal=principal,
            message=message,
            surface=surface or self.scope.channel,
            attachments=tuple(attachments),
            tool_cap=None if tool_cap is None else frozenset(tool_cap),
            format=format,
            id=id,
        )

    async def offer(self, request: Request) -> Offer:
        """The tools that a request is offered, and how to call them."""
        if request.scope is not self.scope and request.scope != self.scope:
            raise DefinitionError("the request is of another session", where=f"session {self.scope.session!r}")
        table = await self.table()
        return await self.kernel._offer(self, request, table)

    async def explain(self, tool: str, request: Request) -> Explanation:
        """Whether a tool is offered for a request, and every rule that had a say."""
        return (await self.offer(request)).explain(tool)

    async def table(self) -> Table:
        """The tools of the session, registered anew where the plugin set changed."""
        if self.closed:
            raise Closed("the session is closed", where=f"session {self.scope.session!r}")
        if self._table is not None and self._generation == self.kernel.generation:
            return self._table
        async with self._lock:
            while self._table is None or self._generation != self.kernel.generation:
                generation = self.kernel.generation
                self._table = await self.kernel._register(self.scope)
                self._generation = generation
                self._plain = None
        return self._table

    async def skills(self) -> tuple[Skill, ...]:
        """The skills of the session by name; a later plugin's replaces one of the same name."""
        registered = await self.kernel.plugins.register("register_skills", self.scope, Skill)
        found: dict[str, Skill] = {skill.name: skill for _, skills in registered for skill in skills}
        return tuple(found[name] for name in sorted(found))

    async def select_skills(self, request: Request) -> tuple[Skill, ...]:
        """The skills that the selector chooses for a request; all of them where there is none."""
        skills = await self.skills()
        names = await self.kernel._select_skills(request, skills)
        if names is None:
            return skills
        by_name = {skill.name: skill for skill in skills}
        return tuple(by_name[name] for name in dict.fromkeys(names) if name in by_name)

    async def prompt_sections(self, request: Request) -> tuple[PromptSection, ...]:
        """What plugins contribute to the prompt, by layer, priority and name."""
        found: list[PromptSection] = []
        for plugin, answer in await self.kernel.hooks_for("prompt_sections", self.scope, request):
            try:
                sections = (answer,) if isinstance(answer, PromptSection) else tuple(cast("Iterable[Any]", answer))
                if not all(_is_section(section) for section in sections):
                    raise TypeError("gave something that is no prompt section")
            except Exception as error:  # noqa: BLE001 - recorded; the others count
                self.kernel.plugins.note(HookFailure(plugin, "prompt_sections", hooks.describe(error)))
                continue
            found += sections
        return tuple(sorted(found, key=lambda one: (_LAYERS.index(one.layer), one.priority, one.name)))

    async def call(
        self, calls: Sequence[ToolCall], request: Request, *, progress: Progress | None = None
    ) -> list[Answer]:
        """Offer and call in one step: for callers that keep no offer."""
        return await (await self.offer(request)).call(calls, progress=progress)


def _is_section(value: Any) -> bool:
    if not isinstance(value, PromptSection) or value.layer not in _LAYERS:
        return False
    priority, name = cast("Any", value.priority), cast("Any", value.name)
    return isinstance(priority, int) and isinstance(name, str)


class Kernel:
    """Loads plugins, offers tools, runs calls. Opened as an async context manager; one trio loop owns it.

    Example:
        ```python
        async with Kernel.open() as kernel:
            async with kernel.session(workspaces=[Path.cwd()]) as session:
                offer = await session.offer(session.request(principal=Principal("ann", "admin")))
                [answer] = await offer.call([ToolCall("calc", {"expression": "6*7"})])
        ```
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.settings = config.section("kernel", KernelSettings)
        self.services = Services()
        self.generation = 0
        self.closing = False
        self._relay = Relay()
        self._watch = Watch()
        self._pool = Pool(self.settings.workers, self.settings.waiting)
        self.plugins = Plugins(config, self.settings, self._relay, self.services, _log, self._swapped)
        self.caller = Caller(self.plugins, self.settings.hook_time_limit)
        self._delivery = Delivery(
            lambda: self.plugins.hooks,
            self._watch,
            self.plugins.note,
            self.settings.event_queue,
            self.settings.hook_time_limit,
        )
        self._dispatcher = Dispatcher(
            self, self.settings, self._pool, self._watch, self._delivery, self.services, self.plugins.note, _log
        )
        self._offering = Offering(self.settings, self.plugins.note, self._dispatcher.run)
        self._sessions: set[Session] = set()
        self._tables: dict[tuple[int, ...], tuple[Table, Any]] = {}
        self._entries: dict[int, Entry] = {}
        self._problems: list[str] = []
        self._stalls: list[str] = []

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: Config | None = None,
        *,
        plugins: Iterable[object] = (),
        discover: bool = True,
        workspaces: Iterable[Path] = (),
    ) -> AsyncGenerator[Kernel]:
        """Open a kernel: find plugins, load them, start them.

        Args:
            config: the settings; ``None`` reads every layer of this machine.
            plugins: modules or classes to load besides those that are found.
            discover: whether entry points and manifest folders are looked for.
            workspaces: folders whose ``extensions/`` may hold plugins, and whose settings narrow.

        Raises:
            SettingsError: a setting is wrong; names file, line and path. A broken plugin raises nothing.
        """
        folders = [path.resolve() for path in workspaces]
        kernel = cls(config if config is not None else Config.read(workspaces=folders))
        sources = [discovery.given(plugin) for plugin in plugins]
        if discover:
            parents = [kernel.config.state_folder / "extensions", *(folder / "extensions" for folder in folders)]
            sources += discovery.entry_points() + discovery.folders(parents, kernel.settings.enable)
        with hooks.single_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(kernel._watch.run)
                await kernel._open(sources, nursery)
                watchdog = Watchdog(_log, kernel._stalled)
                watchdog.start()
                try:
                    yield kernel
                finally:
                    watchdog.stop()
                    with trio.CancelScope(shield=True):
                        await kernel._close()
                    nursery.cancel_scope.cancel()

    def session(
        self,
        *,
        agent: str = "main",
        session: str = "main",
        channel: str = "cli",
        workspaces: Iterable[Path] = (),
        agent_folder: Path | None = None,
        sandboxed: bool = False,
    ) -> AbstractAsyncContextManager[Session]:
        """Open a session for the time of a ``async with`` block; see ``Scope`` for the fields."""
        scope = Scope(
            agent=agent,
            session=session,
            channel=channel,
            workspaces=tuple(dict.fromkeys(Path(folder).resolve() for folder in workspaces)),
            agent_folder=agent_folder,
            sandboxed=sandboxed,
            config=self.config.effective(),
        )
        return self._open_session(scope)

    @asynccontextmanager
    async def _open_session(self, scope: Scope) -> AsyncGenerator[Session]:
        if self.closing:
            raise Closed("the kernel is closing", remedy="Open a new one")
        session = Session(self, scope)
        self._sessions.add(session)
        self.emit("on_session_start", events.SessionStarted(time=time.time(), scope=scope))
        try:
            await session.table()
            yield session
        finally:
            session.closed = True
            self._sessions.discard(session)
            self._drop_tables()
            self.emit("on_session_end", events.SessionEnded(time=time.time(), scope=scope))

    def emit(self, hook: str, event: events.Event) -> None:
        """Queue a lifecycle event for its observers; costs nothing where there are none."""
        if self.plugins.hooks[hook]:
            self._delivery.emit(hook, event)

    def parked(self) -> AbstractAsyncContextManager[None]:
        """Give the current call's slot away while it waits for a model, a person or a child run."""
        return self._dispatcher.parked()

    async def hooks_for(self, hook: str, *arguments: object) -> list[tuple[str, Any]]:
        """Collect an async hook's answers: for programs that embed the kernel."""
        return await self.caller.collect_async(hook, *arguments)

    @property
    def hooks(self) -> HookSet:
        """The compiled hooks of this moment."""
        return self.plugins.hooks

    @property
    def contracts(self) -> dict[str, Contract]:
        """Every hook that is declared, by name: the kernel's and the plugins'."""
        return dict(self._relay.contracts)

    @property
    def load(self) -> dict[str, int]:
        """How busy it is: free slots, batches that run, wait, and stand at the door; threads that never returned."""
        return {
            "free": self._pool.free,
            "running": self._dispatcher.running,
            "waiting": self._pool.queued,
            "at_door": self._pool.at_door,
            "stray_threads": len(self._dispatcher.stray_threads()),
            "sessions": len(self._sessions),
        }

    def diagnostics(self) -> tuple[str, ...]:
        """What an operator should know: doubled tool names, settings nobody reads, threads that never returned."""
        found = [*self._problems, *self._offering.cut.values()]
        for setting, plugin in self.plugins.missing.items():
            found.append(f"{setting}: {plugin!r} is not active; the kernel's plain answer is used")
        for session in self._sessions:
            if session._table is not None:
                found += session._table.diagnostics
        found += [
            f"a thread of tool {name!r} was given up {time.time() - since:.0f} s ago and has not returned"
            for name, since in self._dispatcher.stray_threads()
        ]
        found += [f"sync code blocked the loop: {place}" for place in self._stalls]
        return tuple(dict.fromkeys(found))

    # Inside

    async def _open(self, sources: list[discovery.Source], nursery: trio.Nursery) -> None:
        self._check_workspace_layers()
        await self.plugins.open(sources, nursery)
        self._check_settings(sources)
        nursery.start_soon(self._delivery.run)
        self.emit("on_gateway_start", events.GatewayStarted(time=time.time()))

    async def _close(self) -> None:
        self.emit("on_gateway_stop", events.GatewayStopping(time=time.time()))
        self.closing = True
        await self._dispatcher.drain(self.settings.stop_time_limit)
        async with trio.open_nursery() as nursery:
            if not self._delivery.running:  # its task was cancelled together with the one that holds the kernel
                nursery.start_soon(self._delivery.run)
            if not await self._delivery.drain(_DRAIN):
                _log.warning("observers did not take every event within %g s", _DRAIN)
            nursery.cancel_scope.cancel()
        await self.plugins.close()

    def _check_settings(self, sources: list[discovery.Source]) -> None:
        exclusive = {contract.exclusive: 0 for contract in self._relay.contracts.values() if contract.exclusive}
        names = {source.name for source in sources}
        for setting in exclusive:
            chosen = self.config.value(setting)
            if chosen is not None and chosen not in names:
                near = difflib.get_close_matches(str(chosen), sorted(names), 1)
                remedy = f"Did you mean {near[0]!r}?" if near else f"Found: {', '.join(sorted(names)) or 'none'}"
                where = f"{self.config.origin(setting)}: {setting}"
                raise SettingsError(f"there is no plugin {chosen!r}", where=where, remedy=remedy)
        self._problems += self._dead_names(names)
        plugins = [plugin for name in names if (plugin := self.plugins.get(name)) is not None]
        faults = self.config.unknown(known_sections(plugins, exclusive))
        if not faults:
            return
        asleep = sorted(plugin.name for plugin in plugins if not plugin.active)
        if not asleep:
            raise faults[0]
        self._problems += [
            f"{fault} (or it belongs to a plugin that is not active: {', '.join(asleep)})" for fault in faults
        ]

    def _dead_names(self, names: set[str]) -> list[str]:
        """A diagnostic for each plugin that a setting names and that was not found: a rule that does nothing."""
        settings = self.settings
        named = {
            "disable": settings.disable,
            "only": settings.only or [],
            "require": settings.require,
            "priority": settings.priority,
            "prefer": settings.prefer.values(),
        }
        found: list[str] = []
        for key, wanted in named.items():
            for name in sorted(set(wanted) - names):
                near = difflib.get_close_matches(name, sorted(names), 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                found.append(f"kernel.{key} ({self.config.origin('kernel', key)}) names no plugin: {name!r}{hint}")
        return found

    def _check_workspace_layers(self) -> None:
        exclusive = {contract.exclusive for contract in self._relay.contracts.values() if contract.exclusive}
        for layer in self.config.layers:
            if layer.name == "workspace":
                for key in {"workspaces", *exclusive} & set(layer.values):
                    origin = layer.origins.get((key,))
                    raise SettingsError(
                        "a workspace file may not set this",
                        where=f"{origin.source}:{origin.line}: {key}" if origin else key,
                        remedy="An operator sets it in ~/.toolkeel/config.yaml",
                    )

    def _swapped(self, hookset: HookSet, reason: str) -> None:
        self.generation += 1
        self._tables.clear()
        active = {id(plugin) for plugin in self.plugins.active()}
        self._entries = {key: entry for key, entry in self._entries.items() if id(entry.owner) in active}
        if hookset["on_tools_changed"]:
            self._delivery.emit("on_tools_changed", events.ToolsChanged(time=time.time(), reason=reason))

    def _stalled(self, place: str) -> None:
        self._stalls.append(place)
        del self._stalls[:-_STALLS]

    async def _register(self, scope: Scope) -> Table:
        registered = await self.plugins.register("register_tools", scope, Tool)
        key = tuple(id(tools) for _, tools in registered)
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = (build_table(registered, self.settings.prefer, self._entries), registered)
        return found[0]

    def _drop_tables(self) -> None:
        """Tables live as long as a session that uses them."""
        used = {id(session._table) for session in self._sessions}
        self._tables = {key: found for key, found in self._tables.items() if id(found[0]) in used}
        if not self._sessions:
            self._entries = {}

    def present_table(self, session: Any) -> Table | None:
        """A session's tools, where they are of the present plugin set."""
        table: Table | None = session._table
        present = session._generation == self.generation and not session.closed
        return table if present else None

    async def table(self, session: Any) -> Table:
        """A session's tools; see ``Session.table``."""
        return await cast("Session", session).table()

    async def _offer(self, session: Session, request: Request, table: Table) -> Offer:
        hookset = self.plugins.hooks
        narrowing = hookset.lacking or any(hookset[hook] for hook in _PLAIN_HOOKS)
        plain = request.tool_cap is None and not table.optional and not narrowing
        if not plain:
            return await self._offering.offer(session, request, table, hookset)
        known = session._plain
        if known is None:
            known = session._plain = await self._offering.offer(session, request, table, hookset)
        return known.for_request(request)

    async def _select_skills(self, request: Request, skills: tuple[Skill, ...]) -> Sequence[str] | None:
        hookset, limit, note = self.plugins.hooks, self.settings.hook_time_limit, self.plugins.note
        if not hookset["select_skills"]:
            return None
        answers = await hooks.collect_async(hookset["rank_skills"], note, read_ranking, limit, request, skills)
        ranked = [one if one.source else msgspec.structs.replace(one, source=plugin) for plugin, one in answers]
        return cast(
            "Sequence[str] | None",
            await hooks.serve_async(hookset["select_skills"], note, hooks.names, limit, request, skills, ranked),
        )
