from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WRITER = """
import sys
from pathlib import Path

import trio
from toolkeel_files.plugin import Files

from toolkeel.testing import kernel_with


async def main(folder: Path, name: str, mode: str) -> None:
    async with kernel_with(Files, workspaces=[folder]) as kit:
        for number in range(60):
            line = f"{name}{number}\\n"
            if mode == "append":
                answer = await kit.call("file_write", path="f", content=line, mode="append")
            else:
                answer = await kit.call("file_edit", path="f", old="END\\n", new=f"{line}END\\n")
            if answer.status == "completed":
                print(line, end="")


trio.run(main, Path(sys.argv[1]), sys.argv[2], sys.argv[3])
"""


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("mode", ["append", "edit"])
def test_what_several_processes_report_as_written_is_in_the_file(tmp_path: Path, mode: str) -> None:
    (tmp_path / "f").write_text("END\n")
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name, mode], stdout=subprocess.PIPE, text=True) for name in "abc"]
    reported = [line for writer in writers for line in writer.communicate(timeout=60)[0].splitlines()]
    assert len(reported) > 60
    assert set(reported) <= set((tmp_path / "f").read_text().splitlines())
