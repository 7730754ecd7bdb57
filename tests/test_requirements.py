"""The promises in requirements.yaml and the tests that prove them name each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

ROOT = Path(__file__).parent.parent
COUNTS = {"K": 18, "O": 9, "G": 8, "S": 6, "R": 8, "H": 7, "C": 8, "A": 10, "N": 7}
TEST_FOLDERS = ("kernel/tests", "builtin_plugins/*/tests", "contrib/*/tests", "tests")


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    says: str
    state: Literal["done", "partial", "gap"]
    missing: str = ""
    reason: str = ""

    @model_validator(mode="after")
    def _explains_what_is_not_there(self) -> Row:
        if bool(self.missing) != (self.state == "partial"):
            raise ValueError("`missing` belongs to partial rows, and each of them has it")
        if bool(self.reason) != (self.state == "gap"):
            raise ValueError("`reason` belongs to gaps, and each of them has it")
        return self


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    text = (Path(__file__).parent / "requirements.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Row]).validate_python(yaml.safe_load(text))


@pytest.fixture(scope="module")
def claims() -> dict[str, list[str]]:
    """Requirement id → the places of the tests that claim it."""
    found: dict[str, list[str]] = {}
    for pattern in TEST_FOLDERS:
        for folder in sorted(ROOT.glob(pattern)):
            for path in sorted(folder.rglob("test_*.py")):
                for identifier, line in claimed(ast.parse(path.read_text(encoding="utf-8"))):
                    found.setdefault(identifier, []).append(f"{path.relative_to(ROOT)}:{line}")
    return found


def claimed(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The ids of every `pytest.mark.requirement("ID")`, on a test, a class or a whole module, with its line."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
            values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            assert len(values) == len(node.args) > 0, f"line {node.lineno}: write the id out as a plain string"
            for value in values:
                yield str(value), node.lineno


def test_every_requirement_has_a_row_in_order(rows: dict[str, Row]) -> None:
    assert list(rows) == [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]


def test_a_row_that_claims_to_hold_has_a_test(rows: dict[str, Row], claims: dict[str, list[str]]) -> None:
    unproven = [identifier for identifier, row in rows.items() if row.state != "gap" and identifier not in claims]
    assert not unproven, f"mark a test with each of {unproven}, or say in requirements.yaml that it is a gap"


def test_a_test_claims_only_what_a_row_says_holds(rows: dict[str, Row], claims: dict[str, list[str]]) -> None:
    holding = {identifier for identifier, row in rows.items() if row.state != "gap"}
    astray = {identifier: places for identifier, places in claims.items() if identifier not in holding}
    assert not astray, f"these name no row, or a gap: {astray}"


def test_the_scan_sees_marks_on_tests_classes_and_modules() -> None:
    source = """
import pytest
pytestmark = [pytest.mark.requirement("K1")]

@pytest.mark.requirement("K2", "K3")
class TestIt:
    @pytest.mark.requirement("K4")
    async def test_it(self): ...
"""
    assert {identifier for identifier, _ in claimed(ast.parse(source))} == {"K1", "K2", "K3", "K4"}
