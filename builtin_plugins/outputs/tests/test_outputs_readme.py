"""The README says what the plugin does: its settings and their defaults."""

from __future__ import annotations

import re
from pathlib import Path

from toolkeel_outputs.plugin import Settings

README = Path(__file__).parent.parent / "README.md"


def test_the_readme_lists_every_setting_with_its_default() -> None:
    section = README.read_text(encoding="utf-8").partition("## Settings")[2].partition("\n## ")[0]
    listed = {name: float(value) for name, value in re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.MULTILINE)}
    assert listed == Settings().model_dump()
