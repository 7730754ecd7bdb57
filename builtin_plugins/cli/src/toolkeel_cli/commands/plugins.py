"""toolkeel plugins: what was found, in which state and why; turning plugins on and off in the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import msgspec
import typer

from toolkeel import PluginInfo
from toolkeel.discovery import folder as read_folder
from toolkeel.errors import PluginError, SettingsError
from toolkeel_cli import settings_file
from toolkeel_cli.exits import Exit, UsageError
from toolkeel_cli.nearest import did_you_mean
from toolkeel_cli.opening import open_kernel, open_session, read_config
from toolkeel_cli.options import Options
from toolkeel_cli.running import keep_warnings_quiet
from toolkeel_cli.screen import Screen

_FORGOTTEN = "its hash is taken out of kernel.enable: nothing of the folder runs until it is enabled anew"
_STYLES = {"active": "green", "quarantined": "bold red", "disabled": "dim", "listed": "yellow"}


async def plugins(options: Options) -> None:
    """List the plugins that were found: state, version, source, and for those that do not work why and what to do."""
    screen = Screen(as_json=options.json)
    keep_warnings_quiet()
    async with open_session(options) as session:  # a plugin may fail only when a session asks for its tools
        kernel = session.kernel
        found = tuple(_as_typed(info, options) for info in kernel.plugins.list())
        diagnostics = kernel.diagnostics()
    if options.json:
        screen.json({"plugins": [msgspec.structs.asdict(info) for info in found], "diagnostics": diagnostics})
        return
    _show(found, screen)
    for diagnostic in diagnostics:
        screen.line()
        screen.line(f"! {diagnostic}", style="yellow")


def _as_typed(info: PluginInfo, options: Options) -> PluginInfo:
    """A plugin that an option of this run keeps out, told in the words of that option."""
    if info.state != "disabled":
        return info
    if info.name in options.disable:
        reason, remedy = "--disable names it", "Leave it out of --disable"
    elif options.only and info.name not in options.only:
        reason, remedy = "--only does not name it", "Name it in --only, or leave --only out"
    else:
        return info
    return msgspec.structs.replace(info, reason=reason, remedy=remedy)


def _show(found: tuple[PluginInfo, ...], screen: Screen) -> None:
    if not found:
        screen.line("no plugin was found")
        return
    rows = [
        (info.name, (info.state, _STYLES[info.state]), info.version, str(info.priority), info.source) for info in found
    ]
    screen.table(("plugin", "state", "version", "priority", "source"), rows)
    for info in found:
        if not (info.reason or info.notes):
            continue
        screen.line()
        at = f" at {info.stage}" if info.stage else ""
        screen.line(f"{info.name} is {info.state}{at}", style=_STYLES[info.state])
        if info.reason:
            screen.line(f"  why:    {info.reason}")
        if info.remedy:
            screen.line(f"  remedy: {info.remedy}")
        for note in info.notes:
            screen.line(f"  note:   {note}")


async def enable(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name")],
    options: Options,
    digest: Annotated[
        str, typer.Option("--hash", metavar="sha256:...", help="The content hash of the folder that you have read")
    ] = "",
) -> int:
    """Turn a plugin on, in the settings file of your account.

    A plugin folder runs only while its content has the hash that you name here: read it first. Whatever changes in it
    afterwards turns it off again.
    """
    screen = Screen(as_json=options.json)
    path = read_config(options).state_folder / "config.yaml"
    options = _as_settings_say(options)
    info = await _find(name, options)
    if info.kind == "folder":
        if not info.digest:
            raise PluginError(info.reason, where=f"plugin {name!r}", remedy=info.remedy)
        if not digest and read_config(options).value("kernel", "enable", name) != info.digest:
            raise UsageError(
                f"{name!r} is a folder, which runs only by its content hash",
                where=info.source,
                remedy=f"Read it, then: toolkeel plugins enable {name} --hash {info.digest}",
            )
        if digest and digest != info.digest:
            raise PluginError(
                f"its content hash is {info.digest}, not {digest}", where=info.source, remedy="Read what changed"
            )
        if digest:
            settings_file.put(path, ("kernel", "enable", name), digest)
    elif digest:
        raise UsageError(f"{name!r} is an installed package, not a folder", remedy="Leave --hash out")
    if info.state == "disabled":
        _undo_disable(name, options, path)
    return await _tell(name, options, screen, path)


async def disable(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name")], options: Options
) -> int:
    """Turn a plugin off, in the settings file of your account.

    A folder that changed since it was enabled, or that is gone, loses its hash there.
    """
    screen = Screen(as_json=options.json)
    path = read_config(options).state_folder / "config.yaml"
    options = _as_settings_say(options)
    try:
        info = await _find(name, options)
    except PluginError:  # a folder of another workspace, or one that is gone, may be approved all the same
        if not _forget(name, options, path):
            raise
        screen.note(_FORGOTTEN)
        return Exit.OK
    if info.state == "listed" and _forget(name, options, path):
        screen.note(_FORGOTTEN)
    elif info.state == "listed":
        screen.note(f"{name} is not turned on: {info.reason}")
    elif info.state == "disabled":
        screen.note(f"{name} is turned off already: {info.reason}")
    else:
        settings_file.add(path, ("kernel", "disable"), name)
    return await _tell(name, options, screen, path, wanted=False)


def content_hash(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with a plugin.json")], options: Options
) -> None:
    """Print the content hash of a plugin folder."""
    source = read_folder(folder.resolve(), {})
    if source is None:
        raise UsageError("there is no plugin.json in it", where=str(folder), remedy="Name the plugin's own folder")
    if not source.digest:
        raise PluginError(source.problem, where=str(folder), remedy=source.remedy)
    screen = Screen(as_json=options.json)
    if options.json:
        screen.json({"name": source.name, "hash": source.digest})
    else:
        screen.text(source.digest)


async def _find(name: str, options: Options) -> PluginInfo:
    async with open_kernel(options) as (kernel, _):
        found = [info for info in kernel.plugins.list() if info.name == name]
        if not found:
            names = [info.name for info in kernel.plugins.list()]
            remedy = f"{did_you_mean(name, names)} Found: {', '.join(names) or 'none'}".lstrip()
            raise PluginError(f"no plugin {name!r} was found", remedy=remedy)
        return next((info for info in found if info.stage != "found"), found[0])


def _forget(name: str, options: Options, path: Path) -> bool:
    """Take the approval of a folder back, where this account's settings hold one."""
    config = read_config(options)
    if config.value("kernel", "enable", name) is None:
        return False
    origin = config.origin("kernel", "enable", name)
    if origin.layer != "user":
        raise SettingsError(f"{name!r} is turned on there", where=f"{origin}: kernel.enable", remedy="Remove it there")
    settings_file.drop(path, ("kernel", "enable", name))
    return True


def _undo_disable(name: str, options: Options, path: Path) -> None:
    config = read_config(options)
    origin = config.origin("kernel", "disable")
    if name not in cast("list[object]", config.value("kernel", "disable") or []):
        raise SettingsError(
            f"{name!r} is not among the plugins to load",
            where=f"{config.origin('kernel', 'only')}: kernel.only",
            remedy="Add it there",
        )
    if origin.layer != "user":
        raise SettingsError(
            f"{name!r} is turned off there", where=f"{origin}: kernel.disable", remedy="Remove it there"
        )
    settings_file.remove(path, ("kernel", "disable"), name)


def _as_settings_say(options: Options) -> Options:
    """Without what is loaded for this run only: it is the settings that are changed."""
    return msgspec.structs.replace(options, only=(), disable=())


async def _tell(name: str, options: Options, screen: Screen, path: Path, *, wanted: bool = True) -> int:
    """Show how a plugin now stands; how to turn it on only to somebody who ``wanted`` that."""
    keep_warnings_quiet()
    info = await _find(name, options)
    if not wanted:
        info = msgspec.structs.replace(info, remedy="")
    if options.json:
        screen.json({"plugin": msgspec.structs.asdict(info), "settings": str(path)})
    else:
        _show((info,), screen)
    return Exit.FAILED if info.state == "quarantined" else Exit.OK
