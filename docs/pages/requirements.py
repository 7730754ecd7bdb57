"""The state of every requirement, from tests/requirements.yaml."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from .markdown import cell

ROOT = Path(__file__).resolve().parent.parent.parent

_FAMILIES = {
    "K": "The kernel",
    "O": "Offering and policy",
    "G": "Guarded tools",
    "S": "Skills and context",
    "R": "Selection",
    "H": "Hooks and plugins for operators",
    "C": "Caches and large results",
    "A": "Agent runtime",
    "N": "Network faces",
}


def page() -> Iterator[str]:
    """Every promise with its state, from tests/requirements.yaml."""
    rows = yaml.safe_load((ROOT / "tests" / "requirements.yaml").read_text(encoding="utf-8"))
    states = Counter(row["state"] for row in rows.values())
    yield "# Requirements\n"
    yield (
        "What toolkeel promises, with the state of each. A row that holds, in full or in part, has a test that proves "
        "it from outside; a test that claims a row not listed as holding fails the suite.\n"
    )
    yield f"Of {len(rows)}, {states['done']} hold in full, {states['partial']} in part, {states['gap']} not yet.\n"
    for letter, title in _FAMILIES.items():
        yield f"## {title}\n"
        yield "| id | promise | state |\n|---|---|---|"
        for identifier, row in rows.items():
            if identifier[0] == letter:
                state = {"done": "holds", "partial": "in part; missing: ", "gap": ""}[row["state"]]
                state += row.get("missing", "") + row.get("reason", "")
                yield f"| {identifier} | {cell(row['says'])} | {cell(state)} |"
        yield ""
