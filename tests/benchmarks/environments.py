"""The two environments of a run, ours and the peers': made, compiled to bytecode, and named with their versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
REQUIREMENTS = FOLDER / "requirements-peers.txt"
LIMIT = 1_200
"""Seconds after which a command is given up."""


def run(
    command: Sequence[str | Path], cwd: Path = FOLDER, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with bytecode on and without this machine's settings; raises where it fails."""
    keep = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TOOLKEEL_") and name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    }
    if home is not None:
        keep |= {"HOME": str(home), "TOOLKEEL_HOME": str(home)}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=keep, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def peers_python(folder: Path | None) -> Path:
    """The interpreter of the peers' environment in ``folder``; where that is not given, of one made in the cache."""
    if folder is not None:
        return folder / "bin" / "python"
    import uv

    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made = cache / "toolkeel-benchmarks" / f"peers-{digest}"
    python, complete = made / "bin" / "python", made / "complete"
    if not complete.exists():
        binary = uv.find_uv_bin()
        run([binary, "venv", "--quiet", "--clear", "--python", sys.executable, made])
        run([binary, "pip", "install", "--quiet", "--python", python, "-r", REQUIREMENTS])
        complete.touch()
    return python


def compile_bytecode(python: str | Path, folders: Iterable[Path] = ()) -> None:
    """Compile everything that an interpreter's environment can import. Files that are no Python 3 stay as they are."""
    found = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).stdout.strip()
    command = [python, "-m", "compileall", "-q", "-q", found, *folders]
    subprocess.run([str(word) for word in command], capture_output=True, timeout=LIMIT, check=False)


def sources() -> list[Path]:
    """The source folders of the workspace."""
    return [
        path for pattern in ("kernel/src", "builtin_plugins/*/src", "tests/benchmarks") for path in ROOT.glob(pattern)
    ]


def machine() -> str:
    """The machine in one line."""
    names: set[str] = set()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        names = {line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")}
    except OSError:
        pass
    processor = ", ".join(sorted(names)) or platform.processor() or platform.machine()
    return f"{os.cpu_count()} × {processor}, {platform.system()} {platform.release().partition('-')[0]}"


def load() -> float:
    """How many processes wanted a processor in the last minute; over the number of processors, others disturb."""
    return os.getloadavg()[0]


def our_versions() -> dict[str, str]:
    """The versions of what toolkeel stands on."""
    names = ("toolkeel", "trio", "pluggy", "pydantic", "msgspec", "orjson")
    return {name: importlib.metadata.version(name) for name in names}


def peer_versions(python: Path) -> dict[str, str]:
    """The versions that the peers' environment really holds."""
    names = ("fastmcp", "mcp", "langchain-core", "langgraph", "pydantic-ai-slim", "openai-agents")
    code = f"from importlib.metadata import version\nfor name in {names!r}: print(name, version(name))"
    return dict(line.split() for line in run([python, "-c", code]).stdout.splitlines())
