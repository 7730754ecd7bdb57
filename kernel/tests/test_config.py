"""Settings: their layers, where each value came from, what is refused and in which words."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolkeel import Config, Kernel, hookimpl
from toolkeel.config import Origin
from toolkeel.errors import SettingsError
from toolkeel.settings import KernelSettings, narrowing

MakePlugin = Callable[..., ModuleType]
SECRET = "hunter2-Zq9"


class Machine:
    """The places that settings come from, in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.other = folder / "other"
        self.distribution = folder / "distribution.yaml"
        for place in (self.home, self.workspace / ".toolkeel", self.other / ".toolkeel"):
            place.mkdir(parents=True)
        self.environ: dict[str, str] = {"TOOLKEEL_HOME": str(self.home), "PATH": "/bin"}
        self.options: dict[str, str] = {}

    def write(self, *, user: str = "", workspace: str = "", other: str = "", distribution: str = "") -> Machine:
        if user:
            (self.home / "config.yaml").write_text(user)
        if workspace:
            (self.workspace / ".toolkeel" / "config.yaml").write_text(workspace)
        if other:
            (self.other / ".toolkeel" / "config.yaml").write_text(other)
        if distribution:
            self.distribution.write_text(distribution)
            self.environ["TOOLKEEL_DISTRIBUTION"] = str(self.distribution)
        return self

    def read(self) -> Config:
        return Config.read(workspaces=[self.workspace, self.other], environ=self.environ, overrides=self.options)

    def kernel(self) -> KernelSettings:
        return self.read().section("kernel", KernelSettings)

    def error(self, section: str = "", model: type[BaseModel] = KernelSettings) -> SettingsError:
        with pytest.raises(SettingsError) as caught:
            self.read().section(section or "kernel", model)
        return caught.value


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


class Endpoint(BaseModel):
    url: str = ""
    retries: int = 3


class Tracing(BaseModel):
    """A plugin's settings as authors write them: no word about unknown keys."""

    sampling: Annotated[float, Field(ge=0, le=1)] = Field(1.0, json_schema_extra=narrowing("lower"))
    endpoint: Endpoint = Endpoint()
    more: list[Endpoint] = Field(default_factory=list)
    named: dict[str, Endpoint] = Field(default_factory=dict)
    maybe: Endpoint | None = None
    deny: list[str] = Field(default_factory=list, json_schema_extra=narrowing("extend"))
    colour: str = Field("grey", json_schema_extra=narrowing("any"))
    token: str = ""

    @field_validator("token")
    @classmethod
    def _is_a_token(cls, value: str) -> str:
        if value and not value.startswith("tk_"):
            raise ValueError("a token begins with tk_")
        return value


# Layers ------------------------------------------------------------------------------------------------------------


def test_with_no_files_at_all_the_defaults_count(machine: Machine) -> None:
    config = machine.read()
    assert config.section("kernel", KernelSettings) == KernelSettings()
    assert config.origin("kernel", "workers") == Origin("defaults")
    assert config.value("kernel", "workers") is None
    assert config.state_folder == machine.home


def test_each_layer_outranks_the_one_before_and_each_value_knows_its_origin(machine: Machine) -> None:
    machine.write(distribution="kernel:\n  workers: 2\n  waiting: 2\n  threads: 2\n  tool_limit: 2\n")
    machine.write(user="# ours\nkernel:\n  waiting: 3\n  threads: 3\n  tool_limit: 3\n")
    machine.environ |= {"TOOLKEEL_KERNEL__THREADS": "4", "TOOLKEEL_KERNEL__TOOL_LIMIT": "4"}
    machine.options |= {"kernel.tool_limit": "5"}
    config = machine.read()
    settings = config.section("kernel", KernelSettings)
    assert (settings.workers, settings.waiting, settings.threads, settings.tool_limit) == (2, 3, 4, 5)
    assert config.origin("kernel", "workers") == Origin("distribution", str(machine.distribution), 2)
    assert config.origin("kernel", "waiting") == Origin("user", str(machine.home / "config.yaml"), 3)
    assert config.origin("kernel", "threads") == Origin("environment", "TOOLKEEL_KERNEL__THREADS")
    assert config.origin("kernel", "tool_limit") == Origin("command line", "--set kernel.tool_limit")
    assert config.origin("kernel", "time_limit") == Origin("defaults")
    assert str(config.origin("kernel", "waiting")) == f"user ({machine.home / 'config.yaml'}:3)"


def test_mappings_are_merged_and_lists_are_replaced(machine: Machine) -> None:
    machine.write(distribution="kernel: {priority: {a: 1, b: 2}, disable: [x, y]}")
    machine.write(user="kernel: {priority: {b: 3}, disable: [z]}")
    settings = machine.kernel()
    assert settings.priority == {"a": 1, "b": 3}
    assert settings.disable == ["z"]


def test_values_of_the_environment_and_the_command_line_are_yaml(machine: Machine) -> None:
    machine.environ |= {"TOOLKEEL_KERNEL__DISABLE": "[a, b]", "TOOLKEEL_KERNEL__PRIORITY": "{a: 5}"}
    machine.options |= {"kernel.time_limit": "1.5", "kernel.prefer": "{calc: basics}"}
    settings = machine.kernel()
    assert (settings.disable, settings.priority) == (["a", "b"], {"a": 5})
    assert (settings.time_limit, settings.prefer) == (1.5, {"calc": "basics"})


def test_text_of_several_lines_is_taken_as_it_is(machine: Machine) -> None:
    machine.environ["TOOLKEEL_PLUGINS__X__KEY"] = "-----BEGIN KEY-----\na: b\n"
    assert machine.read().value("plugins", "x", "key") == "-----BEGIN KEY-----\na: b\n"


def test_variables_that_are_no_settings_are_left_alone(machine: Machine) -> None:
    machine.environ |= {"TOOLKEEL_STRICT": "1", "TOOLKEELX_KERNEL": "1", "OTHER": "1"}
    assert machine.read().effective() == {}


def test_the_state_folder_is_in_the_home_folder_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Config.read(environ={}).state_folder == tmp_path / ".toolkeel"
    assert Config.read(environ={"TOOLKEEL_HOME": "~/elsewhere"}).state_folder == tmp_path / "elsewhere"


def test_what_factories_see_cannot_be_changed(machine: Machine) -> None:
    effective = machine.write(user="kernel: {priority: {a: 1}, disable: [a]}").read().effective()
    kernel = effective["kernel"]
    assert isinstance(kernel, Mapping)
    assert kernel["disable"] == ("a",)
    with pytest.raises(TypeError):
        kernel["disable"] = ()  # type: ignore[index]


def test_yaml_merges_take_over_and_are_overridden(machine: Machine) -> None:
    machine.write(user="base: &base {sampling: 0.5, colour: red}\nplugins:\n  t:\n    <<: *base\n    colour: blue\n")
    assert machine.read().value("plugins", "t") == {"sampling": 0.5, "colour": "blue"}


# Wrong keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "path", "nearest"),
    [
        ("kernel:\n  workers: 4\n  wiating: 4\n", 3, "kernel.wiating", "kernel.waiting"),
        ("kernel: {wrokers: 4}\n", 1, "kernel.wrokers", "kernel.workers"),
    ],
)
def test_a_wrong_key_of_the_kernel_names_file_line_path_and_the_nearest_right_one(
    machine: Machine, text: str, line: int, path: str, nearest: str
) -> None:
    error = machine.write(user=text).error()
    assert error.where == f"{machine.home / 'config.yaml'}:{line}: {path}"
    assert error.what == "unknown setting"
    assert error.remedy == f"Did you mean {nearest!r}?"


@pytest.mark.parametrize(
    ("text", "line", "path", "nearest"),
    [
        ("sampilng: 1", 3, "sampilng", "sampling"),
        ("endpoint:\n      ulr: x", 4, "endpoint.ulr", "endpoint.url"),
        ("more:\n    - url: a\n    - url: b\n      retires: 1", 6, "more.1.retires", "more.1.retries"),
        ("named:\n      one:\n        retires: 1", 5, "named.one.retires", "named.one.retries"),
        ("maybe:\n      retires: 1", 4, "maybe.retires", "maybe.retries"),
    ],
)
def test_a_wrong_key_within_a_plugins_section_is_found_however_deep(
    machine: Machine, text: str, line: int, path: str, nearest: str
) -> None:
    machine.write(user=f"plugins:\n  tracing:\n    {text}\n")
    error = machine.error("plugins.tracing", Tracing)
    assert error.what == "unknown setting"
    assert error.where == f"{machine.home / 'config.yaml'}:{line}: plugins.tracing.{path}"
    assert error.remedy == f"Did you mean 'plugins.tracing.{nearest}'?"


def test_a_wrong_key_like_no_other_lists_those_that_there_are(machine: Machine) -> None:
    error = machine.write(user="plugins: {tracing: {endpoint: {zzz: 1}}}").error("plugins.tracing", Tracing)
    assert error.remedy == "Known: retries, url"


@pytest.mark.parametrize(
    ("environ", "options", "where"),
    [
        ({"TOOLKEEL_KERNEL__WRKERS": "4"}, {}, "TOOLKEEL_KERNEL__WRKERS: kernel.wrkers"),
        ({}, {"kernel.wrkers": "4"}, "--set kernel.wrkers: kernel.wrkers"),
    ],
)
def test_a_wrong_key_from_outside_of_files_names_the_variable_or_the_option(
    machine: Machine, environ: dict[str, str], options: dict[str, str], where: str
) -> None:
    machine.environ |= environ
    machine.options |= options
    error = machine.error()
    assert (error.where, error.remedy) == (where, "Did you mean 'kernel.workers'?")


@pytest.mark.parametrize("path", ["", ".", "kernel.", "kernel..workers", ".workers"])
def test_a_path_that_is_none_is_refused(machine: Machine, path: str) -> None:
    machine.options[path] = "1"
    assert "no settings path" in machine.error().what


def test_options_that_contradict_each_other_are_refused(machine: Machine) -> None:
    machine.options |= {"kernel": "4", "kernel.workers": "4"}
    assert "lies inside a value that is set as a whole" in machine.error().what


async def test_a_section_that_nobody_reads_stops_the_start(machine: Machine, make_plugin: MakePlugin) -> None:
    machine.write(user="plugins:\n  tools: {}\n  tolos: {}\n")
    module = make_plugin(name="tools")
    module.Settings = Tracing  # type: ignore[attr-defined]
    with pytest.raises(SettingsError) as caught:
        async with Kernel.open(machine.read(), plugins=[module], discover=False):
            pass
    assert caught.value.where == f"{machine.home / 'config.yaml'}:3: plugins.tolos"
    assert caught.value.remedy == "Did you mean 'plugins.tools'?"


@pytest.mark.parametrize(
    ("text", "path", "nearest"),
    [("kernal: {}", "kernal", "kernel"), ("pluginz: {a: {}}", "pluginz", ""), ("selectr: a", "selectr", "selector")],
)
async def test_a_wrong_top_level_key_stops_the_start(machine: Machine, text: str, path: str, nearest: str) -> None:
    machine.write(user=text)
    with pytest.raises(SettingsError) as caught:
        async with Kernel.open(machine.read(), discover=False):
            pass
    assert caught.value.where == f"{machine.home / 'config.yaml'}:1: {path}"
    assert nearest in caught.value.remedy


async def test_settings_of_a_plugin_that_is_not_active_do_not_stop_the_start(
    machine: Machine, make_plugin: MakePlugin
) -> None:
    machine.write(user="kernel: {disable: [tracing]}\ntools: {tracing: {sampling: 1}}\n")
    module = make_plugin(name="tracing")
    async with Kernel.open(machine.read(), plugins=[module], discover=False) as kernel:
        [note] = kernel.diagnostics()
    assert f"{machine.home / 'config.yaml'}:2: tools" in note
    assert "tracing" in note


async def test_a_plugin_that_is_named_as_the_selector_must_be_there(machine: Machine, make_plugin: MakePlugin) -> None:
    machine.write(user="\nselector: rga\n")
    with pytest.raises(SettingsError) as caught:
        async with Kernel.open(machine.read(), plugins=[make_plugin(name="rag")], discover=False):
            pass
    assert f"{machine.home / 'config.yaml'}:2" in caught.value.where
    assert caught.value.remedy == "Did you mean 'rag'?"


# Wrong values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("workers: 0", "workers", "greater than or equal to 1"),
        ("workers: many", "workers", "an integer"),
        ("time_limit: -1", "time_limit", "greater than 0"),
        ("priority: {a: high}", "priority.a", "an integer"),
        ("disable: all", "disable", "a list"),
        ("workers: [1]", "workers", "an integer"),
    ],
)
def test_a_wrong_value_names_file_line_path_and_what_is_due(machine: Machine, text: str, path: str, says: str) -> None:
    error = machine.write(user=f"kernel:\n  {text}\n").error()
    assert error.where == f"{machine.home / 'config.yaml'}:2: kernel.{path}"
    assert says in error.what


def test_a_section_that_is_no_mapping_names_its_place(machine: Machine) -> None:
    error = machine.write(user="\nkernel: 5\n").error()
    assert (error.where, error.what) == (f"{machine.home / 'config.yaml'}:2: kernel", "must be a mapping")


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        f"'{SECRET}'",
        f"[{SECRET}]",
        f"*{SECRET}",
        f"!{SECRET}",
        f"&{SECRET} {SECRET}",
        f"%{SECRET}",
        f"@{SECRET}",
        f"{SECRET}: '",
        f"{{{SECRET}",
        f"!!int {SECRET}",
        f"!!timestamp {SECRET}",
    ],
)
@pytest.mark.parametrize("source", ["file", "environment", "option"])
def test_no_error_shows_a_value(machine: Machine, value: str, source: str) -> None:
    for path in ("token", "endpoint", "sampling", "more"):
        if source == "file":
            if value[:1] in "*!":
                continue  # what is no value but YAML's own syntax may be named where people look at the file anyway
            machine.write(user=f"plugins: {{t: {{{path}: {value}}}}}\n")
        elif source == "environment":
            machine.environ[f"TOOLKEEL_PLUGINS__T__{path.upper()}"] = value
        else:
            machine.options[f"plugins.t.{path}"] = value
        try:
            machine.read().section("plugins.t", Tracing)
        except SettingsError as error:
            shown = str(error)
            assert SECRET not in shown.replace(f"{SECRET}: ", "")


# Files that are none -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("kernel:\n  workers: 1\n  workers: 2\n", 3, "'workers' stands twice"),
        ("kernel: {}\nkernel: {}\n", 2, "'kernel' stands twice"),
        ("plugins:\n  a: &a\n    x: 1\n    x: 2\n", 4, "'x' stands twice"),
        ("kernel: [\n", 2, "not valid YAML"),
        ("kernel:\n\tworkers: 1\n", 2, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: *nowhere\n", 1, "undefined alias"),
        ("a: !!python/object:os.system x\n", 1, "constructor"),
        ("a:\n  b: 2026-99-99\n", 2, "no valid timestamp"),
        ("a: !!int abc\n", 1, "no valid int"),
        ("a: !!float abc\n", 1, "no valid float"),
        ("a: !!bool maybe\n", 1, "no valid bool"),
        ("a: !!timestamp now\n", 1, "no valid timestamp"),
        ("a: " + "1" * 5_000 + "\n", 1, "no valid int"),
        ("- 1\n", 0, "must be a mapping"),
        ("word\n", 0, "must be a mapping"),
        ("a: \x01\n", 0, "not valid YAML"),
        ("a: &a [*a]\n", 0, "nested too deeply"),
        ("a: &a {b: *a}\n", 0, "nested too deeply"),
        ("a: " + "[" * 100_000, 1, ""),
    ],
    ids=range(20),
)
def test_a_file_that_cannot_be_read_as_settings_names_file_and_line(
    machine: Machine, text: str, line: int, says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        machine.write(user=text).read()
    assert caught.value.where.startswith(str(machine.home / "config.yaml") + (f":{line}" if line else ""))
    assert says in caught.value.what


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\n", "? {a: 1}\n: 1\n", "1: a\n", "null: a\n", "on: a\n", "=: a\n"])
def test_keys_that_are_no_text_are_unknown_settings_and_nothing_worse(machine: Machine, text: str) -> None:
    try:
        faults = machine.write(user=text).read().unknown(["kernel"])
    except SettingsError as error:
        faults = [error]
    assert len(faults) == 1
    assert str(machine.home / "config.yaml") in faults[0].where


@pytest.mark.parametrize(
    "text", ["", "\n", "# only words\n", "---\n", "{}\n", "null\n", "\ufeffkernel: {workers: 8}\n"]
)
def test_a_file_that_says_nothing_sets_nothing(machine: Machine, text: str) -> None:
    assert machine.write(user=text).kernel() == KernelSettings()


def test_bytes_that_are_no_text_name_the_file(machine: Machine) -> None:
    (machine.home / "config.yaml").write_bytes(b"kernel: \xff\xfe\n")
    assert str(machine.home / "config.yaml") in machine.error().where


def test_aliases_that_multiply_are_stopped_before_they_fill_the_memory(machine: Machine) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)]
    started = time.process_time()
    with pytest.raises(SettingsError, match="too large, or its aliases are"):
        machine.write(user="\n".join(lines)).read()
    assert time.process_time() - started < 10


def test_merges_that_multiply_are_stopped_as_well(machine: Machine) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}" for level in range(1, 9)]
    started = time.process_time()
    machine.write(user="\n".join(lines)).read()
    assert time.process_time() - started < 10


def test_a_folder_in_the_files_place_cannot_be_read(machine: Machine) -> None:
    (machine.home / "config.yaml").mkdir()
    assert machine.error().what == "cannot be read: Is a directory"


def test_a_link_in_a_circle_cannot_be_read(machine: Machine) -> None:
    (machine.home / "config.yaml").symlink_to(machine.home / "config.yaml")
    assert "cannot be read" in machine.error().what


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_without_permission_cannot_be_read(machine: Machine) -> None:
    machine.write(user="kernel: {}")
    (machine.home / "config.yaml").chmod(0)
    assert "cannot be read: Permission denied" in machine.error().what


def test_a_distribution_that_is_not_there_is_an_error(machine: Machine) -> None:
    machine.environ["TOOLKEEL_DISTRIBUTION"] = str(machine.home / "nowhere.yaml")
    assert machine.error().what == "no such file"


# The origin of a value ---------------------------------------------------------------------------------------------


def test_a_section_left_empty_sets_nothing(machine: Machine) -> None:
    machine.write(distribution="kernel: {workers: 3}", user="kernel:\nplugins: {}\n")
    assert machine.kernel().workers == 3
    assert machine.read().origin("kernel", "workers").layer == "distribution"
    assert machine.read().origin("kernel", "waiting") == Origin("defaults")


def test_keys_inside_lists_do_not_pass_for_settings(machine: Machine) -> None:
    machine.write(user="selector: rag\nplugins:\n  hooks:\n    rules:\n    - selector: x\n      workspaces: y\n")
    config = machine.read()
    assert config.origin("selector").line == 1
    assert config.origin("workspaces") == Origin("defaults")


def test_settings_made_in_code_say_so() -> None:
    config = Config.of({"kernel": {"workers": 3}})
    assert config.origin("kernel", "workers") == Origin("command line", "in code")
    assert config.section("kernel", KernelSettings).workers == 3


# Locks of a distribution -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["kernel.workers", "kernel"])
@pytest.mark.parametrize(
    ("user", "environ", "options", "where"),
    [
        ("kernel:\n  workers: 9\n", {}, {}, "config.yaml:"),
        ("kernel: 5\n", {}, {}, "config.yaml:1: kernel"),
        ("", {"TOOLKEEL_KERNEL__WORKERS": "9"}, {}, "TOOLKEEL_KERNEL__WORKERS: kernel.workers"),
        ("", {"TOOLKEEL_KERNEL": "{workers: 9}"}, {}, "TOOLKEEL_KERNEL: kernel"),
        ("", {"TOOLKEEL_KERNEL": "5"}, {}, "TOOLKEEL_KERNEL: kernel"),
        ("", {}, {"kernel.workers": "9"}, "--set kernel.workers: kernel.workers"),
        ("", {}, {"kernel": "{workers: 9}"}, "--set kernel: kernel"),
    ],
)
def test_what_a_distribution_locks_nobody_sets(
    machine: Machine, lock: str, user: str, environ: dict[str, str], options: dict[str, str], where: str
) -> None:
    machine.write(distribution=f"locked: [{lock}]\nkernel:\n  workers: 2\n", user=user)
    machine.environ |= environ
    machine.options |= options
    error = machine.error()
    assert where in error.where
    assert "locked by the distribution" in error.what
    assert str(machine.distribution) in error.what
    assert error.remedy


@pytest.mark.parametrize(
    ("user", "environ"),
    [("kernel:\n", {}), ("kernel: {}\n", {}), ("", {"TOOLKEEL_KERNEL": "null"}), ("", {"TOOLKEEL_KERNEL": "{}"})],
)
def test_an_emptied_section_does_not_step_around_a_lock(machine: Machine, user: str, environ: dict[str, str]) -> None:
    machine.write(distribution="locked: [kernel.workers]\nkernel:\n  workers: 2\n", user=user)
    machine.environ |= environ
    try:
        workers = machine.kernel().workers
    except SettingsError:
        return
    assert workers == 2


def test_a_workspace_does_not_set_what_is_locked(machine: Machine) -> None:
    machine.write(distribution="locked: [kernel.workers]\nkernel: {workers: 4}\n", workspace="kernel: {workers: 2}\n")
    assert "locked" in machine.error().what


def test_a_lock_on_a_default_is_a_lock(machine: Machine) -> None:
    machine.write(distribution="locked: [kernel.only]\n", user="kernel: {only: [a]}\n")
    assert "locked" in machine.error().what


def test_a_lock_leaves_everything_else_open(machine: Machine) -> None:
    machine.write(
        distribution="locked: [kernel.workers]\nkernel: {workers: 2}\n",
        user="kernel: {waiting: 9}\nplugins: {x: {rules: [{kernel: 1}]}}\n",
    )
    settings = machine.kernel()
    assert (settings.workers, settings.waiting) == (2, 9)


@pytest.mark.parametrize("locked", ["kernel", "5", "{a: 1}", "[1]"])
def test_locks_are_a_list_of_paths(machine: Machine, locked: str) -> None:
    error = machine.write(distribution=f"locked: {locked}\n").error()
    assert "list of settings paths" in error.what


def test_only_a_distribution_locks(machine: Machine) -> None:
    machine.write(user="locked: [kernel]\n")
    assert [fault.where.rpartition(": ")[2] for fault in machine.read().unknown(["kernel"])] == ["locked"]


# A workspace narrows -----------------------------------------------------------------------------------------------


def test_a_workspace_lowers_a_limit_and_the_value_says_where_from(machine: Machine) -> None:
    machine.write(user="kernel: {workers: 4}\n", workspace="kernel:\n  workers: 2\n  time_limit: 0.5\n")
    config = machine.read()
    settings = config.section("kernel", KernelSettings)
    assert (settings.workers, settings.time_limit) == (2, 0.5)
    assert config.origin("kernel", "workers").layer == "workspace"
    assert config.origin("kernel", "workers").line == 2
    assert config.value("kernel", "workers") == 2
    assert config.effective()["kernel"] == {"workers": 2, "time_limit": 0.5}


def test_of_two_workspaces_the_narrower_limit_counts(machine: Machine) -> None:
    machine.write(workspace="kernel: {workers: 2}\n", other="kernel: {workers: 4}\n")
    try:
        assert machine.kernel().workers == 2
    except SettingsError as error:
        refused = error
    else:
        return
    assert str(machine.other) in refused.where


@pytest.mark.parametrize(
    "value",
    ["9", "8.5", ".inf", ".nan", "'9'", "'1'", "true", "null", "[1]", "{a: 1}", "1e9", "many"],
)
@pytest.mark.parametrize("setting", ["workers", "time_limit"])
def test_a_workspace_never_raises_a_limit(machine: Machine, setting: str, value: str) -> None:
    machine.write(user=f"kernel: {{{setting}: 8}}\n", workspace=f"kernel:\n  {setting}: {value}\n")
    try:
        assert getattr(machine.kernel(), setting) <= 8
    except SettingsError as error:
        refused = error
    else:
        return
    assert f"{machine.workspace / '.toolkeel' / 'config.yaml'}:2: kernel.{setting}" in refused.where


class Words(BaseModel):
    words: list[str] = Field(default_factory=list, json_schema_extra=narrowing("extend"))


def test_a_workspace_only_adds_to_a_list(machine: Machine) -> None:
    machine.write(
        user="plugins: {a: {words: [a]}}\n",
        workspace="plugins: {a: {words: [b, a]}}\n",
        other="plugins: {a: {words: [c]}}",
    )
    assert machine.read().section("plugins.a", Words).words == ["a", "b", "c"]
    machine.write(workspace="plugins: {a: {words: []}}\n", other="plugins: {}\n")
    assert machine.read().section("plugins.a", Words).words == ["a"]


def test_a_workspace_disables_no_plugin_for_it_may_be_a_guard(machine: Machine) -> None:
    error = machine.write(workspace="kernel:\n  disable: [guard]\n").error()
    assert "a workspace file may not set this" in error.what
    assert error.where.endswith("config.yaml:2: kernel.disable")


@pytest.mark.parametrize("kind", ["pipe", "device", "large", "link out"])
def test_a_workspace_file_that_is_no_settings_file_is_refused_at_once(machine: Machine, kind: str) -> None:
    path = machine.workspace / ".toolkeel" / "config.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "large":
        path.write_text("kernel: {}\n" + "# much\n" * 100_000)
    else:
        (machine.home / "netrc").write_text("API_KEY: hunter2")
        path.symlink_to(machine.home / "netrc")
    error = machine.error()
    assert str(path) in error.where
    assert "API_KEY" not in str(error)


def test_an_unknown_key_of_a_workspace_file_is_told_with_file_and_line(machine: Machine) -> None:
    config = machine.write(workspace="# first\nkernl: {}\n").read()
    [fault] = config.unknown(["kernel"])
    assert fault.where.endswith(".toolkeel/config.yaml:2: kernl")


def test_three_mistakes_are_told_at_once(machine: Machine) -> None:
    text = str(machine.write(user="kernel:\n  workers: many\n  time_limt: 4\n").error())
    assert "config.yaml:2: kernel.workers: must be an integer" in text
    assert "config.yaml:3: kernel.time_limt: unknown setting" in text


@pytest.mark.parametrize(
    "text",
    [
        "threads: 1",
        "hook_time_limit: 1",
        "optional: [shell]",
        "only: [evil]",
        "enable: {evil: 'sha256:0'}",
        "priority: {evil: 0}",
        "prefer: {calc: evil}",
        "disable: all",
    ],
)
def test_a_workspace_sets_nothing_else_of_the_kernel(machine: Machine, text: str) -> None:
    error = machine.write(workspace=f"kernel:\n  {text}\n").error()
    assert f"{machine.workspace / '.toolkeel' / 'config.yaml'}:2: kernel.{text.partition(':')[0]}" in error.where
    assert "workspace file may" in error.what
    assert "~/.toolkeel/config.yaml" in error.remedy


def test_what_an_operator_sets_later_outranks_a_workspace(machine: Machine) -> None:
    machine.write(workspace="kernel: {workers: 2}\n")
    machine.environ["TOOLKEEL_KERNEL__WORKERS"] = "6"
    config = machine.read()
    assert config.section("kernel", KernelSettings).workers == 6
    assert config.origin("kernel", "workers").layer == "environment"


def test_a_plugins_field_says_itself_how_a_workspace_may_narrow_it(machine: Machine) -> None:
    machine.write(
        user="plugins: {t: {deny: [a]}}\n", workspace="plugins: {t: {sampling: 0.5, deny: [b], colour: red}}\n"
    )
    settings = machine.read().section("plugins.t", Tracing)
    assert (settings.sampling, settings.deny, settings.colour) == (0.5, ["a", "b"], "red")


@pytest.mark.parametrize(
    "text", ["token: tk_evil", "endpoint: {url: evil}", "more: [{url: evil}]", "maybe: {url: evil}", "sampling: 2"]
)
def test_a_plugins_field_that_says_nothing_is_closed_to_workspaces(machine: Machine, text: str) -> None:
    error = machine.write(workspace=f"plugins:\n  t:\n    {text}\n").error("plugins.t", Tracing)
    assert f"{machine.workspace / '.toolkeel' / 'config.yaml'}:3: plugins.t" in error.where


class Aliased(BaseModel):
    endpoint: str = Field("", alias="end-point")
    limit: int = Field(8, validation_alias="max-limit", json_schema_extra=narrowing("lower"))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    known: str = ""


class Both(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    limit: int = Field(8, alias="max-limit", json_schema_extra=narrowing("lower"))


@pytest.mark.parametrize(
    ("model", "user", "workspace"),
    [
        (Aliased, "{}", "{end-point: evil}"),
        (Aliased, "{}", "{endpoint: evil}"),
        (Aliased, "{max-limit: 2}", "{max-limit: 5}"),
        (Both, "{limit: 2}", "{max-limit: 5}"),
        (Both, "{max-limit: 2}", "{limit: 5}"),
        (Open, "{}", "{other: evil}"),
        (Open, "{other: good}", "{other: evil}"),
    ],
)
def test_no_second_name_of_a_setting_lets_a_workspace_in(
    machine: Machine, model: type[BaseModel], user: str, workspace: str
) -> None:
    machine.write(user=f"plugins: {{t: {user}}}\n", workspace=f"plugins: {{t: {workspace}}}\n")
    try:
        settings = machine.read().section("plugins.t", model)
    except SettingsError:
        return
    assert "evil" not in repr(settings)
    assert getattr(settings, "limit", 0) <= 2


@pytest.mark.parametrize("text", ["selector: evil", "spiller: evil", "workspaces: [/]"])
async def test_a_workspace_names_no_plugin_and_no_folder(machine: Machine, make_plugin: MakePlugin, text: str) -> None:
    machine.write(workspace=f"\n{text}\n")
    with pytest.raises(SettingsError) as caught:
        async with Kernel.open(machine.read(), plugins=[make_plugin(name="evil")], discover=False):
            pass
    assert f"{machine.workspace / '.toolkeel' / 'config.yaml'}:2: {text.partition(':')[0]}" in caught.value.where


# A plugin's section ------------------------------------------------------------------------------------------------


def with_settings(name: str, model: type[BaseModel] | None) -> tuple[ModuleType, list[Any]]:
    """A plugin with settings, and the list in which it keeps what it was given."""
    seen: list[Any] = []

    class Plugin:
        NAME = name
        Settings = model

        def __init__(self, context: Any) -> None:
            seen.append(context.settings)

        @hookimpl
        def register_tools(self) -> None: ...

    return Plugin, seen  # type: ignore[return-value]


async def test_a_plugins_settings_are_under_its_name_or_where_it_says(machine: Machine) -> None:
    class Rag(BaseModel):
        section: ClassVar[str] = "tools.rag"
        top_k: int = 10

    machine.write(user="plugins: {tracing: {colour: red}}\ntools: {rag: {top_k: 5}}\n")
    tracing, seen_tracing = with_settings("tracing", Tracing)
    rag, seen_rag = with_settings("rag", Rag)
    bare, seen_bare = with_settings("bare", None)
    async with Kernel.open(machine.read(), plugins=[tracing, rag, bare], discover=False) as kernel:
        assert {info.state for info in kernel.plugins.list()} == {"active"}
    assert seen_tracing[0].colour == "red"
    assert seen_rag[0].top_k == 5
    assert seen_bare == [None]


@pytest.mark.requirement("K5")
async def test_two_plugins_that_claim_one_section_are_a_conflict_that_names_both(machine: Machine) -> None:
    class Rag(BaseModel):
        section: ClassVar[str] = "tools.rag"

    first, _ = with_settings("first", Rag)
    second, _ = with_settings("second", Rag)
    async with Kernel.open(machine.read(), plugins=[second, first], discover=False) as kernel:
        infos = {info.name: info for info in kernel.plugins.list()}
    assert infos["first"].state == "active"
    assert (infos["second"].state, infos["second"].stage) == ("quarantined", "settings")
    for word in ("'first'", "'second'", "tools.rag"):
        assert word in infos["second"].reason
    assert "kernel.disable" in infos["second"].remedy


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{sampilng: 1}", "Did you mean 'plugins.tracing.sampling'"),
        ("{sampling: 7}", "less than or equal to 1"),
        (f"{{token: {SECRET}}}", "a token begins with tk_"),
        ("5", "must be a mapping"),
    ],
)
async def test_a_plugin_with_wrong_settings_is_quarantined_with_the_place(
    machine: Machine, text: str, says: str
) -> None:
    machine.write(user=f"plugins:\n  tracing: {text}\n")
    tracing, seen = with_settings("tracing", Tracing)
    other, _ = with_settings("other", Endpoint)
    async with Kernel.open(machine.read(), plugins=[tracing, other], discover=False) as kernel:
        infos = {info.name: info for info in kernel.plugins.list()}
    info = infos["tracing"]
    assert (info.state, info.stage, infos["other"].state) == ("quarantined", "settings", "active")
    assert says in f"{info.reason} {info.remedy}"
    assert f"{machine.home / 'config.yaml'}:2" in info.reason
    assert SECRET not in f"{info.reason} {info.remedy}"
    assert seen == []


@pytest.mark.requirement("K5")
async def test_settings_of_a_plugin_that_takes_none_are_its_fault_alone(machine: Machine) -> None:
    machine.write(user="plugins: {bare: {a: 1}}\n")
    bare, _ = with_settings("bare", None)
    async with Kernel.open(machine.read(), plugins=[bare], discover=False) as kernel:
        [info] = kernel.plugins.list()
    assert (info.state, info.stage) == ("quarantined", "settings")
    assert "plugins.bare" in info.reason
    assert info.remedy


def test_settings_are_read_without_the_yaml_library_until_there_is_a_file() -> None:
    code = "import sys; from toolkeel import Config; Config.of({}); print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
