"""Where plugins are: entry points and manifest folders, found without importing any of them."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from .errors import DefinitionError, ManifestError

if TYPE_CHECKING:
    from .manifest import Manifest

GROUP = "toolkeel"
NEEDS = "toolkeel.needs"
_FILE_LIMIT = 5_000
_SIZE_LIMIT = 64_000_000
_PACKAGE = "toolkeel_extension_"
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

Kind = Literal["package", "folder", "given"]


class Source(msgspec.Struct, frozen=True):
    """Something that may be a plugin: its name, where it is, and how to load it.

    ``digest`` is the content hash of a folder. ``problem`` says why it cannot be loaded at all, ``remedy`` what to do.
    ``load`` imports it and gives the module or class.
    """

    name: str
    kind: Kind
    place: str
    version: str = ""
    description: str = ""
    needs: tuple[str, ...] = ()
    digest: str = ""
    problem: str = ""
    remedy: str = ""
    load: Callable[[], object] | None = None
    packages: tuple[str, ...] = ()


def given(plugin: object) -> Source:
    """A source for a plugin that a program hands in itself: a module or a class."""
    name = str(getattr(plugin, "NAME", "") or getattr(plugin, "__name__", type(plugin).__name__))
    name = name.removesuffix(".plugin").rpartition(".")[2].removeprefix("toolkeel_").lower()
    return Source(name, "given", "given in code", load=lambda: plugin)


def entry_points() -> list[Source]:
    """Every plugin that an installed package names in the entry-point group ``toolkeel``, sorted by name."""
    needs: dict[str, list[str]] = {}
    for point in importlib.metadata.entry_points(group=NEEDS):
        needs.setdefault(point.name.partition(".")[0], []).append(point.value)
    found = {(point.name, point.value): point for point in importlib.metadata.entry_points(group=GROUP)}
    return [_package(point, tuple(needs.get(point.name, ()))) for _, point in sorted(found.items())]


def _package(point: importlib.metadata.EntryPoint, needs: tuple[str, ...]) -> Source:
    distribution = point.dist
    version = distribution.version if distribution else ""
    place = f"{distribution.name} {version}" if distribution else point.value
    return Source(
        point.name,
        "package",
        place,
        version,
        needs=needs,
        load=lambda: _load(point),
        packages=(point.value.partition(":")[0].partition(".")[0],),
    )


def _load(point: importlib.metadata.EntryPoint) -> object:
    """Load one entry point by stevedore: of what discovery found, never of its own scan or cache."""
    from stevedore import NamedExtensionManager

    class Found(NamedExtensionManager[Any]):
        def list_entry_points(self) -> list[importlib.metadata.EntryPoint]:
            return [point]

    failures: list[BaseException] = []

    def failed(_manager: object, _point: object, error: BaseException) -> None:
        failures.append(error)

    manager = Found(GROUP, [point.name], on_load_failure_callback=failed)
    if failures:
        raise failures[0]
    return cast("object", manager[point.name].plugin)


def folders(parents: Iterable[Path], enabled: Mapping[str, str]) -> list[Source]:
    """Every folder with a manifest in the given parents. Listed, and loadable only where ``enabled`` has its hash."""
    found: list[Source] = []
    budget = _Budget()  # for all that nobody enabled: a checked-out folder does not decide how long a start takes
    for parent in parents:
        try:
            names = sorted(entry.name for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        for name in names:
            source = folder(parent / name, enabled, budget)
            if source is not None:
                found.append(source)
    return found


def folder(path: Path, enabled: Mapping[str, str], budget: _Budget | None = None) -> Source | None:
    """One manifest folder as a source; ``None`` where it holds no manifest.

    ``budget`` bounds what is read of folders that nobody enabled; without one, and for enabled ones, each has its own.
    """
    from .manifest import read_manifest, reread

    try:
        manifest = read_manifest(path)
        if manifest is None:
            return None
        if manifest.kind == "foreign":
            return _listed(
                manifest, path, "", "is written for OpenClaw, in JavaScript", "Its skills can be used as a bundle"
            )
        if manifest.kind == "bundle":
            return _listed(manifest, path, "", "is an agent-plugin bundle", "Bundles are turned on under bundles:")
        shared = None if manifest.id in enabled else budget
        files = _contents(path, shared or _Budget())
        manifest = reread(files.get("plugin.json", b""), path / "plugin.json")
        entry = manifest.entry
        if entry is None:
            raise ManifestError("changed while it was read", where=str(path))
    except (ManifestError, OSError, UnicodeError, RecursionError) as error:
        return Source(
            path.name, "folder", str(path), problem=str(error), remedy="Mend the manifest or remove the folder"
        )
    digest = content_hash(files)
    approved = enabled.get(manifest.id, "")
    if approved != digest:
        why = "its content changed since it was enabled" if approved else "an operator has not enabled it"
        return _listed(
            manifest, path, digest, why, f"Read it, then: toolkeel plugins enable {manifest.id} --hash {digest}"
        )
    needs = (f"api:{entry.api}", *entry.needs)
    source = _listed(manifest, path, digest, "", "")
    package = _PACKAGE + "".join(char if char.isalnum() else "_" for char in manifest.id) + "_" + digest[7:19]
    return msgspec.structs.replace(
        source, needs=needs, load=lambda: _import(package, files, entry.entry, path), packages=(package,)
    )


def _listed(manifest: Manifest, path: Path, digest: str, problem: str, remedy: str) -> Source:
    return Source(manifest.id, "folder", str(path), manifest.version, manifest.description, (), digest, problem, remedy)


def content_hash(files: Mapping[str, bytes]) -> str:
    """``sha256:…`` over the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for name in sorted(files):
        data = files[name]
        raw = os.fsencode(name)
        digest.update(b"%d:%b:%d:" % (len(raw), raw, len(data)))
        digest.update(data)
    return f"sha256:{digest.hexdigest()}"


class _Budget:
    """How many files and folders, and how many bytes, may still be read."""

    def __init__(self) -> None:
        self.entries = _FILE_LIMIT
        self.bytes = _SIZE_LIMIT

    def spend(self, folder: Path, *, entries: int = 0, size: int = 0) -> None:
        self.entries -= entries
        self.bytes -= size
        if self.entries < 0 or self.bytes < 0:
            raise ManifestError(
                f"is not read: it, or all such folders together, hold more than {_FILE_LIMIT:,} files and folders or "
                f"{_SIZE_LIMIT:,} bytes",
                where=str(folder),
            )


def _contents(folder: Path, budget: _Budget) -> dict[str, bytes]:
    """All files of a folder in memory, so that what was hashed is what runs."""
    files: dict[str, bytes] = {}
    for parent, names, leaves in os.walk(folder, followlinks=False):
        names[:] = sorted(name for name in names if name != "__pycache__")
        budget.spend(folder, entries=len(names) + len(leaves))
        for name in [*names, *leaves]:
            path = Path(parent, name)
            if path.is_symlink():
                raise ManifestError("holds a link, which a content hash cannot cover", where=str(path))
        for name in leaves:
            path = Path(parent, name)
            with open(os.open(path, _READ), "rb") as file:  # not followed, not waited for
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise ManifestError("is no regular file", where=str(path))
                budget.spend(folder, size=status.st_size)
                files[path.relative_to(folder).as_posix()] = file.read(status.st_size)
    return files


def _import(package: str, files: Mapping[str, bytes], entry: str, place: Path) -> object:
    """Import an entry from the bytes that were hashed, under a package name of its own."""
    finder = _Finder(package, files, place)
    sys.meta_path.insert(0, finder)
    module_name, _, attribute = entry.partition(":")
    module = importlib.import_module(f"{package}.{module_name}")
    if not attribute:
        return module
    try:
        return cast("object", getattr(module, attribute))
    except AttributeError:
        raise DefinitionError(f"module {module_name!r} has no {attribute!r}", where=str(place)) from None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads the modules of one folder from memory."""

    def __init__(self, package: str, files: Mapping[str, bytes], place: Path) -> None:
        self._package = package
        self._files = files
        self._place = place

    def find_spec(  # the signature is importlib's
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._package and not fullname.startswith(f"{self._package}."):
            return None
        name, is_package = self._file(fullname)
        if name is None and fullname != self._package:
            return None
        spec = importlib.machinery.ModuleSpec(
            fullname, self, origin=str(self._place / (name or "")), is_package=is_package
        )
        spec.has_location = name is not None
        return spec

    def _file(self, fullname: str) -> tuple[str | None, bool]:
        inner = fullname[len(self._package) + 1 :].replace(".", "/")
        package = f"{inner}/__init__.py" if inner else "__init__.py"
        if package in self._files:
            return package, True
        if f"{inner}.py" in self._files:
            return f"{inner}.py", False
        return None, inner == "" or any(name.startswith(f"{inner}/") for name in self._files)

    def is_package(self, fullname: str) -> bool:
        return self._file(fullname)[1]

    def get_source(self, fullname: str) -> str:
        name = self._file(fullname)[0]
        return importlib.util.decode_source(self._files[name]) if name else ""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_source(fullname), str(self._place / (self._file(fullname)[0] or "")))


def forget(source: Source) -> None:
    """Drop a source's modules, so that the next load imports them anew."""
    for package in source.packages:
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
        sys.meta_path[:] = [
            finder for finder in sys.meta_path if not (isinstance(finder, _Finder) and finder._package == package)
        ]
    importlib.invalidate_caches()


def missing_need(source: Source, api: int, active: Callable[[str], bool]) -> tuple[str, str] | None:
    """The first need of a source that is not met, as (what, remedy); ``None`` when all are. Nothing is imported."""
    for need in source.needs:
        kind, _, name = need.partition(":")
        if kind == "api" and name != str(api):
            newer = name.isdigit() and int(name) > api
            return f"needs hook API {name}, this kernel has {api}", (
                "Upgrade toolkeel" if newer else "Upgrade the plugin"
            )
        if kind == "plugin" and not active(name):
            return f"needs the plugin {name!r}, which is not active", f"Install or enable {name!r}"
        if kind == "module" and importlib.util.find_spec(name.partition(".")[0]) is None:
            return f"needs the Python module {name!r}", "Install the package that has it"
        if kind not in ("api", "plugin", "module"):
            return f"has a need that cannot be read: {need!r}", "Use api:N, plugin:NAME or module:NAME"
    return None
