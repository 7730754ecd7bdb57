"""Settings in layers, each value knowing where it came from."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from .errors import SettingsError

Trail = tuple[str, ...]
"""A settings path: ``("kernel", "workers")``, written ``kernel.workers``."""
Narrowing = Literal["lower", "extend", "any"]

LAYERS = ("defaults", "distribution", "user", "workspace", "environment", "command line")
RESERVED = ("TOOLKEEL_HOME", "TOOLKEEL_STRICT", "TOOLKEEL_DISTRIBUTION")
_NODE_LIMIT = 100_000
_PREFIX = "TOOLKEEL_"


def narrowing(how: Narrowing) -> dict[str, Any]:
    """Let a field be set in a workspace file: ``Field(5, json_schema_extra=narrowing("lower"))``.

    ``lower``: only a lower number. ``extend``: only further entries of a list. ``any``: whatever the value, it cannot
    widen anything. A field without it cannot be set by a checked-out folder.
    """
    return {"workspace": how}


class KernelSettings(BaseModel):
    """The kernel's own settings, under ``kernel:``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: Annotated[int, Field(ge=1, le=256)] = Field(
        8, description="Calls that run at once", json_schema_extra=narrowing("lower")
    )
    waiting: Annotated[int, Field(ge=1, le=100_000)] = Field(
        64,
        description="Batches that wait for a slot; further callers wait at the door",
        json_schema_extra=narrowing("lower"),
    )
    threads: Annotated[int, Field(ge=1, le=1_000)] = Field(
        32, description="Worker threads for sync tools; a thread that never returns keeps its place"
    )
    time_limit: Annotated[float, Field(gt=0)] = Field(
        60, description="Seconds of running time of a call whose tool sets none", json_schema_extra=narrowing("lower")
    )
    hook_time_limit: Annotated[float, Field(gt=0)] = Field(
        5, description="Seconds for one async hook implementation: a decider that takes longer refuses"
    )
    ask_time_limit: Annotated[float, Field(gt=0)] = Field(
        300, description="Seconds that an ask waits for a person", json_schema_extra=narrowing("lower")
    )
    register_time_limit: Annotated[float, Field(gt=0)] = Field(
        10, description="Seconds for one plugin's import, start and each register hook; longer is a quarantine"
    )
    stop_time_limit: Annotated[float, Field(gt=0)] = Field(
        10, description="Seconds that a stopping plugin waits for its last call, and then for its own stop"
    )
    max_result_chars: Annotated[int, Field(ge=200)] = Field(
        8_000, description="Results over so many characters are spilled", json_schema_extra=narrowing("lower")
    )
    tool_limit: Annotated[int, Field(ge=1)] = Field(
        128, description="Tools offered at most, whatever a selector says", json_schema_extra=narrowing("lower")
    )
    max_nesting: Annotated[int, Field(ge=0)] = Field(
        8, description="How deep calls may call further tools", json_schema_extra=narrowing("lower")
    )
    event_queue: Annotated[int, Field(ge=8)] = Field(
        1_024, description="Events that wait for observers; while it is full no call starts"
    )
    optional: list[str] = Field(
        default_factory=list, description="Optional tools to offer: names, plugins or group:NAME, globs allowed"
    )
    disable: list[str] = Field(
        default_factory=list, description="Plugins that are not loaded", json_schema_extra=narrowing("extend")
    )
    only: list[str] | None = Field(None, description="Load only these plugins")
    enable: dict[str, str] = Field(
        default_factory=dict, description="Manifest folders to run: id to content hash (sha256:…)"
    )
    priority: dict[str, int] = Field(default_factory=dict, description="A plugin's priority, in place of its own")
    prefer: dict[str, str] = Field(
        default_factory=dict, description="Which plugin's tool is taken where two have one name: tool to plugin"
    )


class Origin(msgspec.Struct, frozen=True):
    """Where a value came from: its layer and, in files, the file and line; for others the variable or option."""

    layer: str
    source: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{self.layer} ({place})" if place else self.layer


class Layer(msgspec.Struct, frozen=True):
    """One layer: nested values and the origin of each leaf and mapping."""

    name: str
    values: Mapping[str, Any]
    origins: Mapping[Trail, Origin]
    locked: tuple[Trail, ...] = ()


Model = TypeVar("Model", bound=BaseModel)


class Config:
    """The merged settings of one process. Read only; a change is a new ``Config``."""

    def __init__(self, layers: Sequence[Layer], state_folder: Path | None = None) -> None:
        self.layers = tuple(layers)
        self.state_folder = state_folder or default_state_folder()
        self._values: dict[str, Any] = {}
        self._origins: dict[Trail, Origin] = {}
        locked: dict[Trail, Origin] = {}
        for layer in self.layers:
            _refuse_locked(layer, locked)
            if layer.name != "workspace":  # what a workspace narrows is known once a section is read
                _merge(self._values, layer.values)
                self._origins.update(layer.origins)
            locked |= {trail: layer.origins.get(trail, Origin(layer.name)) for trail in layer.locked}

    @classmethod
    def read(
        cls,
        *,
        workspaces: Iterable[Path] = (),
        overrides: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Config:
        """Read every layer that this machine has.

        Args:
            workspaces: folders whose ``.toolkeel/config.yaml`` may narrow the settings.
            overrides: the command line's ``path=value`` pairs; values are YAML.
            environ: the environment, ``os.environ`` where it is not given.

        Raises:
            SettingsError: a file cannot be read or parsed, or sets what its layer may not; names file and line.
        """
        environ = os.environ if environ is None else environ
        state = Path(environ["TOOLKEEL_HOME"]).expanduser() if environ.get("TOOLKEEL_HOME") else default_state_folder()
        layers: list[Layer] = []
        if environ.get("TOOLKEEL_DISTRIBUTION"):
            layers.append(read_file(Path(environ["TOOLKEEL_DISTRIBUTION"]), "distribution", must_exist=True))
        layers.append(read_file(state / "config.yaml", "user"))
        layers.extend(read_file(folder / ".toolkeel" / "config.yaml", "workspace") for folder in workspaces)
        layers.append(_environment(environ))
        layers.append(_pairs(overrides or {}, "command line", "--set"))
        return cls(layers, state)

    @classmethod
    def of(cls, values: Mapping[str, Any], *, state_folder: Path | None = None) -> Config:
        """Settings from a mapping alone: for tests and for programs that embed the kernel."""
        origins: dict[Trail, Origin] = {}
        _note(values, (), Origin("command line", "in code"), origins)
        return cls([Layer("command line", values, origins)], state_folder)

    def origin(self, *trail: str) -> Origin:
        """Where the value at a path came from; the layer ``defaults`` where nobody set it."""
        for length in range(len(trail), 0, -1):
            found = self._origins.get(trail[:length])
            if found is not None and (length == len(trail) or not isinstance(_at(self._values, trail[:length]), dict)):
                return found
        return Origin("defaults")

    def value(self, *trail: str) -> Any:
        """The value that a layer sets at a path, ``None`` where none does. Workspace files are not in it."""
        return _at(self._values, trail)

    def section(self, section: str, model: type[Model]) -> Model:
        """The settings at ``section`` (dotted) as a model; workspace files may only narrow.

        Raises:
            SettingsError: an unknown key (with the nearest right one), a wrong value, or a workspace file that widens;
                names file, line and path.
        """
        trail = tuple(section.split("."))
        values: Any = _at(self._values, trail)
        if values is not None and not isinstance(values, dict):
            raise SettingsError("must be a mapping", where=self._place(trail))
        merged = _copy(cast("dict[str, Any]", values or {}))
        for layer in self.layers:
            if layer.name == "workspace":
                self._narrow(merged, layer, trail, model)
        if merged:
            _put_at(self._values, trail, merged)
        extra: Literal["forbid"] | None = None if model.model_config.get("extra") == "allow" else "forbid"
        try:
            return model.model_validate(merged, extra=extra)
        except ValidationError as error:
            first = cast("dict[str, Any]", error.errors(include_url=False, include_input=False)[0])
            raise self._fault(trail, model, first) from None

    def unknown(self, claimed: Iterable[str]) -> list[SettingsError]:
        """A fault for every path that no section claims. ``claimed`` are dotted sections and single settings."""
        claims = [tuple(claim.split(".")) for claim in claimed]
        faults: list[SettingsError] = []
        trees = [layer.values for layer in self.layers]
        for tree in trees:
            for trail in _unclaimed(tree, (), claims):
                names = sorted({claim[len(trail) - 1] for claim in claims if claim[: len(trail) - 1] == trail[:-1]})
                near = difflib.get_close_matches(trail[-1], names, 1)
                remedy = f"Did you mean {'.'.join((*trail[:-1], near[0]))!r}?" if near else f"Known: {', '.join(names)}"
                faults.append(SettingsError("unknown setting", where=self._place(trail), remedy=remedy))
        return faults

    def effective(self) -> Mapping[str, Any]:
        """All set values, nested and read-only: what tool factories see as ``scope.config``."""
        return cast("Mapping[str, Any]", _frozen(self._values))

    def _place(self, trail: Trail) -> str:
        origin = self.origin(*trail)
        if origin.layer == "defaults":
            for path, found in self._origins.items():
                if path[: len(trail)] == trail:
                    origin = found
                    break
        place = f"{origin.source}:{origin.line}" if origin.line else origin.source or origin.layer
        return f"{place}: {'.'.join(trail)}"

    def _fault(self, section: Trail, model: type[BaseModel], item: dict[str, Any]) -> SettingsError:
        location = tuple(str(step) for step in cast("tuple[Any, ...]", item["loc"]))
        place = self._place((*section, *location))
        if item["type"] == "extra_forbidden":
            names = list(_fields_at(model, location[:-1]))
            remedy = _nearest(location[-1], names, (*section, *location[:-1]))
            return SettingsError("unknown setting", where=place, remedy=remedy)
        message = cast("str", item["msg"])
        said = message.replace("Input should be", "must be").removeprefix("Value error, ")
        return SettingsError(said, where=place)

    def _narrow(self, merged: dict[str, Any], layer: Layer, section: Trail, model: type[BaseModel]) -> None:
        values = _at(layer.values, section)
        if values is None:
            return
        if not isinstance(values, dict):
            raise SettingsError("must be a mapping", where=self._place_in(layer, section))
        for key, value in cast("dict[str, Any]", values).items():
            path = (*section, key)
            field = next((f for name, f in model.model_fields.items() if key in _names(name, f)), None)
            place = self._place_in(layer, path)
            if field is None:
                names = list(model.model_fields)
                raise SettingsError("unknown setting", where=place, remedy=_nearest(key, names, section))
            if self._set_later(layer, path):
                continue
            before = merged.get(key, field.get_default(call_default_factory=True))
            merged[key] = _narrowed(before, value, field, place)
            origins = {trail: origin for trail, origin in layer.origins.items() if trail[: len(path)] == path}
            self._origins.update(origins)

    def _set_later(self, layer: Layer, trail: Trail) -> bool:
        later = LAYERS[LAYERS.index(layer.name) + 1 :]
        return any(_at(other.values, trail) is not None for other in self.layers if other.name in later)

    @staticmethod
    def _place_in(layer: Layer, trail: Trail) -> str:
        origin = layer.origins.get(trail, Origin(layer.name))
        return f"{origin.source}:{origin.line}: {'.'.join(trail)}"


def default_state_folder() -> Path:
    """``~/.toolkeel``."""
    return Path.home() / ".toolkeel"


def read_file(path: Path, layer: str, *, must_exist: bool = False) -> Layer:
    """Read one YAML file as a layer. A missing file is an empty layer unless it must exist.

    Raises:
        SettingsError: it cannot be read, is not YAML, repeats a key, or is no mapping; names file and line.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if must_exist:
            raise SettingsError("no such file", where=str(path)) from None
        return Layer(layer, {}, {})
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", where=str(path)) from error
    origins: dict[Trail, Origin] = {}
    values = _parse(text, str(path), layer, origins)
    locked: Any = values.pop("locked", []) if layer == "distribution" else []
    if not isinstance(locked, list) or not all(isinstance(item, str) for item in cast("list[object]", locked)):
        raise SettingsError("must be a list of settings paths", where=f"{path}: locked")
    return Layer(layer, values, origins, tuple(tuple(item.split(".")) for item in cast("list[str]", locked)))


def _parse(text: bytes, source: str, layer: str, origins: dict[Trail, Origin]) -> dict[str, Any]:
    value = _load(text, source, layer, origins)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingsError("must be a mapping of settings", where=source)
    return cast("dict[str, Any]", value)


def _load(text: bytes, source: str, layer: str, origins: dict[Trail, Origin]) -> Any:
    import yaml

    loader_type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = None
    try:
        loader = loader_type(text)
        node = loader.get_single_node()
        return None if node is None else _Reader(loader, source, layer, origins).read(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise SettingsError(f"is not valid YAML: {error.problem}", where=f"{source}{line}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"is not valid YAML: {str(error).splitlines()[0]}", where=source) from None
    except RecursionError:
        raise SettingsError("is nested too deeply", where=source) from None
    finally:
        if loader is not None:
            loader.dispose()


class _Reader:
    """Builds values from YAML nodes and remembers their lines."""

    def __init__(self, loader: Any, source: str, layer: str, origins: dict[Trail, Origin]) -> None:
        self._loader = loader
        self._source = source
        self._layer = layer
        self._origins = origins
        self._read = 0
        self._known: set[int] = set()

    def read(self, node: Any, trail: Trail) -> Any:
        self._read += 1
        line = node.start_mark.line + 1
        if self._read > _NODE_LIMIT:
            raise SettingsError("is too large, or its aliases are", where=f"{self._source}:{line}")
        if node.id == "mapping":
            return self._mapping(node, trail)
        if trail:
            self._origins[trail] = Origin(self._layer, self._source, line)
        if node.id == "sequence":
            return [self.read(item, (*trail, str(index))) for index, item in enumerate(node.value)]
        try:
            return self._loader.construct_object(node, deep=True)
        except (ValueError, KeyError, AttributeError, OverflowError):  # what YAML's own constructors let out
            kind = str(node.tag).rpartition(":")[2]
            raise SettingsError(
                f"is no valid {kind}", where=f"{self._source}:{line}", remedy="Quote it if it is text"
            ) from None

    def _mapping(self, node: Any, trail: Trail) -> dict[str, Any]:
        self._refuse_doubles(node)
        self._loader.flatten_mapping(node)
        values: dict[str, Any] = {}
        if trail:
            self._origins[trail] = Origin(self._layer, self._source, node.start_mark.line + 1)
        for key_node, value_node in node.value:
            key = str(self.read(key_node, ()))
            inner = (*trail, key)
            values[key] = self.read(value_node, inner)  # what a merge brought stands first and is overridden
            self._origins[inner] = Origin(self._layer, self._source, key_node.start_mark.line + 1)
        return values

    def _refuse_doubles(self, node: Any) -> None:
        """Refuse a key that stands twice, before merges are unfolded; a node that aliases share is looked at once."""
        if id(node) in self._known:
            return
        self._known.add(id(node))
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.value in seen and not str(key_node.tag).endswith(":merge"):
                line = key_node.start_mark.line + 1
                raise SettingsError(f"the key {key_node.value!r} stands twice", where=f"{self._source}:{line}")
            if isinstance(key_node.value, str):
                seen.add(key_node.value)


def _environment(environ: Mapping[str, str]) -> Layer:
    pairs = {
        name.removeprefix(_PREFIX).lower().replace("__", "."): (name, value)
        for name, value in environ.items()
        if name.startswith(_PREFIX) and name not in RESERVED
    }
    values: dict[str, Any] = {}
    origins: dict[Trail, Origin] = {}
    for path, (name, text) in sorted(pairs.items()):
        _put(values, origins, path, text, Origin("environment", name))
    return Layer("environment", values, origins)


def _pairs(pairs: Mapping[str, str], layer: str, source: str) -> Layer:
    values: dict[str, Any] = {}
    origins: dict[Trail, Origin] = {}
    for path, text in pairs.items():
        _put(values, origins, path, text, Origin(layer, f"{source} {path}"))
    return Layer(layer, values, origins)


def _put(values: dict[str, Any], origins: dict[Trail, Origin], path: str, text: str, origin: Origin) -> None:
    trail = tuple(path.split("."))
    if not all(trail):
        raise SettingsError(f"{path!r} is no settings path", where=origin.source)
    value = _value(text, origin)
    tree = values
    for step in trail[:-1]:
        inside: Any = tree.setdefault(step, {})
        if not isinstance(inside, dict):
            raise SettingsError(f"{path!r} lies inside a value that is set as a whole", where=origin.source)
        tree = cast("dict[str, Any]", inside)
    tree[trail[-1]] = value
    _note(value, trail, origin, origins)


def _value(text: str, origin: Origin) -> Any:
    """A value given outside of files: YAML on one line, else text as it is. No error shows it: it may be a secret."""
    if "\n" in text or not text.strip():
        return text
    try:
        return _load(text.encode("utf-8", "replace"), origin.source, origin.layer, {})
    except SettingsError:
        raise SettingsError("cannot be read as YAML", where=origin.source, remedy="Quote it if it is text") from None


def _note(value: object, trail: Trail, origin: Origin, origins: dict[Trail, Origin]) -> None:
    if trail:
        origins[trail] = origin
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            _note(inner, (*trail, str(key)), origin, origins)


def _refuse_locked(layer: Layer, locked: Mapping[Trail, Origin]) -> None:
    for trail, by in locked.items():
        for set_trail, origin in layer.origins.items():
            above = trail[: len(set_trail)] == set_trail and not isinstance(_at(layer.values, set_trail), dict)
            if set_trail[: len(trail)] == trail or (above and _at(layer.values, set_trail) is not None):
                place = f"{origin.source}:{origin.line}" if origin.line else origin.source
                raise SettingsError(
                    f"is locked by the distribution ({by})",
                    where=f"{place}: {'.'.join(set_trail)}",
                    remedy="Remove it here",
                )


def _merge(target: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        known = target.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            _merge(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        elif value is not None or not isinstance(known, dict):  # a section left empty sets nothing
            target[key] = _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in cast("dict[str, Any]", value).items()}
    return value


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(inner) for key, inner in cast("dict[str, Any]", value).items()})
    return tuple(_frozen(item) for item in cast("Sequence[Any]", value)) if isinstance(value, list) else value


def _at(values: Mapping[str, Any], trail: Trail) -> Any:
    found: Any = values
    for step in trail:
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, Any]", found).get(step)
    return found


def _put_at(values: dict[str, Any], trail: Trail, value: Any) -> None:
    for step in trail[:-1]:
        values = values.setdefault(step, {})
    values[trail[-1]] = value


def _names(name: str, field: FieldInfo) -> set[str]:
    """Every key that a model takes for a field."""
    return {name, *(alias for alias in (field.alias, field.validation_alias) if isinstance(alias, str))}


def _nearest(key: str, names: Iterable[str], section: Trail) -> str:
    known = sorted(names)
    near = difflib.get_close_matches(key, known, 1)
    return f"Did you mean {'.'.join((*section, near[0]))!r}?" if near else f"Known: {', '.join(known) or 'none'}"


def _unclaimed(tree: Mapping[str, Any], trail: Trail, claims: list[Trail]) -> Iterable[Trail]:
    for key, value in tree.items():
        path = (*trail, key)
        if path in claims:
            continue
        if isinstance(value, dict) and any(claim[: len(path)] == path for claim in claims):
            yield from _unclaimed(cast("dict[str, Any]", value), path, claims)
        else:
            yield path


def _fields_at(model: type[BaseModel], location: Trail) -> Iterable[str]:
    """The fields of the model at a place inside a model, through lists, mappings and optional values."""
    models = [model]
    for step in location:
        kinds = [one.model_fields[step].annotation for one in models if step in one.model_fields]
        inner = [found for kind in kinds for found in _models(kind)]
        models = inner or models  # an index or a key of a mapping stays at its model
    return dict.fromkeys(name for one in models for name in one.model_fields)


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _models(inner)]


def _narrowed(before: Any, value: Any, field: FieldInfo, place: str) -> Any:
    extra = field.json_schema_extra
    how = cast("dict[str, Any]", extra).get("workspace") if isinstance(extra, dict) else None
    if how == "any":
        return value
    if how == "lower" and isinstance(before, (int, float)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value <= before:
            raise SettingsError(
                f"a workspace file may only lower this: a number up to {before:g}",
                where=place,
                remedy="An operator raises it in ~/.toolkeel/config.yaml",
            )
        return value
    if how == "extend" and isinstance(value, list) and isinstance(before, list):
        known = cast("Sequence[Any]", before)
        return [*known, *(item for item in cast("Sequence[Any]", value) if item not in known)]
    raise SettingsError(
        "a workspace file may not set this", where=place, remedy="An operator sets it in ~/.toolkeel/config.yaml"
    )
