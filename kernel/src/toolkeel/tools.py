"""A tool and how one is made from a typed function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

import msgspec

from .errors import DefinitionError
from .schema import Signature, read_signature
from .scope import Principal, Request, Scope

if TYPE_CHECKING:
    from .outputs import Result

Effect = Literal["read", "write", "destructive"]
Spill = Literal["large", "always", "never"]
Key = tuple[str, ...]
"""A resource key: its kind, then the parts of a path (``("file", "/", "srv", "a.txt")``).

Two keys overlap when they are equal or one is a prefix of the other. ``()`` overlaps with every key.
"""
EVERYTHING: Key = ()
"""The key that touches everything: for shells, interpreters and whatever cannot know what it does."""
KeyFunction = Callable[[Mapping[str, Any], Scope], Iterable[Key]]

Service = TypeVar("Service")


class Preset(msgspec.Struct, frozen=True):
    """A named set of arguments that stands in the tool's description, in the order given."""

    name: str
    arguments: Mapping[str, Any]
    description: str = ""


class ToolContext(Protocol):
    """What the kernel hands to a tool function that has a parameter annotated ``ToolContext``.

    The parameter is left out of the tool's schema. The object is for this call only and must not outlive it.
    """

    @property
    def call_id(self) -> str:
        """The id of the call in records and events."""
        ...

    @property
    def scope(self) -> Scope:
        """The session that the call belongs to."""
        ...

    @property
    def principal(self) -> Principal:
        """On whose behalf the call runs."""
        ...

    @property
    def request(self) -> Request:
        """The request that the call follows from."""
        ...

    @property
    def workspaces(self) -> tuple[Path, ...]:
        """The registered folders of the session, in the operator's order; empty when it has none."""
        ...

    def service(self, protocol: type[Service]) -> Service:
        """The service that an active plugin provides under ``protocol``; raises ``ServiceMissing``."""
        ...

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Tell whoever watches how far the work is. Cheap; may be called from a worker thread."""
        ...

    def check_cancelled(self) -> None:
        """For loops of a sync tool: raise where the call was cancelled or ran out of time."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Result:
        """Call another tool of the same offer, through all stages. The slot of this call is lent out meanwhile."""
        ...


class Tool(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Something that a model may call.

    ``parameters`` is a JSON schema of type ``object``. ``effect`` says what a call can do to the world: ``read``
    changes nothing, ``write`` changes something, ``destructive`` may lose something. ``group`` is the family that
    policies and undeclared writes go by; empty means the plugin's name.

    ``reads`` and ``writes`` give the resource keys that a call touches; a write tool without ``writes`` counts as
    touching everything of its group. ``volatile`` reads (a clock, a poll) are never cached and never duplicates;
    ``idempotent`` writes may be repeated by a retry. ``optional`` tools are offered only where a policy names them.
    ``time_limit`` is in seconds of running time, ``None`` means the kernel's setting. ``inline`` promises that a sync
    function never blocks, so that no worker thread is needed. ``spill``: ``large`` results are stored and previewed,
    ``always`` stores every result, ``never`` none. ``secret_parameters`` accept a ``{{secret:NAME}}`` placeholder.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    effect: Effect = "write"
    group: str = ""
    presets: tuple[Preset, ...] = ()
    optional: bool = False
    volatile: bool = False
    idempotent: bool = False
    inline: bool = False
    time_limit: float | None = None
    spill: Spill = "large"
    reads: KeyFunction | None = None
    writes: KeyFunction | None = None
    secret_parameters: frozenset[str] = frozenset()
    signature: Signature | None = None

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function directly, without the kernel: for unit tests."""
        return self.function(*args, **kwargs)

    @property
    def asynchronous(self) -> bool:
        """Whether the function is awaited on the loop rather than run in a worker thread."""
        return inspect.iscoroutinefunction(_unwrapped(self.function))

    @property
    def context_parameter(self) -> str | None:
        """The name of the parameter that takes the ``ToolContext``, if there is one."""
        return self.signature.context_parameter if self.signature else None


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    effect: Effect = ...,
    group: str = ...,
    presets: Iterable[Preset] = ...,
    optional: bool = ...,
    volatile: bool = ...,
    idempotent: bool = ...,
    inline: bool = ...,
    time_limit: float | None = ...,
    spill: Spill = ...,
    reads: KeyFunction | Iterable[Key] | None = ...,
    writes: KeyFunction | Iterable[Key] | None = ...,
    secret_parameters: Iterable[str] = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    presets: Iterable[Preset] = (),
    secret_parameters: Iterable[str] = (),
    **options: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function: its types give the schema, its docstring the texts.

    The first paragraphs of the docstring are the description; ``Args:`` (Google), ``:param name:`` (Sphinx) and
    ``Parameters`` (NumPy) sections give each parameter's text. Options are the fields of ``Tool``. An author who says
    no ``effect`` gets ``write``: what is not known to be harmless is guarded.

    Raises:
        DefinitionError: a parameter has no type, a type that JSON cannot express, or the name is not usable.
    """

    def make(function: Callable[..., Any]) -> Tool:
        signature = read_signature(function, ToolContext)
        for keys in ("reads", "writes"):
            options[keys] = _key_function(options.get(keys))
        return Tool(
            name=name or getattr(function, "__name__", ""),
            description=description or signature.description,
            parameters=signature.parameters,
            function=function,
            presets=tuple(presets),
            secret_parameters=frozenset(secret_parameters),
            signature=signature,
            **options,
        )

    return make if function is None else make(function)


def raw_tool(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    function: Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]],
    *,
    effect: Effect = "write",
    **options: Any,
) -> Tool:
    """Make a tool of a raw JSON schema, as MCP servers and remote catalogues give them.

    ``function`` is async and gets the validated arguments as one mapping and the call's context.
    """
    return Tool(name=name, description=description, parameters=parameters, function=function, effect=effect, **options)


def _key_function(keys: Any) -> Any:
    """Constant keys, such as ``writes=[("account",)]``, as the function that gives them."""
    if keys is None or callable(keys) or isinstance(keys, str):
        return keys
    constant: tuple[Key, ...] = tuple(keys)

    def always(_arguments: Mapping[str, Any], _scope: Scope) -> tuple[Key, ...]:
        return constant

    return always


def _unwrapped(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return getattr(function, "__call__", function)  # noqa: B004 - the method decides the colour


_NAME_LIMIT = 128
_EFFECTS = ("read", "write", "destructive")
_SPILLS = ("large", "always", "never")


def _check(tool: Tool) -> None:
    where = f"tool {tool.name!r}"
    name: Any = tool.name
    if (
        not isinstance(name, str)
        or not name
        or len(name) > _NAME_LIMIT
        or not all(char.isalnum() or char in "_-." for char in name)
    ):
        raise DefinitionError(
            "a tool's name is 1 to 128 letters, digits, '_', '-' or '.'", where=where, remedy="Give it another name"
        )
    if tool.effect not in _EFFECTS:
        raise DefinitionError(f"effect {tool.effect!r} is none of {', '.join(_EFFECTS)}", where=where)
    if tool.parameters.get("type") != "object":
        raise DefinitionError("parameters must be a JSON schema with type 'object'", where=where)
    if not callable(tool.function):
        raise DefinitionError("function is not callable", where=where)
    if tool.inline and tool.asynchronous:
        raise DefinitionError("inline is for sync functions", where=where, remedy="Leave it out")
    limit: Any = tool.time_limit
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0):
        raise DefinitionError("time_limit is a positive number of seconds", where=where)
    if tool.spill not in _SPILLS:
        raise DefinitionError(f"spill {tool.spill!r} is none of {', '.join(_SPILLS)}", where=where)
    for option in ("optional", "volatile", "idempotent", "inline"):
        if not isinstance(getattr(tool, option), bool):
            raise DefinitionError(f"{option} must be True or False", where=where)
    for option in ("reads", "writes"):
        keys = getattr(tool, option)
        if keys is not None and not callable(keys):
            raise DefinitionError(
                f"{option} must be a function of (arguments, scope) that gives keys, or a list of keys", where=where
            )
