"""The manifests of plugin folders: ``plugin.json`` and ``openclaw.plugin.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import ManifestError

SIZE_LIMIT = 1_000_000
NAMES = ("plugin.json", "openclaw.plugin.json")
Model = TypeVar("Model", bound=BaseModel)


class Entry(BaseModel):
    """What the kernel reads of a plugin folder that is written for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    entry: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*(:[A-Za-z_]\w*)?$")] = Field(
        description="The module in the folder, or `module:Class`, that implements the hooks"
    )
    api: int = Field(1, description="The version of the hook contract that the plugin is written for")
    needs: list[str] = Field(
        default_factory=list,
        description="What must be there before it is imported: `plugin:NAME`, `module:NAME` (an importable package)",
    )


class PluginManifest(BaseModel):
    """`plugin.json`. With a `toolkeel` object it is a plugin of ours; without, an agent-plugin bundle."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")] = Field(
        description="The plugin's id: letters, digits, `_`, `-`, `.`"
    )
    version: str = Field("", description="The plugin's own version")
    description: str = Field("", description="One sentence for lists")
    toolkeel: Entry | None = Field(None, description="How the kernel loads it")


class OpenClawManifest(BaseModel):
    """`openclaw.plugin.json`: JavaScript, so it is listed as foreign; only its metadata is read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: Annotated[str, Field(min_length=1, max_length=128)] = Field(description="The plugin's id")
    name: str = Field("", description="Its name for people")
    version: str = Field("", description="Its own version")
    description: str = Field("", description="One sentence for lists")


class Manifest(BaseModel):
    """A folder's manifest, whichever of the two it has."""

    model_config = ConfigDict(frozen=True)

    id: str
    version: str = ""
    description: str = ""
    kind: Literal["plugin", "bundle", "foreign"]
    entry: Entry | None = None


def read_manifest(folder: Path) -> Manifest | None:
    """Read a folder's manifest; ``None`` where it has none.

    Raises:
        ManifestError: it is too large, no JSON, or says something impossible; names the file and the field.
    """
    for name in NAMES:
        path = folder / name
        if path.is_file():
            return _plugin(path) if name == "plugin.json" else _openclaw(path)
    return None


def reread(data: bytes, path: Path) -> Manifest:
    """The manifest in the bytes of a ``plugin.json`` that were read before: what was hashed is what counts."""
    return _plugin(path, data)


def _plugin(path: Path, data: bytes | None = None) -> Manifest:
    read = _validated(PluginManifest, _json(path, data), path)
    return Manifest(
        id=read.name,
        version=read.version,
        description=read.description,
        kind="plugin" if read.toolkeel else "bundle",
        entry=read.toolkeel,
    )


def _openclaw(path: Path) -> Manifest:
    read = _validated(OpenClawManifest, _json(path), path)
    return Manifest(id=read.id, version=read.version, description=read.description, kind="foreign")


def _json(path: Path, data: bytes | None = None) -> dict[str, Any]:
    if data is None:
        try:
            with path.open("rb") as file:
                data = file.read(SIZE_LIMIT + 1)
        except OSError as error:
            raise ManifestError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if len(data) > SIZE_LIMIT:
        raise ManifestError(f"is over {SIZE_LIMIT:,} bytes", where=str(path))
    try:
        value = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ManifestError(f"is not valid JSON: {error}", where=str(path)) from None
    if not isinstance(value, dict):
        raise ManifestError("must be a JSON object", where=str(path))
    return cast("dict[str, Any]", value)


def _validated(model: type[Model], value: dict[str, Any], path: Path) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(step) for step in first["loc"])
        raise ManifestError(first["msg"], where=f"{path}: {field}", remedy="See the manifest reference") from None
