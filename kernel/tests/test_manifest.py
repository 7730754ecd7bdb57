"""The manifests of plugin folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolkeel.errors import ManifestError
from toolkeel.manifest import Manifest, read_manifest


def written(folder: Path, content: Any, name: str = "plugin.json") -> Path:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / name).write_bytes(data)
    return folder


def refused(folder: Path) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        read_manifest(folder)
    return caught.value


@pytest.mark.requirement("K4")
def test_a_folder_without_a_manifest_is_no_plugin(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "plugin.json").mkdir()
    assert read_manifest(tmp_path) is None


@pytest.mark.requirement("K4")
def test_a_manifest_with_a_toolkeel_object_is_a_plugin_of_ours(tmp_path: Path) -> None:
    entry = {"entry": "pkg.main:Weather", "api": 1, "needs": ["plugin:state", "module:requests"]}
    written(tmp_path, {"name": "weather", "version": "1.2", "description": "Rain.", "toolkeel": entry, "author": {}})
    found = read_manifest(tmp_path)
    assert found is not None
    assert (found.id, found.version, found.description, found.kind) == ("weather", "1.2", "Rain.", "plugin")
    assert found.entry is not None
    assert (found.entry.entry, found.entry.api) == ("pkg.main:Weather", 1)
    assert found.entry.needs == ["plugin:state", "module:requests"]


@pytest.mark.requirement("K4")
def test_a_manifest_without_it_is_a_bundle(tmp_path: Path) -> None:
    written(tmp_path, {"name": "bundle", "skills": "./skills/"})
    assert read_manifest(tmp_path) == Manifest(id="bundle", kind="bundle")


@pytest.mark.requirement("K4")
def test_an_openclaw_manifest_is_foreign(tmp_path: Path) -> None:
    content = {"id": "@acme/voice", "name": "Voice", "version": "2", "configSchema": {}, "main": "index.js"}
    written(tmp_path, content, "openclaw.plugin.json")
    assert read_manifest(tmp_path) == Manifest(id="@acme/voice", version="2", kind="foreign")


@pytest.mark.requirement("K4")
def test_of_two_manifests_our_own_counts(tmp_path: Path) -> None:
    written(tmp_path, {"id": "claw"}, "openclaw.plugin.json")
    written(tmp_path, {"name": "ours", "toolkeel": {"entry": "main"}})
    found = read_manifest(tmp_path)
    assert found is not None
    assert (found.id, found.kind) == ("ours", "plugin")


@pytest.mark.requirement("K4")
def test_a_mark_of_the_byte_order_is_passed_over(tmp_path: Path) -> None:
    written(tmp_path, b'\xef\xbb\xbf{"name": "bom"}')
    found = read_manifest(tmp_path)
    assert found is not None
    assert found.id == "bom"


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"name": "a",}', "not valid JSON"),
        (b'{"name": "\xff"}', "not valid JSON"),
        (b'{"name": "\\ud800"}', "JSON"),
        (b'{"a":' * 100_000, "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b" " * 1_000_001, "over 1,000,000 bytes"),
    ],
    ids=range(9),
)
def test_a_manifest_that_cannot_be_read_names_its_file(tmp_path: Path, content: bytes, says: str) -> None:
    error = refused(written(tmp_path, content))
    assert error.where.startswith(str(tmp_path / "plugin.json"))
    assert says in error.what


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "two words"}, "name"),
        ({"name": "../up"}, "name"),
        ({"name": "-dash"}, "name"),
        ({"name": "n" * 65}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a\n"}, "name"),
        ({"name": "a", "version": 3}, "version"),
        ({"name": "a", "toolkeel": {}}, "toolkeel.entry"),
        ({"name": "a", "toolkeel": []}, "toolkeel"),
        ({"name": "a", "toolkeel": {"entry": "../main"}}, "toolkeel.entry"),
        ({"name": "a", "toolkeel": {"entry": "main.py:A:B"}}, "toolkeel.entry"),
        ({"name": "a", "toolkeel": {"entry": ""}}, "toolkeel.entry"),
        ({"name": "a", "toolkeel": {"entry": "m", "api": "one"}}, "toolkeel.api"),
        ({"name": "a", "toolkeel": {"entry": "m", "needs": "plugin:x"}}, "toolkeel.needs"),
        ({"name": "a", "toolkeel": {"entry": "m", "entrie": "m"}}, "toolkeel.entrie"),
    ],
    ids=str,
)
def test_a_manifest_that_says_something_impossible_names_the_field(tmp_path: Path, content: Any, field: str) -> None:
    error = refused(written(tmp_path, content))
    assert error.where == f"{tmp_path / 'plugin.json'}: {field}"
    assert error.what
    assert error.remedy


@pytest.mark.requirement("K4")
@pytest.mark.parametrize("content", [{}, {"id": ""}, {"id": 5}, {"id": "x" * 129}], ids=str)
def test_a_foreign_manifest_without_an_id_is_refused(tmp_path: Path, content: Any) -> None:
    error = refused(written(tmp_path, content, "openclaw.plugin.json"))
    assert error.where == f"{tmp_path / 'openclaw.plugin.json'}: id"
