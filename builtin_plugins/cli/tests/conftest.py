"""The command as a process of its own, with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(sysconfig.get_path("scripts")) / "toolkeel"
LIMIT = 60


class Ended:
    """How a run of the command ended."""

    def __init__(self, process: subprocess.CompletedProcess[bytes]) -> None:
        self.code = process.returncode
        self.data = process.stdout
        self.out = process.stdout.decode()
        self.err = process.stderr.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Toolkeel:
    """Runs the installed command. ``state`` is its state folder, ``folder`` the current one."""

    def __init__(self, home: Path, folder: Path, bytecode: Path) -> None:
        self.home = home
        self.bytecode = bytecode
        self.state = home / "state"
        self.folder = folder

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLKEEL_", "COLUMNS"))}
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(self.bytecode)}
        places = {"HOME": str(self.home), "TOOLKEEL_HOME": str(self.state), "TERM": "dumb"}
        return {**kept, **compiled, **places, **(more or {})}

    def __call__(
        self, *arguments: object, stdin: bytes | str = b"", env: Mapping[str, str] | None = None, code: int | None = 0
    ) -> Ended:
        """Run a command line to its end; its exit code must be ``code`` unless that is ``None``."""
        ended = Ended(
            subprocess.run(
                [SCRIPT, *map(str, arguments)],
                input=stdin.encode() if isinstance(stdin, str) else stdin,
                capture_output=True,
                cwd=self.folder,
                env=self.environment(env),
                timeout=LIMIT,
                check=False,
            )
        )
        assert code is None or ended.code == code, f"exit code {ended.code}\n{ended.out}\n{ended.err}"
        assert "Traceback" not in ended.err, ended.err
        return ended

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
        """Start a command line and leave it running."""
        return subprocess.Popen(
            [SCRIPT, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment(),
            **options,
        )

    def settings(self, text: str) -> Path:
        """Write the settings file."""
        self.state.mkdir(exist_ok=True)
        path = self.state / "config.yaml"
        path.write_text(text)
        return path

    def extension(self, name: str, code: str, *, enabled: bool = True, files: Iterable[tuple[str, str]] = ()) -> Path:
        """Write a plugin folder, and turn it on by its hash as a person would."""
        folder = self.state / "extensions" / name
        folder.mkdir(parents=True)
        manifest = {"name": name, "version": "1.2.3", "toolkeel": {"entry": "plugin"}}
        (folder / "plugin.json").write_text(json.dumps(manifest))
        (folder / "plugin.py").write_text(code)
        for file, text in files:
            (folder / file).write_text(text)
        if enabled:
            digest = self("plugins", "hash", folder).out.strip()
            self("plugins", "enable", name, "--hash", digest, code=None)
        return folder


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of all tests keep their compiled modules."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def toolkeel(tmp_path: Path, bytecode: Path) -> Toolkeel:
    """The command with an empty home, in an empty folder."""
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    return Toolkeel(home, folder, bytecode)
