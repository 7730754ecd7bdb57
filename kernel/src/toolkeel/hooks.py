"""The hooks as the kernel calls them: pluggy's registry, compiled into tuples, run by five verbs."""

from __future__ import annotations

import difflib
import inspect
import logging
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec
import pluggy
import trio

from . import hookspecs
from .errors import DefinitionError, ToolkeelError
from .hookspecs import PROJECT, Contract

_log = logging.getLogger("toolkeel")
Report = Callable[["HookFailure"], None]
Read = Callable[[Any], Any]
Answers = list[tuple[str, Any]]


class HookFailure(ToolkeelError):
    """An implementation of a hook raised, took too long or gave a wrong type. Names the plugin and the hook."""

    def __init__(self, plugin: str, hook: str, what: str, *, timed_out: bool = False) -> None:
        super().__init__(f"plugin {plugin!r}: {what}", where=hook)
        self.plugin = plugin
        self.hook = hook
        self.timed_out = timed_out


class Implementation(msgspec.Struct, frozen=True):
    """One plugin's implementation of one hook, taking all of the hook's parameters by position."""

    plugin: str
    hook: str
    function: Callable[..., Any]

    def run(self, *arguments: object) -> Any:
        """Call a sync implementation; whatever it raises becomes a ``HookFailure``."""
        try:
            return self.function(*arguments)
        except BaseException as error:
            raise self.failure(error) from error

    async def run_async(self, limit: float, *arguments: object) -> Any:
        """Await an async implementation, at most ``limit`` seconds."""
        answer: Any = None
        with trio.move_on_after(limit) as scope:
            try:
                answer = await self.function(*arguments)
            except trio.Cancelled:
                raise
            except BaseException as error:
                raise self.failure(error) from error
        if scope.cancel_called:  # also where the implementation swallowed the cancellation
            raise self.overdue(limit)
        return answer

    def read(self, read: Read, answer: Any) -> Any:
        """Take an answer as ``read`` says; whatever goes wrong becomes a ``HookFailure``."""
        try:
            return read(answer)
        except HookFailure:
            raise
        except BaseException as error:
            raise self.failure(error) from error

    def failure(self, error: BaseException) -> HookFailure:
        """What to record for an exception. An interrupt and a cancellation pass through."""
        pass_through(error)
        return HookFailure(self.plugin, self.hook, describe(error))

    def overdue(self, limit: float) -> HookFailure:
        """What to record when it ran into its time limit."""
        return HookFailure(self.plugin, self.hook, f"no answer within {limit:g} s", timed_out=True)


def innermost(error: BaseException) -> BaseException:
    """The exception, or of a group its first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def describe(error: BaseException) -> str:
    """An exception in one line: its class and its text; of a group, its first."""
    error = innermost(error)
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - an exception may be broken itself
        return type(error).__name__
    if isinstance(error, ToolkeelError):
        return text
    return f"{type(error).__name__}: {text.splitlines()[0][:500]}" if text else type(error).__name__


@contextmanager
def single_error() -> Generator[None]:
    """Let the one exception of a nursery's group out as itself: callers need not know that there is a nursery."""
    try:
        yield
    except BaseExceptionGroup as error:
        group = cast("BaseExceptionGroup[BaseException]", error)
        if len(group.exceptions) != 1:
            raise
        only = group.exceptions[0]
        raise only from only.__cause__


def pass_through(error: BaseException) -> None:
    """Raise what must never be swallowed: an interrupt, and trio's cancellation, taken out of a group that holds more.

    What else the group held came of the cancellation's clean-up; it is logged.
    """
    if isinstance(error, (KeyboardInterrupt, trio.Cancelled)):
        raise error
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        passing, others = group.split((KeyboardInterrupt, trio.Cancelled))
        if passing is not None:
            if others is not None:
                _log.warning("failed while it was cancelled: %s", describe(others))
            raise passing


_CALL_HOOKS = ("rewrite_tool_call", "authorize_tool_call", "resolve_ask", "around_tool_call", "spill_result")


class HookSet:
    """Every hook compiled into a tuple of implementations: one state of the plugin set.

    A running call holds the set that it was authorised with; ``retire`` is called when a newer one takes its place, and
    ``drained`` when its last holder let go.
    """

    __slots__ = (
        "_compiled",
        "_drained",
        "around",
        "authorize",
        "changed",
        "ended",
        "holders",
        "lacking",
        "on_path",
        "plugins",
        "resolve",
        "retired",
        "rewrite",
        "starting",
    )

    def __init__(self, compiled: Mapping[str, tuple[Implementation, ...]], plugins: frozenset[str]) -> None:
        self._compiled = compiled
        self._drained: trio.Event | None = None
        self.plugins = plugins
        self.holders = 0
        self.on_path = frozenset(
            one.plugin for hook in _CALL_HOOKS for one in compiled.get(hook, ())
        )  # whose code a call runs besides the tool's own
        self.retired = False
        self.lacking = ""
        """Required plugins that are not active: while there are any, nothing is offered and nothing runs."""
        self.rewrite = self["rewrite_tool_call"]
        self.authorize = self["authorize_tool_call"]
        self.resolve = self["resolve_ask"]
        self.around = self["around_tool_call"]
        self.changed = bool(self["on_call_changed"])
        self.starting = bool(self["on_tool_call_start"])
        self.ended = bool(self["on_tool_call_end"])

    def __getitem__(self, hook: str) -> tuple[Implementation, ...]:
        return self._compiled.get(hook, ())

    def let_go(self) -> None:
        """A holder is done with the set."""
        self.holders -= 1
        if self.holders == 0 and self.retired and self._drained is not None:
            self._drained.set()

    async def drained(self) -> None:
        """Wait until nobody holds the retired set."""
        if self.holders:
            if self._drained is None:
                self._drained = trio.Event()
            await self._drained.wait()


class Relay:
    """The registry of hookspecs and plugins. Nobody else touches pluggy."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self.contracts: dict[str, Contract] = {}
        self._declared: dict[str, str] = {}
        self._objects: dict[str, object] = {}
        self.declare("kernel", hookspecs)

    def declare(self, plugin: str, specs: object) -> list[tuple[str, DefinitionError]]:
        """Add a plugin's own hookspecs.

        Returns:
            The plugins that had implemented one of them in advance, wrongly; they are unregistered.

        Raises:
            DefinitionError: nothing is marked, or a hook is declared by another plugin.
        """
        found = _contracts(specs)
        for name in found:
            owner = self._declared.get(name)
            if owner == plugin:
                return []  # declared before, by an earlier life of the same plugin
            if owner is not None:
                raise DefinitionError(f"hook {name!r} is already declared by {owner!r}", where=f"plugin {plugin!r}")
        if not found:
            raise DefinitionError(
                "declare_hookspecs gave nothing that is marked @hookspec(verb)", where=f"plugin {plugin!r}"
            )
        wrong = self._wrong_in_advance(found)
        for other, _ in wrong:
            self.unregister(other)
        self._manager.add_hookspecs(cast("Any", specs))
        for name, contract in found.items():
            self.contracts[name] = contract
            self._declared[name] = plugin
        return wrong

    def _wrong_in_advance(self, found: Mapping[str, Contract]) -> list[tuple[str, DefinitionError]]:
        wrong: list[tuple[str, DefinitionError]] = []
        for other, implementer in self._objects.items():
            for caller in self._manager.get_hookcallers(implementer) or []:
                contract = found.get(caller.name)
                for implementation in caller.get_hookimpls() if contract else ():
                    if contract is None or implementation.plugin_name != other:
                        continue
                    unknown = [name for name in implementation.argnames if name not in contract.parameters]
                    try:
                        if unknown:
                            raise DefinitionError(f"{caller.name} has no parameter {unknown[0]!r}")
                        _check(contract, implementation, f"plugin {other!r}")
                    except DefinitionError as error:
                        wrong.append((other, error))
        return wrong

    def specs_of(self, plugin: str, implementer: object) -> object | None:
        """What a plugin object's ``declare_hookspecs`` gives, if it has one."""
        function = getattr(implementer, "declare_hookspecs", None)
        marked = getattr(function, f"{PROJECT}_impl", None) is not None
        if marked and inspect.iscoroutinefunction(function):
            raise DefinitionError(
                "declare_hookspecs must be a plain def",
                where=f"plugin {plugin!r}",
                remedy="Write `def declare_hookspecs`",
            )
        return Implementation(plugin, "declare_hookspecs", function).run() if function and marked else None

    def register(self, plugin: str, implementer: object) -> None:
        """Register a plugin's implementations; raises ``DefinitionError`` and registers nothing where one is wrong."""
        where = f"plugin {plugin!r}"
        try:
            self._manager.register(implementer, plugin)
            self._manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            if self._manager.has_plugin(plugin):
                self._manager.unregister(name=plugin)
            raise self._explained(error, where) from error
        self._objects[plugin] = implementer
        try:
            for hook in self._manager.get_hookcallers(implementer) or []:
                for implementation in hook.get_hookimpls():
                    if implementation.plugin_name == plugin:
                        contract = self.contracts.get(hook.name)
                        if contract is not None:  # else an optional hook of a plugin that is not here
                            _check(contract, implementation, where)
        except DefinitionError:
            self.unregister(plugin)
            raise

    def unregister(self, plugin: str) -> None:
        """Take a plugin's implementations out. Its hookspecs stay: others may implement them."""
        if self._objects.pop(plugin, None) is not None:
            self._manager.unregister(name=plugin)

    def has(self, plugin: str) -> bool:
        """Whether the plugin is registered."""
        return plugin in self._objects

    def hooks_of(self, plugin: str) -> list[str]:
        """The names of the hooks that a plugin implements."""
        callers = self._manager.get_hookcallers(self._objects[plugin]) if plugin in self._objects else None
        return sorted(caller.name for caller in callers or [])

    def compile(self, priorities: Mapping[str, int], exclusive: Mapping[str, str]) -> HookSet:
        """Compile all hooks, sorted by (priority, plugin); exclusive ones with the plugin that their setting names."""
        compiled: dict[str, tuple[Implementation, ...]] = {}
        for name, contract in self.contracts.items():
            found = [
                Implementation(implementation.plugin_name, name, _adapted(implementation, contract))
                for implementation in getattr(self._manager.hook, name).get_hookimpls()
            ]
            found.sort(key=lambda one: (priorities.get(one.plugin, 100), one.plugin))
            if contract.exclusive and found:
                found = _chosen(found, exclusive.get(contract.exclusive, ""))
            if found:
                compiled[name] = tuple(found)
        return HookSet(compiled, frozenset(self._objects))

    def _explained(self, error: Exception, where: str) -> DefinitionError:
        text = str(error).splitlines()
        said = text[-1] if isinstance(error, pluggy.PluginValidationError) and len(text) > 1 else text[0]
        remedy = "See the hook reference"
        declared = re.search(r"for hook '(\w+)'", str(error))
        unfit = re.search(r"Argument\(s\) \{(.*)\} are declared", str(error))
        if declared and unfit:
            hook, wrong_name = declared[1], unfit[1].split(",")[0].strip("' ")
            takes = self.contracts[hook].parameters
            near = difflib.get_close_matches(wrong_name, takes, 1)
            said = f"{hook} has no parameter {wrong_name!r}"
            remedy = (f"Did you mean {near[0]!r}? " if near else "") + f"It takes: {', '.join(takes) or 'none'}"
        if "unknown hook" in str(error):
            unknown = str(error).split("unknown hook ")[1].split("'")[1]
            near = difflib.get_close_matches(unknown, self.contracts, 1)
            said = f"unknown hook {unknown!r}"
            remedy = (
                f"Did you mean {near[0]!r}?" if near else "If another plugin declares it: @hookimpl(optionalhook=True)"
            )
        return DefinitionError(said, where=where, remedy=remedy)


def _contracts(specs: object) -> dict[str, Contract]:
    """The marked hookspecs of a module or object; a method's ``self`` is no parameter of its hook."""
    found: dict[str, Contract] = {}
    for name in dir(specs):
        function = getattr(specs, name, None)
        contract: Contract | None = getattr(function, "toolkeel_contract", None)
        if contract is not None and callable(function):
            parameters = tuple(inspect.signature(function).parameters)
            found[contract.name] = msgspec.structs.replace(contract, parameters=parameters)
    return found


def _check(contract: Contract, implementation: Any, where: str) -> None:
    for option in ("tryfirst", "trylast", "hookwrapper", "wrapper"):
        if getattr(implementation, option):
            raise DefinitionError(
                f"{contract.name}: the option {option} is not used here", where=where, remedy="Set PRIORITY instead"
            )
    if inspect.iscoroutinefunction(implementation.function) != contract.asynchronous:
        due, keyword = ("async def", "async def") if contract.asynchronous else ("a plain def", "def")
        remedy = f"Write `{keyword} {contract.name}`"
        raise DefinitionError(f"{contract.name} must be {due}", where=where, remedy=remedy)


def _adapted(implementation: Any, contract: Contract) -> Callable[..., Any]:
    """The function as one that takes all of the hook's parameters, in the hook's order."""
    function = cast("Callable[..., Any]", implementation.function)
    wanted = (*cast("tuple[str, ...]", implementation.argnames), *cast("tuple[str, ...]", implementation.kwargnames))
    if wanted == contract.parameters:
        return function
    places = [(name, contract.parameters.index(name)) for name in wanted if name in contract.parameters]

    def adapted(*arguments: object) -> Any:
        return function(**{name: arguments[place] for name, place in places})

    return adapted


def _chosen(found: list[Implementation], chosen: str) -> list[Implementation]:
    """The one plugin of an exclusive hook: the named one, or else the first in order."""
    if not chosen:
        return found[:1]
    return [one for one in found if one.plugin == chosen]


# The verbs ---------------------------------------------------------------------------------------------------------


def collect(implementations: Iterable[Implementation], report: Report, read: Read, *arguments: object) -> Answers:
    """Every answer with its plugin, as ``read`` takes it; failures are reported and left out."""
    answers: Answers = []
    for one in implementations:
        try:
            answer = one.run(*arguments)
            if answer is not None:
                answers.append((one.plugin, one.read(read, answer)))
        except HookFailure as failure:
            report(failure)
    return answers


async def collect_async(
    implementations: Iterable[Implementation], report: Report, read: Read, limit: float, *arguments: object
) -> Answers:
    """Like ``collect``, each implementation with its time limit."""
    answers: Answers = []
    for one in implementations:
        try:
            answer = await one.run_async(limit, *arguments)
            if answer is not None:
                answers.append((one.plugin, one.read(read, answer)))
        except HookFailure as failure:
            report(failure)
    return answers


def serve(implementations: Iterable[Implementation], report: Report, read: Read, *arguments: object) -> Any:
    """The first answer that ``read`` takes; a failure is reported and the next one runs."""
    for one in implementations:
        try:
            answer = one.run(*arguments)
            if answer is not None:
                return one.read(read, answer)
        except HookFailure as failure:
            report(failure)
    return None


async def serve_async(
    implementations: Iterable[Implementation], report: Report, read: Read, limit: float, *arguments: object
) -> Any:
    """Like ``serve``, each implementation with its time limit."""
    for one in implementations:
        try:
            answer = await one.run_async(limit, *arguments)
            if answer is not None:
                return one.read(read, answer)
        except HookFailure as failure:
            report(failure)
    return None


async def notify(implementations: Iterable[Implementation], report: Report, limit: float, *arguments: object) -> None:
    """Tell every implementation; failures are reported and stop nothing."""
    for one in implementations:
        try:
            await one.run_async(limit, *arguments)
        except HookFailure as failure:
            report(failure)


# How answers are read: whatever an answer does while it is read is its plugin's failure ------------------------------


def as_it_is(answer: Any) -> Any:
    """Any answer."""
    return answer


def a(kind: type[Any] | Any) -> Read:
    """An answer of one kind."""

    def read(answer: Any) -> Any:
        if not isinstance(answer, kind):
            raise wrong(answer)
        return answer

    return read


def names(answer: Any) -> list[str]:
    """A sequence of names."""
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Sequence):
        raise wrong(answer)
    found = list(cast("Sequence[Any]", answer))
    for name in found:
        if not isinstance(name, str):
            raise wrong(name)
    return found


def wrong(answer: object) -> DefinitionError:
    """What to raise for an answer of the wrong kind."""
    return DefinitionError(f"gave a {type(answer).__name__}, which the hook does not take")
