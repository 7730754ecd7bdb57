"""The command line reference: every command's help as it is printed, and the exit codes."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from toolkeel_cli import exits
from toolkeel_cli.app import COMMANDS
from toolkeel_cli.hookspecs import Command

from .markdown import cell, inline

PRINTED = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "_TYPER_FORCE_DISABLE_TERMINAL": "1", "LANG": "C.UTF-8"}
"""What makes help texts the same on every machine."""
_SHARED = re.compile(r"(?ms)^  --json .*?(?=^  --help)")


def page() -> Iterator[str]:
    """Every command with what its ``--help`` says, and the exit codes."""
    yield "# Command line\n"
    yield (
        "What `toolkeel --help` and each command's `--help` print. The options from `--json` to `--trace` are the same "
        "for every command, and stand here once. A plugin adds commands by the hook "
        "[`cli_commands`](hooks.md#cli_commands).\n"
    )
    commands = list(_paths((), COMMANDS))
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        texts = dict(zip(commands, threads.map(printed_help, commands), strict=True))
    yield f"```text\n{printed_help(())}\n```\n"
    for path, text in texts.items():
        yield f"{'#' * (len(path) + 1)} toolkeel {' '.join(path)}\n"
        yield f"```text\n{_SHARED.sub('', text).rstrip()}\n```\n"
    yield "## Exit codes\n"
    yield "| code | when |\n|---|---|"
    for code, when in exit_codes():
        yield f"| {code} | {cell(when)} |"


def _paths(above: tuple[str, ...], commands: Iterable[Command]) -> Iterator[tuple[str, ...]]:
    for command in commands:
        yield (*above, command.name)
        yield from _paths((*above, command.name), command.commands)


def printed_help(path: tuple[str, ...]) -> str:
    """What a command prints for ``--help`` into a pipe of 100 columns."""
    program = Path(sys.executable).with_name("toolkeel")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "VIRTUAL_ENV")}
    command = [str(program), *path, "--help"]
    done = subprocess.run(command, env=kept | PRINTED, capture_output=True, text=True, check=True)  # noqa: S603
    return "\n".join(text.rstrip() for text in done.stdout.strip("\n").splitlines())


def exit_codes() -> Iterator[tuple[int, str]]:
    """The exit codes, each with the string that stands below it in the code."""
    tree = ast.parse(inspect.getsource(exits))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Exit")
    name = ""
    texts: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts[name] = inline(str(node.value.value))
    for member in exits.Exit:
        yield member.value, texts.get(member.name, "It worked.")
