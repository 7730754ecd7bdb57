"""toolkeel doctor: checks of an installation, each with what to do where it fails."""

from __future__ import annotations

import os
import platform
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from toolkeel import Config, Kernel, ToolkeelError
from toolkeel_cli.exits import Exit, cause
from toolkeel_cli.opening import open_session, read_config, request_of, workspaces_of
from toolkeel_cli.options import Options
from toolkeel_cli.running import keep_warnings_quiet
from toolkeel_cli.screen import Screen
from toolkeel_cli.versions import versions

Outcome = Literal["ok", "warning", "trouble"]
_STYLES = {"ok": "green", "warning": "yellow", "trouble": "bold red"}
_API_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TESTED = (3, 13)


class Check(msgspec.Struct, frozen=True):
    """What one check found. ``remedy`` is empty where all is well."""

    name: str
    outcome: Outcome
    found: str
    remedy: str = ""


async def doctor(options: Options) -> int:
    """Check this installation: Python, settings, plugins, services, folders; each fault with what to do about it.

    The exit code is 1 where there is trouble; warnings leave it 0.
    """
    screen = Screen(as_json=options.json)
    keep_warnings_quiet()
    checks = [python(), packages(), system()]
    try:
        config = read_config(options)
    except ToolkeelError as error:
        checks.append(_failed("settings", error))
    else:
        checks += [settings_file(config), state_folder(config.state_folder), workspaces(options, config), openat2()]
        checks += await _kernel_checks(options)
    if options.json:
        screen.json({"checks": [msgspec.structs.asdict(check) for check in checks]})
    else:
        _show(checks, screen)
    return Exit.FAILED if any(check.outcome == "trouble" for check in checks) else Exit.OK


async def _kernel_checks(options: Options) -> list[Check]:
    try:
        async with open_session(options) as session:
            offer = await session.offer(request_of(session, options))
            names = [tool.name for tool in offer.tools]
            kernel = session.kernel
            return [*plugins(kernel), *services(kernel), *diagnostics(kernel), tools(names)]
    except Exception as error:
        found = cause(error)
        if not isinstance(found, ToolkeelError):
            raise
        return [_failed("kernel", found)]


def python() -> Check:
    """Whether toolkeel is tested on this Python."""
    found = f"Python {platform.python_version()} ({sys.executable})"
    if int(platform.python_version_tuple()[1]) > _TESTED[1]:
        return Check("python", "warning", found, f"toolkeel is tested up to Python {'.'.join(map(str, _TESTED))}")
    return Check("python", "ok", found)


def packages() -> Check:
    """Which toolkeel packages are installed, and whether they belong together."""
    found = {name: number for name, number in versions().items() if name.startswith("toolkeel")}
    text = ", ".join(f"{name} {number}" for name, number in found.items())
    series = {".".join(number.split(".")[:2]) for number in found.values()}
    if len(series) > 1:
        return Check("packages", "warning", text, "Upgrade them together: pip install --upgrade toolkeel-all")
    return Check("packages", "ok", text)


def system() -> Check:
    """Whether this is a system that toolkeel is tested on."""
    if platform.system() == "Linux":
        return Check("system", "ok", platform.platform())
    return Check("system", "warning", platform.platform(), "toolkeel is tested on Linux; elsewhere it is on trial")


def settings_file(config: Config) -> Check:
    """Where settings are read from, and whether others may change them."""
    path = config.state_folder / "config.yaml"
    layers = [layer.name for layer in config.layers if layer.values]
    found = f"{path}{'' if path.exists() else ' (not there: defaults)'}; layers in use: {', '.join(layers) or 'none'}"
    if path.exists() and path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return Check("settings", "warning", f"{path} can be written by others", f"chmod go-w {path}")
    return Check("settings", "ok", found)


def state_folder(folder: Path) -> Check:
    """Whether state can be kept."""
    present = next(path for path in (folder, *folder.parents) if path.exists())
    if not present.is_dir():
        return Check("state", "trouble", f"{present} is no folder", "Move it away, or set TOOLKEEL_HOME")
    if not os.access(present, os.W_OK | os.X_OK):
        return Check("state", "trouble", f"{present} cannot be written", "Change its owner, or set TOOLKEEL_HOME")
    return Check("state", "ok", f"{folder}{'' if folder.exists() else ' (made on first use)'}")


def workspaces(options: Options, config: Config) -> Check:
    """Which folders tools may work in."""
    try:
        found = workspaces_of(options, config)
    except ToolkeelError as error:
        return _failed("workspaces", error)
    if not found:
        remedy = "Name one with -w, or list folders under workspaces: in the settings"
        return Check("workspaces", "warning", "none: file tools have nothing to work in", remedy)
    state = config.state_folder.resolve()
    for folder in found:
        if state.is_relative_to(folder) or folder.is_relative_to(state):
            what = (
                f"{folder} reaches toolkeel's own state in {state}: a model that writes files can change the settings"
            )
            return Check("workspaces", "warning", what, "Name a folder beside it")
    return Check("workspaces", "ok", ", ".join(map(str, found)))


def openat2() -> Check:
    """Whether the system opens files beneath a folder in one step, so that no exchanged link can lead out."""
    if platform.system() != "Linux":
        return Check("openat2", "warning", "not on this system: paths are opened part by part", "")
    import ctypes
    import errno

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    number, here, beneath = 437, -100, 0x08
    how = How(os.O_RDONLY | os.O_CLOEXEC, 0, beneath)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, here, b".", ctypes.byref(how), ctypes.sizeof(how))
    if descriptor >= 0:
        os.close(descriptor)
        return Check("openat2", "ok", "files are opened beneath their folder in one step")
    why = errno.errorcode.get(ctypes.get_errno(), "?")
    return Check(
        "openat2",
        "warning",
        f"not available ({why}): paths are opened part by part, which is slower and as safe",
        "Linux 5.6 or later has it; a container's seccomp profile may forbid it",
    )


def plugins(kernel: Kernel) -> Iterator[Check]:
    """Each plugin that does not work, and each that failed in a hook."""
    found = kernel.plugins.list()
    active = [info.name for info in found if info.state == "active"]
    if active:
        yield Check("plugins", "ok", f"active: {', '.join(active)}")
    else:
        yield Check("plugins", "trouble", "no plugin is active", "pip install toolkeel-all, or see toolkeel plugins")
    for info in found:
        if info.state == "quarantined":
            yield Check(f"plugin {info.name}", "trouble", f"quarantined at {info.stage}: {info.reason}", info.remedy)
        elif info.state == "listed":
            yield Check(f"plugin {info.name}", "ok", f"listed, not run: {info.reason}")
        for note in info.notes:
            yield Check(f"plugin {info.name}", "warning", note, "toolkeel plugins shows all of its notes")


def services(kernel: Kernel) -> Iterator[Check]:
    """Who keeps large results, and who selects tools."""
    missing = {
        "spiller": ("large results are cut, not kept", "pip install toolkeel-outputs"),
        "selector": ("no selection: every tool is offered, up to the limit", ""),
    }
    for setting, (without, remedy) in missing.items():
        hooks = {contract.name for contract in kernel.contracts.values() if contract.exclusive == setting}
        serving = sorted({one.plugin for hook in hooks for one in kernel.hooks[hook]})
        origin = kernel.config.origin(setting)
        if serving:
            yield Check(setting, "ok", f"{', '.join(serving)} ({origin})")
        else:
            yield Check(setting, "warning" if remedy else "ok", without, remedy)


def diagnostics(kernel: Kernel) -> Iterator[Check]:
    """What the kernel itself has to say: doubled tool names, settings that nobody reads."""
    for text in kernel.diagnostics():
        yield Check("kernel", "warning", text, "See the path that it names")


def tools(names: list[str]) -> Check:
    """Whether there is anything to offer, under names that models' APIs take."""
    if not names:
        return Check("tools", "trouble", "no tool is offered", "toolkeel plugins shows why")
    unusual = [name for name in names if not _API_NAME.fullmatch(name)]
    if unusual:
        return Check("tools", "warning", f"names that models' APIs refuse: {', '.join(unusual)}", "Rename them")
    return Check("tools", "ok", f"{len(names)} offered")


def _failed(name: str, error: ToolkeelError) -> Check:
    return Check(name, "trouble", f"{error.where}: {error.what}" if error.where else error.what, error.remedy)


def _show(checks: list[Check], screen: Screen) -> None:
    rows = [
        (
            (check.outcome, _STYLES[check.outcome]),
            check.name,
            f"{check.found}\n-> {check.remedy}" if check.remedy else check.found,
        )
        for check in checks
    ]
    screen.table(("", "check", "found"), rows)
    counts = {outcome: sum(check.outcome == outcome for check in checks) for outcome in _STYLES}
    screen.line()
    screen.line(", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count), style="bold")
