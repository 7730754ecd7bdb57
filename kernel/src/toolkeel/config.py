"""Settings merged from their layers, each value knowing where it came from."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from .errors import SettingsError, WorkspaceSettingsError
from .layers import LAYERS, Layer, Origin, Trail, default_state_folder, note, read_environment, read_file, read_pairs

Model = TypeVar("Model", bound=BaseModel)
_SHOWN = 3
_EXPECTED = {
    "int_parsing": ("an integer", ""),
    "int_type": ("an integer", ""),
    "int_from_float": ("an integer", ""),
    "float_parsing": ("a number", ""),
    "float_type": ("a number", ""),
    "bool_parsing": ("true or false", ""),
    "bool_type": ("true or false", ""),
    "string_type": ("text", "Put it in quotes"),
    "list_type": ("a list", "Write it as [one, two], or one entry a line after a dash"),
    "dict_type": ("a mapping", "Write it as {key: value}, or one key a line"),
    "model_type": ("a mapping", "Write it as {key: value}, or one key a line"),
}
"""What pydantic's kinds of errors expect, in the words of the docs, and how it is written."""


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
        try:
            home = environ.get("TOOLKEEL_HOME")
            state = Path(home).expanduser() if home else default_state_folder()
        except RuntimeError as error:  # no such user, or nobody has a home here
            raise SettingsError(str(error), where="TOOLKEEL_HOME", remedy="Name a folder") from None
        layers: list[Layer] = []
        if environ.get("TOOLKEEL_DISTRIBUTION"):
            layers.append(read_file(Path(environ["TOOLKEEL_DISTRIBUTION"]), "distribution", must_exist=True))
        layers.append(read_file(state / "config.yaml", "user"))
        layers.extend(_workspace(folder) for folder in workspaces)
        layers.append(read_environment(environ))
        layers.append(read_pairs(overrides or {}, "command line", "--set"))
        return cls(layers, state)

    @classmethod
    def of(cls, values: Mapping[str, Any], *, state_folder: Path | None = None) -> Config:
        """Settings from a mapping alone: for tests and for programs that embed the kernel."""
        origins: dict[Trail, Origin] = {}
        note(values, (), Origin("command line", "in code"), origins)
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
            items = cast("list[dict[str, Any]]", error.errors(include_url=False, include_input=False))
            first, *others = [self._fault(trail, model, item) for item in items[:_SHOWN]]
            kind = WorkspaceSettingsError if self._of_a_workspace(trail, items) else SettingsError
            if others:
                also = "; ".join(str(other) for other in others)
                first = SettingsError(first.what, where=first.where, remedy=f"{first.remedy} Also: {also}".strip())
            raise kind(first.what, where=first.where, remedy=first.remedy) from None

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
            everywhere = [self._origins, *(layer.origins for layer in self.layers)]
            inside = (found for origins in everywhere for path, found in origins.items() if path[: len(trail)] == trail)
            origin = next(inside, origin)
        place = f"{origin.source}:{origin.line}" if origin.line else origin.source or origin.layer
        return f"{place}: {'.'.join(trail)}"

    def _of_a_workspace(self, section: Trail, items: list[dict[str, Any]]) -> bool:
        places = [(*section, *(str(step) for step in cast("tuple[Any, ...]", item["loc"]))) for item in items]
        return any(self.origin(*place).layer == "workspace" for place in places)

    def _fault(self, section: Trail, model: type[BaseModel], item: dict[str, Any]) -> SettingsError:
        location = tuple(str(step) for step in cast("tuple[Any, ...]", item["loc"]))
        place = self._place((*section, *location))
        if item["type"] == "extra_forbidden":
            names = list(_fields_at(model, location[:-1]))
            remedy = _nearest(location[-1], names, (*section, *location[:-1]))
            return SettingsError("unknown setting", where=place, remedy=remedy)
        if item["type"] in _EXPECTED:
            what, remedy = _EXPECTED[item["type"]]
            return SettingsError(f"must be {what}", where=place, remedy=remedy)
        message = cast("str", item["msg"])
        said = message.replace("Input should be", "must be").removeprefix("Value error, ")
        return SettingsError(said, where=place)

    def _narrow(self, merged: dict[str, Any], layer: Layer, section: Trail, model: type[BaseModel]) -> None:
        values = _at(layer.values, section)
        if values is None:
            return
        if not isinstance(values, dict):
            raise WorkspaceSettingsError("must be a mapping", where=self._place_in(layer, section))
        for key, value in cast("dict[str, Any]", values).items():
            path = (*section, key)
            field = next((f for name, f in model.model_fields.items() if key in _names(name, f)), None)
            place = self._place_in(layer, path)
            if field is None:
                names = list(model.model_fields)
                raise WorkspaceSettingsError("unknown setting", where=place, remedy=_nearest(key, names, section))
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


def _workspace(folder: Path) -> Layer:
    """The settings file of a checked-out folder; one that lies elsewhere by a link is not of that folder."""
    path = folder / ".toolkeel" / "config.yaml"
    if path.exists() and not path.resolve().is_relative_to(folder.resolve()):
        raise WorkspaceSettingsError("leads out of the workspace folder", where=str(path), remedy="Remove the link")
    return read_file(path, "workspace")


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
            raise WorkspaceSettingsError(
                f"a workspace file may only lower this: a number up to {before:g}",
                where=place,
                remedy="An operator raises it in ~/.toolkeel/config.yaml",
            )
        return value
    if how == "extend" and isinstance(value, list) and isinstance(before, list):
        known = cast("Sequence[Any]", before)
        return [*known, *(item for item in cast("Sequence[Any]", value) if item not in known)]
    raise WorkspaceSettingsError(
        "a workspace file may not set this", where=place, remedy="An operator sets it in ~/.toolkeel/config.yaml"
    )
