"""The settings of the file tools, under ``plugins.files``."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from toolkeel import narrowing

Positive = Annotated[int, Field(ge=1)]
MIB = 1 << 20


class Settings(BaseModel):
    """What the file tools may touch and how much they do at once. Sizes are bytes, times seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protected: list[str] = Field(
        default_factory=list,
        description="Names that are neither read nor written, on top of the built-in ones; globs, compared folded",
        json_schema_extra=narrowing("extend"),
    )
    read_only: list[str] = Field(
        default_factory=list,
        description="Names that may be read but not written, on top of the built-in ones; globs, compared folded",
        json_schema_extra=narrowing("extend"),
    )
    unprotected: list[str] = Field(
        default=[".env.example", ".env.sample", ".env.template", ".env.dist"],
        description="Names that no list protects, neither the built-in ones nor those above; globs, compared folded",
    )
    skipped_folders: list[str] = Field(
        default=[
            "node_modules",
            "__pycache__",
            ".venv",
            "venv",
            ".tox",
            ".nox",
            "*_cache",
            ".hypothesis",
            ".hg",
            ".svn",
        ],
        description="Folders that listing and searching do not enter, unless they are asked for by path",
        json_schema_extra=narrowing("extend"),
    )
    read_bytes: Positive = Field(
        default=MIB,
        description="The most that one file_read answers",
        json_schema_extra=narrowing("lower"),
    )
    write_bytes: Positive = Field(
        default=16 * MIB,
        description="The most that one file_write takes",
        json_schema_extra=narrowing("lower"),
    )
    edit_bytes: Positive = Field(
        default=16 * MIB,
        description="The largest file that file_edit changes or file_write appends to",
        json_schema_extra=narrowing("lower"),
    )
    list_entries: Positive = Field(
        default=1_000,
        description="The most entries that one file_list answers",
        json_schema_extra=narrowing("lower"),
    )
    search_matches: Positive = Field(
        default=1_000,
        description="The most matches that one code_search answers",
        json_schema_extra=narrowing("lower"),
    )
    search_bytes: Positive = Field(
        default=1_024 * MIB,
        description="The most that one code_search reads",
        json_schema_extra=narrowing("lower"),
    )
    seconds: Annotated[float, Field(gt=0)] = Field(
        default=10,
        description="How long one call may go through files and folders",
        json_schema_extra=narrowing("lower"),
    )
