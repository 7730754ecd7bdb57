"""The layers that settings come from: files, environment, command line."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from .errors import SettingsError

Trail = tuple[str, ...]
"""A settings path: ``("kernel", "workers")``, written ``kernel.workers``."""

LAYERS = ("defaults", "distribution", "user", "workspace", "environment", "command line")
RESERVED = ("TOOLKEEL_HOME", "TOOLKEEL_STRICT", "TOOLKEEL_DISTRIBUTION")
_SIZE_LIMIT = 256_000
_NODE_LIMIT = 100_000
_PREFIX = "TOOLKEEL_"


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


def default_state_folder() -> Path:
    """``~/.toolkeel``."""
    return Path.home() / ".toolkeel"


def read_file(path: Path, layer: str, *, must_exist: bool = False) -> Layer:
    """Read one YAML file as a layer. A missing file is an empty layer unless it must exist.

    Raises:
        SettingsError: it cannot be read, is not YAML, repeats a key, or is no mapping; names file and line.
    """
    try:
        text = _read_bounded(path)
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


def _read_bounded(path: Path) -> bytes:
    """The bytes of a regular file of bounded size: a folder that somebody checked out may hold a pipe or a device."""
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SettingsError("is no regular file", where=str(path), remedy="Remove it")
        text = file.read(_SIZE_LIMIT + 1)
    if len(text) > _SIZE_LIMIT:
        raise SettingsError(f"is over {_SIZE_LIMIT:,} bytes", where=str(path))
    return text


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
            if isinstance(key_node.value, str) and key_node.value in seen and not str(key_node.tag).endswith(":merge"):
                line = key_node.start_mark.line + 1
                raise SettingsError(f"the key {key_node.value!r} stands twice", where=f"{self._source}:{line}")
            if isinstance(key_node.value, str):
                seen.add(key_node.value)


def read_environment(environ: Mapping[str, str]) -> Layer:
    """``TOOLKEEL_…`` variables as a layer: ``__`` parts the path, values are YAML on one line."""
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


def read_pairs(pairs: Mapping[str, str], layer: str, source: str) -> Layer:
    """``path=value`` pairs as a layer; values are YAML on one line."""
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
    note(value, trail, origin, origins)


def _value(text: str, origin: Origin) -> Any:
    """A value given outside of files: YAML on one line, else text as it is. No error shows it: it may be a secret."""
    if "\n" in text or not text.strip():
        return text
    try:
        return _load(text.encode("utf-8", "replace"), origin.source, origin.layer, {})
    except SettingsError:
        raise SettingsError("cannot be read as YAML", where=origin.source, remedy="Quote it if it is text") from None


def note(value: object, trail: Trail, origin: Origin, origins: dict[Trail, Origin]) -> None:
    """Note one origin for a value and everything inside it."""
    if trail:
        origins[trail] = origin
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            note(inner, (*trail, str(key)), origin, origins)
