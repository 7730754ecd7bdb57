"""Opens the kernel and a session as the options say."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stdout
from pathlib import Path
from typing import cast

from toolkeel import Config, Kernel, Principal, Request, Session
from toolkeel.errors import SettingsError, ToolkeelError
from toolkeel.settings import KernelSettings

from .exits import UsageError
from .hookspecs import Command
from .options import Options
from .running import interruptible
from .screen import Screen


def read_config(options: Options) -> Config:
    """The settings of this machine with what the command line overrides.

    Raises:
        UsageError: a ``--set`` that is no ``path=value``, or a workspace that is no folder.
        SettingsError: a setting cannot be read.
    """
    overrides: dict[str, str] = {}
    for pair in options.settings:
        path, found, value = pair.partition("=")
        if not found:
            raise UsageError(f"--set takes PATH=VALUE, not {pair!r}", remedy="For example --set kernel.workers=4")
        overrides[path.strip()] = value
    if options.only:
        overrides["kernel.only"] = json.dumps(options.only)
    folders = workspaces_of(options, Config.read(overrides=overrides))
    config = Config.read(workspaces=folders, overrides=overrides)
    if options.disable:  # beside what the settings disable already
        before = config.section("kernel", KernelSettings).disable
        overrides["kernel.disable"] = json.dumps([*before, *options.disable])
        config = Config.read(workspaces=folders, overrides=overrides)
    return config


def workspaces_of(options: Options, config: Config) -> list[Path]:
    """The folders that tools may work in: those of the command line, else of the settings, else the current one.

    The current folder is not taken where that would hand over more than a piece of work: a home folder, what holds it,
    and toolkeel's own state are workspaces only for somebody who names them.
    """
    named = options.workspaces or _configured(config)
    for folder in named:
        if not folder.expanduser().is_dir():
            raise UsageError(f"the workspace {str(folder)!r} is no folder", remedy="Name one that is there with -w")
    if named:
        return [folder.expanduser().resolve() for folder in named]
    try:
        here, state = Path.cwd().resolve(), config.state_folder.resolve()
    except FileNotFoundError:  # the current folder was removed
        return []
    holds = any(folder.is_relative_to(here) for folder in (Path.home().resolve(), state))
    return [] if holds or here.is_relative_to(state) else [here]


def _configured(config: Config) -> tuple[Path, ...]:
    value = config.value("workspaces")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
        raise SettingsError("must be a list of folders", where=f"{config.origin('workspaces')}: workspaces")
    return tuple(Path(item) for item in cast("list[str]", value))


@asynccontextmanager
async def open_kernel(options: Options) -> AsyncGenerator[tuple[Kernel, list[Path]], None]:
    """A kernel with this machine's plugins, and the workspace folders.

    While it is open, what plugins and tools print goes to standard error, so that standard output holds results only:
    those that are written through a ``Screen`` made before.
    """
    config = read_config(options)
    folders = workspaces_of(options, config)
    with redirect_stdout(sys.stderr):
        async with Kernel.open(config, workspaces=folders) as kernel:
            with interruptible():
                yield kernel, folders


@asynccontextmanager
async def open_session(options: Options) -> AsyncGenerator[Session, None]:
    """A session of the agent and key that the options name."""
    async with (
        open_kernel(options) as (kernel, folders),
        kernel.session(agent=options.agent, session=options.session, channel="cli", workspaces=folders) as session,
    ):
        yield session


def request_of(session: Session, options: Options, message: str = "") -> Request:
    """A request on behalf of whoever runs the command."""
    return session.request(message, principal=Principal(_user(), options.role))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in some containers
        return "local"


def commands_of_plugins(screen: Screen, taken: Sequence[str]) -> list[Command]:
    """The commands that plugins add. What goes wrong with them is noted: toolkeel's own commands still run."""
    import trio

    from .exits import cause

    async def ask() -> list[tuple[str, object]]:
        with redirect_stdout(sys.stderr):
            async with Kernel.open() as kernel:
                return kernel.caller.collect("cli_commands")

    try:
        answers = trio.run(ask)
    except Exception as error:  # noqa: BLE001 - told, and the own commands go on
        found = cause(error)
        told = str(found) if isinstance(found, ToolkeelError) else f"{type(found).__name__}: {found}"
        screen.note(f"plugins could not be asked for their commands: {told}")
        return []
    owners: Mapping[str, str] = dict.fromkeys(taken, "toolkeel itself")
    commands: dict[str, Command] = {}
    by: dict[str, str] = dict(owners)
    for plugin, answer in answers:
        for command in _commands(answer):
            if command is None:
                screen.note(f"plugin {plugin!r}: cli_commands gave something that is no Command")
            elif command.name in by:
                screen.note(f"the command {command.name!r} of plugin {plugin!r} is left out: {by[command.name]} has it")
            else:
                commands[command.name] = command
                by[command.name] = f"plugin {plugin!r}"
    return list(commands.values())


def _commands(answer: object) -> list[Command | None]:
    if isinstance(answer, Command):
        return [answer]
    if not isinstance(answer, Iterable):
        return [None]
    return [each if isinstance(each, Command) else None for each in cast("Iterable[object]", answer)]
