"""Run the commands of the README's tour and write down what they print.

Usage: python docs/tour.py            writes the outputs into the README
       python docs/tour.py --check    changes nothing; fails where something else is printed
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADING = "## A tour of two minutes\n"
BLOCK = re.compile(r"```sh\n(.*?)```\n\n```text\n.*?```", re.DOTALL)
VARYING = ((re.compile(r"in \d+\.\d ms"), "in … ms"), (re.compile(r"\([\d,]+ bytes\)"), "(… bytes)"))
"""What differs from run to run, or whenever a file is edited, is shown as `…`."""


def main(arguments: list[str]) -> int:
    """Write the README, or with ``--check`` print how it differs and fail."""
    readme = ROOT / "README.md"
    before = readme.read_text(encoding="utf-8")
    front, heading, tour = before.partition(HEADING)
    with tempfile.TemporaryDirectory() as home:
        after = front + heading + BLOCK.sub(lambda block: _filled(block[1], home), tour)
    if "--check" not in arguments:
        readme.write_text(after, encoding="utf-8")
        return 0
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "README.md", "printed"))
    return 1 if before != after else 0


def _filled(commands: str, home: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    plain = {"HOME": home, "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100"}
    printed = subprocess.run(  # noqa: S603 - the README's own commands
        ["bash", "-c", commands],  # noqa: S607
        cwd=ROOT,
        env=plain,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    ).stdout
    output = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
    for pattern, shown in VARYING:
        output = pattern.sub(shown, output)
    return f"```sh\n{commands}```\n\n```text\n{output}\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
