"""Changes single values in a settings file and leaves the rest of its text as it is."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import yaml

from toolkeel.errors import SettingsError
from toolkeel.layers import read_file

Trail = tuple[str, ...]
Edit = Callable[[str], str]


def put(path: Path, trail: Trail, value: str) -> None:
    """Set one text value. Comments, order and all else in the file stay.

    What is written is read back before it takes the file's place: it must say exactly what was there before and the
    change, else nothing is written.

    Raises:
        SettingsError: the file is not valid, cannot be written, or is laid out in a way that this cannot edit.
    """
    _change(
        path, lambda values: _at(values, trail[:-1]).update({trail[-1]: value}), lambda text: _put(text, trail, value)
    )


def drop(path: Path, trail: Trail) -> None:
    """Remove one key that is there, with the mappings above that held nothing else. See ``put``."""
    trail = _outermost(path, trail)
    _change(path, lambda values: _at(values, trail[:-1]).pop(trail[-1]), lambda text: _drop(text, trail))


def add(path: Path, trail: Trail, item: str) -> None:
    """Add an entry to a list of texts, which need not be there yet. See ``put``."""
    _change(
        path,
        lambda values: _at(values, trail[:-1]).setdefault(trail[-1], []).append(item),
        lambda text: _add(text, trail, item),
    )


def remove(path: Path, trail: Trail, item: str) -> None:
    """Remove an entry that is in a list. A list left empty goes too, unless a comment would go with it. See ``put``."""
    if _at(_values(path), trail) == [item] and not _loses_comment(path, trail):
        drop(path, trail)
        return
    _change(path, lambda values: _at(values, trail).remove(item), lambda text: _remove(text, trail, item))


def _values(path: Path) -> dict[str, Any]:
    return copy.deepcopy(dict(read_file(path, "user").values))


def _outermost(path: Path, trail: Trail) -> Trail:
    """The trail of the outermost mapping that holds only what a trail names, and no comment."""
    values = _values(path)
    while len(trail) > 1 and len(_at(values, trail[:-1])) == 1 and not _loses_comment(path, trail[:-1]):
        trail = trail[:-1]
    return trail


def _loses_comment(path: Path, trail: Trail) -> bool:
    text = path.read_bytes().decode()
    try:
        return _drop(text, trail).count("#") < text.count("#")
    except _CannotEditError:
        return True


def _change(path: Path, change: Callable[[dict[str, Any]], object], edit: Edit) -> None:
    path = path.resolve()  # a link to a file kept elsewhere stays a link
    wanted = _values(path)
    change(wanted)
    try:
        text = path.read_bytes().decode() if path.exists() else ""
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".config-", delete=False) as file:
            written = Path(file.name)
            try:
                file.write(edit(text).encode())
                file.flush()
                os.fsync(file.fileno())
                written.chmod(mode)
                _compare(written, wanted)
                written.replace(path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    written.unlink()
    except OSError as error:
        raise SettingsError(f"cannot be written: {error.strerror}", where=str(path)) from error
    except _CannotEditError:
        raise SettingsError(
            "is laid out in a way that cannot be edited safely; nothing was written",
            where=str(path),
            remedy=f"Edit it by hand so that it says: {json.dumps(wanted, default=str)}",
        ) from None


class _CannotEditError(Exception):
    pass


def _compare(written: Path, wanted: dict[str, Any]) -> None:
    try:
        found = read_file(written, "user").values
    except SettingsError as error:
        raise _CannotEditError from error
    if dict(found) != wanted:
        raise _CannotEditError


def _at(values: dict[str, Any], trail: Trail) -> Any:
    inner: Any = values
    for step in trail:
        if not isinstance(inner, dict):
            raise SettingsError("must be a mapping", where=".".join(trail))
        known = cast("dict[str, Any]", inner)
        if known.get(step) is None:
            known[step] = {}
        inner = known[step]
    return inner


# Edits of the text -------------------------------------------------------------------------------------------------


def _put(text: str, trail: Trail, value: str) -> str:
    return _write(text, trail, json.dumps(value), json.dumps(value))


def _add(text: str, trail: Trail, item: str) -> str:
    node = _find(text, trail)[-1] if len(_find(text, trail)) > len(trail) else None
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        last = node.value[-1].end_mark
        end = _line_end(text, last.index)
        return f"{text[:end]}\n{' ' * node.start_mark.column}- {json.dumps(item)}{text[end:]}"
    items = [entry.value for entry in node.value] if isinstance(node, yaml.SequenceNode) else []
    flow = json.dumps([*items, item])
    return _write(text, trail, flow, flow)


def _remove(text: str, trail: Trail, item: str) -> str:
    node = _find(text, trail)[-1]
    if not isinstance(node, yaml.SequenceNode):
        raise _CannotEditError
    kept = [entry.value for entry in node.value if entry.value != item]
    if node.flow_style:
        return text[: node.start_mark.index] + json.dumps(kept) + text[node.end_mark.index :]
    if not kept:
        return _emptied(text, node, "[]")
    for entry in node.value:
        if entry.value == item:
            return _without_lines(text, entry.start_mark.index, entry.end_mark.index)
    raise _CannotEditError


def _drop(text: str, trail: Trail) -> str:
    parent = _find(text, trail)[-2]
    if not isinstance(parent, yaml.MappingNode):
        raise _CannotEditError
    pairs = list(parent.value)
    place = next(index for index, (key, _) in enumerate(pairs) if key.value == trail[-1])
    key, value = pairs[place]
    if parent.flow_style:
        if len(pairs) == 1:
            return text[: parent.start_mark.index] + "{}" + text[parent.end_mark.index :]
        if place == 0:
            return text[: key.start_mark.index] + text[pairs[1][0].start_mark.index :]
        return text[: pairs[place - 1][1].end_mark.index] + text[value.end_mark.index :]
    last = _last_line_of(value)
    if len(pairs) == 1 and len(trail) > 1:  # the mapping would be empty, which only {} can say
        return _emptied(text, parent, "{}")
    return _without_lines(text, key.start_mark.index, last.end_mark.index)


def _last_line_of(node: yaml.Node) -> yaml.Node:
    """The node that ends where a value's last line does: the mark of a block collection is already beyond it."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = cast("yaml.Node", last[1] if isinstance(node, yaml.MappingNode) else last)
    return node


def _emptied(text: str, node: yaml.CollectionNode, nothing: str) -> str:
    """The text with a block collection of one entry emptied; a deeper column is right wherever the block stood."""
    entry = node.value[0]
    last = _last_line_of(entry[1] if isinstance(node, yaml.MappingNode) else entry)
    start = text.rfind("\n", 0, node.start_mark.index) + 1
    rest = text[_line_end(text, last.end_mark.index) :]
    if text[:start].rstrip().endswith(":"):
        return f"{text[:start].rstrip()} {nothing}{rest}"
    return f"{text[:start]}{' ' * (node.start_mark.column + 2)}{nothing}{rest}"


def _write(text: str, trail: Trail, flow: str, block: str) -> str:
    """Put a value at a trail of which only the beginning need be there."""
    nodes = _find(text, trail)
    if len(nodes) > len(trail):
        node = nodes[-1]
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            raise _CannotEditError
        gap = "" if text[: node.start_mark.index].endswith((" ", "\n")) else " "
        return text[: node.start_mark.index] + gap + flow + text[node.end_mark.index :]
    missing = trail[max(len(nodes) - 1, 0) :]
    if not nodes:
        return (text if text.endswith("\n") or not text else f"{text}\n") + _block(missing, block, 0)
    parent = nodes[-1]
    if isinstance(parent, yaml.MappingNode) and parent.value and not parent.flow_style:
        start = text.rfind("\n", 0, parent.value[0][0].start_mark.index) + 1
        return text[:start] + _block(missing, block, parent.start_mark.column) + text[start:]
    inner = _flow(missing, flow)
    if isinstance(parent, yaml.MappingNode):
        start = parent.start_mark.index + 1
        return text[:start] + inner[1:-1] + (", " if parent.value else "") + text[start:]
    gap = "" if text[: parent.start_mark.index].endswith(" ") else " "
    return text[: parent.start_mark.index] + gap + inner + text[parent.end_mark.index :]


def _block(keys: Trail, value: str, column: int) -> str:
    lines = [f"{' ' * (column + 2 * depth)}{_key(key)}:" for depth, key in enumerate(keys)]
    return "\n".join(lines) + f" {value}\n"


def _flow(keys: Trail, value: str) -> str:
    for key in reversed(keys):
        value = f"{{{_key(key)}: {value}}}"
    return value


def _key(key: str) -> str:
    """A key as YAML reads it back: bare where that is safe."""
    return key if re.fullmatch(r"[A-Za-z][\w.-]*", key) and yaml.safe_load(key) == key else json.dumps(key)


def _find(text: str, trail: Trail) -> list[yaml.Node]:
    """The nodes along a trail, from the root on, as far as it is there."""
    node = yaml.compose(text, yaml.SafeLoader)
    nodes: list[yaml.Node] = [] if node is None else [node]
    for step in trail:
        if not isinstance(node, yaml.MappingNode):
            break
        node = next((value for key, value in node.value if key.value == step), None)
        if node is None:
            break
        nodes.append(node)
    return nodes


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end


def _without_lines(text: str, first: int, last: int) -> str:
    start = text.rfind("\n", 0, first) + 1
    return text[:start] + text[_line_end(text, last) + 1 :]
