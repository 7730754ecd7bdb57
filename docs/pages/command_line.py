"""The command line reference: every command's help as it is printed, and the exit codes."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
from collections.abc import Iterable, Iterator

from toolkeel_cli import exits
from toolkeel_cli.app import COMMANDS
from toolkeel_cli.hookspecs import Command
from toolkeel_cli.main import run

from .markdown import cell, inline

_SHARED = re.compile(r"(?ms)^  --json .*?(?=^  --help)")


def page() -> Iterator[str]:
    """Every command with what its ``--help`` says, and the exit codes."""
    yield "# Command line\n"
    yield (
        "What `toolkeel --help` and each command's `--help` print. The options from `--json` to `--trace` are the same "
        "for every command, and stand here once. A plugin adds commands by the hook "
        "[`cli_commands`](hooks.md#cli_commands).\n"
    )
    yield f"```text\n{printed_help(())}\n```\n"
    for path in _paths((), COMMANDS):
        yield f"{'#' * (len(path) + 1)} toolkeel {' '.join(path)}\n"
        yield f"```text\n{_SHARED.sub('', printed_help(path)).rstrip()}\n```\n"
    yield "## Exit codes\n"
    yield "| code | when |\n|---|---|"
    for code, when in exit_codes():
        yield f"| {code} | {cell(when)} |"


def _paths(above: tuple[str, ...], commands: Iterable[Command]) -> Iterator[tuple[str, ...]]:
    for command in commands:
        yield (*above, command.name)
        yield from _paths((*above, command.name), command.commands)


def printed_help(path: tuple[str, ...]) -> str:
    """What a command prints for ``--help``."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = run([*path, "--help"])
    if code:
        raise RuntimeError(f"toolkeel {' '.join(path)} --help ended with {code}")
    return "\n".join(text.rstrip() for text in printed.getvalue().strip("\n").splitlines())


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
