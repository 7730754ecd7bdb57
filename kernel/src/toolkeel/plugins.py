"""The plugins of a kernel: loaded one by one, quarantined, enabled, disabled and reloaded while calls run."""

from __future__ import annotations

import inspect
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import trio
from pydantic import BaseModel

from . import discovery, hooks
from .config import Config
from .discovery import Source
from .errors import DefinitionError, PluginError, SettingsError, ToolkeelError, WorkspaceSettingsError
from .hooks import HookFailure, HookSet, Relay, describe
from .hookspecs import API_VERSION, PluginContext
from .plugin import Plugin, PluginInfo, Stage, State
from .registering import Attempt, Registered
from .scope import Scope
from .services import Services
from .settings import KernelSettings

Answer = TypeVar("Answer")
Loading = list[Plugin]
_NOTES = 20


class _Timeout(Exception):
    """A plugin's sync code did not come back in time."""


class Plugins:
    """The plugin set. Changes are serialised; each ends in one swap of the compiled hooks."""

    def __init__(
        self,
        config: Config,
        settings: KernelSettings,
        relay: Relay,
        services: Services,
        log: logging.Logger,
        swapped: Callable[[HookSet, str], None],
    ) -> None:
        self._config = config
        self._settings = settings
        self._relay = relay
        self._services = services
        self._log = log
        self._swapped = swapped
        self._plugins: dict[str, Plugin] = {}
        self._doubles: list[Plugin] = []
        self._lock = trio.Lock()
        self._nursery: trio.Nursery | None = None
        self._limiter = trio.CapacityLimiter(settings.threads)
        self._strict = os.environ.get("TOOLKEEL_STRICT") == "1"
        self.hooks = HookSet({}, frozenset())
        self.missing: Mapping[str, str] = {}
        self._retired: set[HookSet] = set()

    # What is there

    def list(self) -> tuple[PluginInfo, ...]:
        """Every plugin that was found, by name, with its state and why."""
        everyone = sorted([*self._plugins.values(), *self._doubles], key=lambda one: (one.name, one.source.place))
        return tuple(self._info(plugin) for plugin in everyone)

    def get(self, name: str) -> Plugin | None:
        """The present life of a plugin."""
        return self._plugins.get(name)

    def active(self) -> Loading:
        """The active plugins in their order."""
        return sorted(
            (plugin for plugin in self._plugins.values() if plugin.active), key=lambda one: (one.priority, one.name)
        )

    def _info(self, plugin: Plugin) -> PluginInfo:
        source = plugin.source
        return PluginInfo(
            name=plugin.name,
            state=plugin.state,
            source=source.place,
            kind=source.kind,
            version=source.version,
            description=source.description,
            priority=plugin.priority,
            stage=plugin.stage,
            reason=plugin.reason,
            remedy=plugin.remedy,
            hooks=tuple(self._relay.hooks_of(plugin.name)) if plugin.active else (),
            notes=tuple(plugin.notes),
            digest=source.digest,
        )

    def note(self, failure: HookFailure) -> None:
        """Record a failure that stopped nothing with the plugin that it belongs to."""
        self._log.warning("%s", failure)
        plugin = self._plugins.get(failure.plugin)
        if plugin is not None:
            text = f"{failure.hook}: {failure.what.partition(': ')[2]}"
            if not plugin.notes or plugin.notes[-1] != text:
                plugin.notes.append(text)
                del plugin.notes[:-_NOTES]

    # Opening and closing

    async def open(self, sources: Iterable[Source], nursery: trio.Nursery) -> None:
        """Load and start every source; what fails is quarantined and the others work."""
        self._nursery = nursery
        async with self._lock:
            loading: Loading = []
            for source in sources:
                plugin = self._admit(source)
                if plugin is not None:
                    loading.append(plugin)
            await self._load(loading)
            self._swap("the kernel opened")

    async def close(self) -> None:
        """Stop every plugin, last loaded first."""
        with trio.CancelScope(shield=True):
            async with self._lock:
                for plugin in reversed(self.active()):
                    await self._stop(plugin, wait_for_calls=False)

    def _admit(self, source: Source) -> Plugin | None:
        plugin = Plugin(source)
        other = self._plugins.get(source.name)
        if other is not None and other.source.problem and not source.problem:
            self._doubles.append(other)  # what may not run gives way to what may
        elif other is not None:
            self._doubles.append(plugin)
            self._quarantine(
                plugin,
                "found",
                f"the name {source.name!r} is taken by {other.source.place}",
                f"Uninstall one of the two ({other.source.place}; {source.place})",
            )
            return None
        self._plugins[source.name] = plugin
        return plugin if self._allowed(plugin) else None

    def _allowed(self, plugin: Plugin) -> bool:
        source, settings = plugin.source, self._settings
        if source.problem:
            plugin.state, plugin.reason, plugin.remedy = "listed", source.problem, source.remedy
            return False
        if source.name in settings.disable or (settings.only is not None and source.name not in settings.only):
            key = "disable" if source.name in settings.disable else "only"
            plugin.state = "disabled"
            plugin.reason = f"kernel.{key} in {self._config.origin('kernel', key)}"
            plugin.remedy = f"toolkeel plugins enable {source.name}"
            if key == "only":
                plugin.remedy = f"Name {source.name} there too, or leave kernel.only out"
            return False
        return True

    # Changing the set

    async def enable(self, name: str) -> PluginInfo:
        """Load and start a plugin that is disabled or quarantined; answers its new state."""
        async with self._lock:
            old = self._known(name)
            if not old.active:
                if old.source.problem:
                    raise PluginError(old.source.problem, where=f"plugin {name!r}", remedy=old.source.remedy)
                await self._replace(old.source)
                self._swap(f"plugin {name!r} was enabled")
            return self._info(self._plugins[name])

    async def disable(self, name: str) -> PluginInfo:
        """Take a plugin out: at once for new calls; it stops after its last call in flight, or the limit."""
        async with self._lock:
            plugin = self._known(name)
            if plugin.active:
                await self._withdraw(plugin, "disabled", f"plugin {name!r} was disabled")
                plugin.reason = "disabled while running"
                plugin.remedy = f"toolkeel plugins enable {name}"
            return self._info(plugin)

    async def reload(self, name: str) -> PluginInfo:
        """Import a plugin anew and put it in the old one's place; calls in flight finish on the old one."""
        async with self._lock:
            plugin = self._known(name)
            source = await self._found_again(plugin.source)
            if source.problem and not plugin.active:
                raise PluginError(source.problem, where=f"plugin {name!r}", remedy=source.remedy)
            if plugin.active:
                await self._withdraw(plugin, "disabled", f"plugin {name!r} is reloading")
            discovery.forget(plugin.source)
            await self._replace(source)
            self._swap(f"plugin {name!r} was reloaded")
            return self._info(self._plugins[name])

    async def _found_again(self, source: Source) -> Source:
        """The source as it is now: a folder's content may have changed since it was read."""
        if source.kind != "folder":
            return source
        read = partial(discovery.folder, Path(source.place), self._settings.enable)
        found = await trio.to_thread.run_sync(read)
        if found is None or found.name != source.name:
            return msgspec.structs.replace(
                source, problem="its folder holds no such plugin any more", remedy="Restart, or put it back", load=None
            )
        return found

    def _known(self, name: str) -> Plugin:
        plugin = self._plugins.get(name)
        if plugin is None:
            raise PluginError(
                f"no plugin {name!r} was found", remedy=f"Found: {', '.join(sorted(self._plugins)) or 'none'}"
            )
        return plugin

    async def _replace(self, source: Source) -> None:
        plugin = self._plugins[source.name] = Plugin(source)
        if source.problem:
            plugin.reason, plugin.remedy = source.problem, source.remedy
        else:
            await self._load([plugin])

    async def _withdraw(self, plugin: Plugin, state: State, reason: str) -> None:
        plugin.state = state
        self._relay.unregister(plugin.name)
        if state == "disabled" and "reloading" not in reason:
            self._check_needs()
        self._swap(reason)
        await self._stop(plugin, wait_for_calls=True)

    async def _stop(self, plugin: Plugin, *, wait_for_calls: bool) -> None:
        if wait_for_calls:
            with trio.move_on_after(self._settings.stop_time_limit) as scope:
                await plugin.idle()
                for old in [old for old in self._retired if plugin.name in old.on_path]:
                    await old.drained()
            if scope.cancelled_caught:
                plugin.notes.append(f"stopped while calls still ran, after {self._settings.stop_time_limit:g} s")
        plugin.stopping.set()
        with trio.move_on_after(2 * self._settings.stop_time_limit):
            if _implements(plugin.implementer, "plugin_start") or _implements(plugin.implementer, "plugin_stop"):
                await plugin.stopped.wait()
        if plugin.state == "active":
            plugin.state = "disabled"
        self._services.withdraw(plugin.name)

    # Loading

    async def _load(self, plugins: Loading) -> None:
        for plugin in sorted(plugins, key=lambda one: one.name):
            await self._guarded(plugin, self._import)
        loaded = [plugin for plugin in plugins if plugin.implementer is not None and plugin.state != "quarantined"]
        loaded.sort(key=lambda one: (one.priority, one.name))
        for plugin in loaded:
            await self._guarded(plugin, self._declare)
        for plugin in loaded:
            if plugin.state != "quarantined":
                await self._guarded(plugin, self._register)
        for plugin in loaded:
            if plugin.active:
                await self._start(plugin)
        self._check_needs()

    async def _guarded(self, plugin: Plugin, step: Callable[[Plugin], None]) -> None:
        try:
            await self.in_thread(partial(step, plugin), self._settings.register_time_limit)
        except _Timeout:
            limit = self._settings.register_time_limit
            hook = "declare_hookspecs: " if step == self._declare else ""
            self._quarantine(plugin, plugin.stage, f"{hook}did not come back within {limit:g} s", "Ask its author")
        except WorkspaceSettingsError:
            raise
        except BaseException as error:  # noqa: BLE001 - it is the plugin's quarantine
            hooks.pass_through(error)
            remedy = getattr(error, "remedy", "") or _remedy(plugin, error)
            said = error.what if isinstance(error, DefinitionError) else _said(error)
            if isinstance(error, HookFailure):
                said = f"{error.hook}: {error.what.partition(': ')[2]}"
            self._quarantine(plugin, plugin.stage, said, remedy, error)

    def _import(self, plugin: Plugin) -> None:
        source = plugin.source
        plugin.enter("needs")
        missing = discovery.missing_need(source, API_VERSION, lambda name: name in self._plugins)
        if missing:
            raise DefinitionError(missing[0], remedy=missing[1])
        plugin.enter("import")
        if source.load is None:
            raise DefinitionError("there is nothing to load", remedy="Mend the manifest")
        loaded = source.load()
        plugin.enter("settings")
        settings = self._plugin_settings(plugin, loaded)
        plugin.context = PluginContext(
            name=plugin.name,
            settings=settings,
            services=self._services,
            hooks=Caller(self, self._settings.hook_time_limit),
            log=self._log.getChild(plugin.name),
            state_folder=self._config.state_folder / "plugins" / plugin.name,
            clock=time.time,
        )
        plugin.enter("create")
        implementer = _created(loaded, plugin.context)
        plugin.enter("hooks")
        plugin.implementer = implementer
        plugin.priority = self._priority(plugin, loaded)
        if not inspect.ismodule(plugin.implementer) and inspect.isclass(plugin.implementer):
            raise DefinitionError("is neither a module nor a class that can be built")

    def _plugin_settings(self, plugin: Plugin, loaded: object) -> BaseModel | None:
        model = getattr(loaded, "Settings", None)
        if model is None and inspect.isclass(loaded):
            model = getattr(sys.modules.get(loaded.__module__), "Settings", None)
        section = f"plugins.{plugin.name}"
        if model is not None:
            if not (inspect.isclass(model) and issubclass(model, BaseModel)):
                raise DefinitionError("Settings is not a pydantic model")
            section = str(getattr(model, "section", section))
            for other in self._plugins.values():
                taken = other.state in ("active", "listed") and other.section == section
                if other is not plugin and taken:
                    raise SettingsError(
                        f"plugins {other.name!r} and {plugin.name!r} both take their settings there",
                        where=section,
                        remedy=f"Disable one under kernel.disable: [{plugin.name}]",
                    )
            plugin.section = section
            return self._config.section(section, model)
        if self._config.value(*section.split(".")) is not None:
            raise SettingsError("this plugin has no settings", where=section, remedy="Remove the section")
        return None

    def _priority(self, plugin: Plugin, loaded: object) -> int:
        chosen: Any = self._settings.priority.get(plugin.name, getattr(loaded, "PRIORITY", 100))
        if isinstance(chosen, bool) or not isinstance(chosen, int):
            raise DefinitionError(f"PRIORITY must be an integer, not {chosen!r}")
        return cast("int", chosen)

    def _declare(self, plugin: Plugin) -> None:
        plugin.enter("hooks")
        specs = self._relay.specs_of(plugin.name, plugin.implementer)
        if specs is not None:
            for other, error in self._relay.declare(plugin.name, specs):
                self._quarantine(self._plugins[other], "hooks", error.what, error.remedy, error)
                self._plugins[other].stopping.set()
                self._services.withdraw(other)

    def _register(self, plugin: Plugin) -> None:
        plugin.enter("hooks")
        self._relay.register(plugin.name, plugin.implementer)
        if not self._relay.hooks_of(plugin.name):
            plugin.notes.append(
                "it implements no hook: mark its functions with @hookimpl; an entry point at a class is module:Class"
            )
        plugin.state, plugin.stage, plugin.reason, plugin.remedy = "active", "", "", ""

    def _check_needs(self) -> None:
        changed = True
        while changed:
            changed = False
            for plugin in self.active():
                missing = discovery.missing_need(plugin.source, API_VERSION, self._is_active)
                if missing:
                    self._relay.unregister(plugin.name)
                    self._services.withdraw(plugin.name)
                    self._quarantine(plugin, "needs", *missing)
                    plugin.stopping.set()
                    changed = True

    def _is_active(self, name: str) -> bool:
        plugin = self._plugins.get(name)
        return plugin is not None and plugin.active

    # Running

    async def _start(self, plugin: Plugin) -> None:
        starts = _implements(plugin.implementer, "plugin_start")
        if not starts and not _implements(plugin.implementer, "plugin_stop"):
            return
        if self._nursery is None:
            raise AssertionError(plugin.name)
        failure = cast("BaseException | None", await self._nursery.start(self._live, plugin))
        if failure is not None:
            self._relay.unregister(plugin.name)
            self._services.withdraw(plugin.name)
            failure = hooks.innermost(failure)
            said = _said(failure)
            self._quarantine(plugin, "start", said, getattr(failure, "remedy", ""), failure)

    async def _live(
        self, plugin: Plugin, task_status: trio.TaskStatus[BaseException | None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """The plugin's life: start, wait, stop; a background task that fails quarantines the plugin."""
        started = False
        try:
            async with trio.open_nursery() as nursery:
                await self._call_start(plugin, nursery)
                started = True
                task_status.started(None)
                try:
                    await plugin.stopping.wait()
                finally:
                    await self._call_stop(plugin)
                nursery.cancel_scope.cancel()
        except BaseException as error:  # noqa: BLE001 - it is the plugin's quarantine
            hooks.pass_through(error)
            if not started:
                task_status.started(error)
            elif plugin.active:
                self._relay.unregister(plugin.name)
                self._quarantine(plugin, "run", f"its background task failed: {describe(error)}", "Reload it", error)
                self._services.withdraw(plugin.name)
                self._swap(f"plugin {plugin.name!r} failed")
        finally:
            plugin.stopped.set()

    async def _call_start(self, plugin: Plugin, nursery: trio.Nursery) -> None:
        if not _implements(plugin.implementer, "plugin_start"):
            return
        start = cast("Any", plugin.implementer).plugin_start
        wanted = inspect.signature(start).parameters
        values = {"context": plugin.context, "nursery": nursery}
        limit = self._settings.register_time_limit
        with trio.move_on_after(limit) as scope:
            await start(**{name: value for name, value in values.items() if name in wanted})
        if scope.cancelled_caught:
            nursery.cancel_scope.cancel()
            raise PluginError(f"plugin_start did not come back within {limit:g} s", remedy="Ask its author")

    async def _call_stop(self, plugin: Plugin) -> None:
        if not _implements(plugin.implementer, "plugin_stop"):
            return
        with trio.move_on_after(self._settings.stop_time_limit) as scope:
            scope.shield = True
            try:
                await cast("Any", plugin.implementer).plugin_stop()
            except BaseException as error:  # noqa: BLE001 - recorded with the plugin
                hooks.pass_through(error)
                self.note(HookFailure(plugin.name, "plugin_stop", describe(error)))
        if scope.cancelled_caught:
            limit = self._settings.stop_time_limit
            self.note(HookFailure(plugin.name, "plugin_stop", f"no answer within {limit:g} s", timed_out=True))

    async def in_thread(self, function: Callable[[], Answer], limit: float) -> Answer:
        """Run a plugin's sync code off the loop, at most ``limit`` seconds; a hung thread is left behind."""
        with trio.move_on_after(limit):
            return await trio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._limiter)
        raise _Timeout

    async def register(self, hook: str, scope: Scope, kind: type[Any]) -> Registered:
        """Run a ``register_…`` hook for a session, in a worker thread: each plugin's answer as a tuple of ``kind``.

        What fails, hangs or gives something else is quarantined. The same items give the same tuple again.
        """
        todo = [(one, self._plugins[one.plugin]) for one in self.hooks[hook] if one.plugin in self._plugins]
        answers: Registered = []
        while todo:
            attempt = Attempt(todo, scope, kind, self._settings.register_time_limit)
            finished = await attempt.run(self._limiter)
            answers += attempt.answers
            failures = attempt.failures
            todo = todo[attempt.done :]
            if not finished and todo:
                one, plugin = todo.pop(0)
                failures.append((plugin, one.overdue(self._settings.register_time_limit)))
            for plugin, failure in failures:
                await self.fail(plugin, "register", failure.what.partition(": ")[2], hook)
        return answers

    async def fail(self, plugin: Plugin, stage: Stage, reason: str, hook: str) -> None:
        """Quarantine an active plugin and take its hooks out."""
        if plugin.active:
            self._relay.unregister(plugin.name)
            self._quarantine(
                plugin, stage, f"{hook}: {reason}", "Mend it, then start again, or reload it where a gateway runs"
            )
            self._services.withdraw(plugin.name)
            plugin.stopping.set()
            self._swap(f"plugin {plugin.name!r} was quarantined")

    def _quarantine(
        self, plugin: Plugin, stage: Stage, reason: str, remedy: str, error: BaseException | None = None
    ) -> None:
        plugin.state, plugin.stage, plugin.reason, plugin.remedy = "quarantined", stage, reason, remedy
        self._log.warning("plugin %r is quarantined at %s: %s", plugin.name, stage or "load", reason)
        if self._strict:
            raise PluginError(f"at {stage}: {reason}", where=f"plugin {plugin.name!r}", remedy=remedy) from error

    def _swap(self, reason: str) -> None:
        priorities = {plugin.name: plugin.priority for plugin in self._plugins.values()}
        exclusive: dict[str, str] = {}
        for setting in {contract.exclusive for contract in self._relay.contracts.values() if contract.exclusive}:
            chosen = self._config.value(setting)
            if isinstance(chosen, str):
                exclusive[setting] = chosen
        lacking = [name for name in self._settings.require if not self._is_active(name)]
        before, self.hooks = self.hooks, self._relay.compile(priorities, exclusive)
        self.hooks.lacking = ", ".join(lacking)
        self._retired = {old for old in (*self._retired, before) if old.holders}
        self.missing = {setting: chosen for setting, chosen in exclusive.items() if not self._is_active(chosen)}
        before.retired = True
        self._swapped(self.hooks, reason)


class Caller:
    """How plugins call hooks: the verbs over whatever the plugin set is at that moment."""

    def __init__(self, plugins: Plugins, limit: float) -> None:
        self._plugins = plugins
        self._limit = limit

    def collect(self, hook: str, /, *arguments: object) -> list[tuple[str, Any]]:
        """See ``Hooks.collect``."""
        return hooks.collect(self._plugins.hooks[hook], self._plugins.note, hooks.as_it_is, *arguments)

    def serve(self, hook: str, /, *arguments: object) -> Any:
        """See ``Hooks.serve``."""
        return hooks.serve(self._plugins.hooks[hook], self._plugins.note, hooks.as_it_is, *arguments)

    async def collect_async(self, hook: str, /, *arguments: object) -> list[tuple[str, Any]]:
        """See ``Hooks.collect_async``."""
        implementations, note = self._plugins.hooks[hook], self._plugins.note
        return await hooks.collect_async(implementations, note, hooks.as_it_is, self._limit, *arguments)

    async def serve_async(self, hook: str, /, *arguments: object) -> Any:
        """See ``Hooks.serve_async``."""
        implementations, note = self._plugins.hooks[hook], self._plugins.note
        return await hooks.serve_async(implementations, note, hooks.as_it_is, self._limit, *arguments)

    async def notify(self, hook: str, /, *arguments: object) -> None:
        """See ``Hooks.notify``."""
        await hooks.notify(self._plugins.hooks[hook], self._plugins.note, self._limit, *arguments)


def _created(loaded: object, context: PluginContext) -> object:
    if not inspect.isclass(loaded):
        return loaded
    takes = inspect.signature(loaded).parameters
    build = cast("Callable[..., object]", loaded)
    return build(context) if takes else build()


def _implements(implementer: object, hook: str) -> bool:
    function = getattr(implementer, hook, None)
    return getattr(function, "toolkeel_impl", None) is not None


def _said(error: BaseException) -> str:
    return error.said if isinstance(error, ToolkeelError) else describe(error)


def _remedy(plugin: Plugin, error: BaseException) -> str:
    own = (
        error.name.partition(".")[0] in plugin.source.packages
        if isinstance(error, ImportError) and error.name
        else False
    )
    if isinstance(error, ModuleNotFoundError) and error.name and not own:
        return f"Install the package that has {error.name!r}"
    if plugin.stage == "import":
        return f"Reinstall or upgrade {plugin.source.place}, or disable it: kernel.disable: [{plugin.name}]"
    return ""


def known_sections(plugins: Iterable[Plugin], exclusive: Mapping[str, object]) -> list[str]:
    """Every settings path that somebody claims."""
    claims = {"kernel", "workspaces", *exclusive}
    for plugin in plugins:
        claims.add(plugin.section or f"plugins.{plugin.name}")
    return sorted(claims)
