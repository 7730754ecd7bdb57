"""What the tests of the whole share: the checkout, commands run from outside, fresh virtual environments."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import uv as uv_package

CHECKOUT = Path(__file__).resolve().parent.parent
LIMIT = 300
"""Seconds after which a command is given up; those that install from the network take a few dozen."""

Run = Callable[..., str]


@pytest.fixture(scope="session")
def checkout() -> Path:
    return CHECKOUT


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command and give its standard output; a failure shows everything that it printed."""

    def command(*arguments: str | Path, cwd: Path = CHECKOUT, env: Mapping[str, str] | None = None) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TOOLKEEL_")}
        done = subprocess.run(
            [str(argument) for argument in arguments],
            cwd=cwd,
            env={**inherited, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"{' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    return command


@pytest.fixture(scope="session")
def shell() -> Run:
    """Run lines of a shell as a reader would; give what they print, standard error among it."""

    def lines(commands: str, *, folder: Path, home: Path, fails: bool = False, **more: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        plain = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100", **more}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=folder,
            env=plain,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if bool(done.returncode) != fails:
            pytest.fail(f"{commands}\nexit {done.returncode}\n{done.stdout}")
        return done.stdout

    return lines


@pytest.fixture(scope="session")
def fences() -> Callable[[str], list[tuple[str, str]]]:
    """The fenced blocks of a Markdown text: each one's language and content."""
    return re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL).findall


@pytest.fixture(scope="session")
def uv() -> str:
    return uv_package.find_uv_bin()


@pytest.fixture
def fresh_python(run: Run, uv: str, tmp_path: Path) -> Path:
    """The interpreter of an empty virtual environment that has pip and nothing else."""
    run(uv, "venv", "--quiet", "--seed", "--python", sys.executable, tmp_path / "venv")
    return tmp_path / "venv" / "bin" / "python"
