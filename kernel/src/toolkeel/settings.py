"""The kernel's own settings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Narrowing = Literal["lower", "extend", "any"]


def narrowing(how: Narrowing) -> dict[str, Any]:
    """Let a field be set in a workspace file: ``Field(5, json_schema_extra=narrowing("lower"))``.

    ``lower``: only a lower number. ``extend``: only further entries of a list. ``any``: whatever the value, it cannot
    widen anything. A field without it cannot be set by a checked-out folder.
    """
    return {"workspace": how}


class KernelSettings(BaseModel):
    """The kernel's own settings, under ``kernel:``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: Annotated[int, Field(ge=1, le=256)] = Field(
        8, description="Calls that run at once", json_schema_extra=narrowing("lower")
    )
    waiting: Annotated[int, Field(ge=1, le=100_000)] = Field(
        64,
        description="Batches that wait for a slot; further callers wait at the door",
        json_schema_extra=narrowing("lower"),
    )
    threads: Annotated[int, Field(ge=1, le=1_000)] = Field(
        32, description="Worker threads for sync tools; a thread that never returns keeps its place"
    )
    time_limit: Annotated[float, Field(gt=0)] = Field(
        60, description="Seconds of running time of a call whose tool sets none", json_schema_extra=narrowing("lower")
    )
    hook_time_limit: Annotated[float, Field(gt=0)] = Field(
        5, description="Seconds for one async hook implementation: a decider that takes longer refuses"
    )
    ask_time_limit: Annotated[float, Field(gt=0)] = Field(
        300, description="Seconds that an ask waits for a person", json_schema_extra=narrowing("lower")
    )
    register_time_limit: Annotated[float, Field(gt=0)] = Field(
        10, description="Seconds for one plugin's import, start and each register hook; longer is a quarantine"
    )
    stop_time_limit: Annotated[float, Field(gt=0)] = Field(
        10, description="Seconds that a stopping plugin waits for its last call, and then for its own stop"
    )
    max_result_chars: Annotated[int, Field(ge=200)] = Field(
        8_000, description="Results over so many characters are spilled", json_schema_extra=narrowing("lower")
    )
    tool_limit: Annotated[int, Field(ge=1)] = Field(
        128, description="Tools offered at most, whatever a selector says", json_schema_extra=narrowing("lower")
    )
    max_nesting: Annotated[int, Field(ge=0)] = Field(
        8, description="How deep calls may call further tools", json_schema_extra=narrowing("lower")
    )
    event_queue: Annotated[int, Field(ge=8)] = Field(
        1_024, description="Events that wait for observers; while it is full no call starts"
    )
    optional: list[str] = Field(
        default_factory=list, description="Optional tools to offer: names, plugins or group:NAME, globs allowed"
    )
    disable: list[str] = Field(default_factory=list, description="Plugins that are not loaded")
    require: list[str] = Field(
        default_factory=list,
        description="Plugins, such as guards, without which nothing is offered and no call runs",
    )
    only: list[str] | None = Field(None, description="Load only these plugins")
    enable: dict[str, str] = Field(
        default_factory=dict, description="Manifest folders to run: id to content hash (sha256:…)"
    )
    priority: dict[str, int] = Field(default_factory=dict, description="A plugin's priority, in place of its own")
    prefer: dict[str, str] = Field(
        default_factory=dict, description="Which plugin's tool is taken where two have one name: tool to plugin"
    )
