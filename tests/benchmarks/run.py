"""Measure toolkeel, and its peers beside it, and print the figures against their limits.

Usage: python tests/benchmarks/run.py [--rounds 7] [--peers FOLDER | --no-peers] [--quick] [--write FILE]

Every round runs ours and each peer in a fresh process, one after another, on the same machine, from compiled bytecode.
Nothing fails by the clock: a figure outside its limit is marked. A whole run writes the page docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import environments
import startup
from table import Row, Section, as_markdown, as_text, figure, paragraph

Samples = dict[str, list[tuple[float, float]]]
"""Figure → (seconds of processor time, seconds on the clock) of every block of every round."""

PEERS = ("fastmcp", "mcp", "langchain", "pydantic_ai", "openai_agents")
PAGE = environments.ROOT / "docs" / "benchmarks.md"


def main(arguments: list[str]) -> int:
    """Run everything; gives the exit code."""
    options = _options(arguments)
    if options.quick:
        options.rounds = 1
    before = environments.load()
    python = None if options.no_peers else environments.peers_python(options.peers)
    say("compiling bytecode")
    environments.compile_bytecode(sys.executable, environments.sources())
    if python is not None:
        environments.compile_bytecode(python)
    samples = measure(python, options.rounds, options.quick)
    sections = [
        calls(samples),
        workers(samples),
        registry(samples),
        starting(options.quick),
        peers(samples, python is not None),
        outputs(options.quick),
    ]
    sys.stdout.write(as_text(sections))
    page = options.write or (None if options.quick or options.no_peers else PAGE)
    if page is not None:
        page.write_text(whole_page(sections, options, python, before), encoding="utf-8")
        say(f"wrote {page.name}")
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="rounds of fresh processes (default: 7)")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--peers", type=Path, metavar="FOLDER", help="an environment that holds the peers already")
    group.add_argument("--no-peers", action="store_true", help="measure ours alone")
    parser.add_argument(
        "--quick", action="store_true", help="one short round: proves that everything runs, measures little"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there (default: docs/benchmarks.md)")
    return parser.parse_args(arguments)


def say(text: str) -> None:
    """Tell how far the run is."""
    sys.stderr.write(f"{text}\n")


def measure(python: Path | None, rounds: int, quick: bool) -> Samples:
    """Every round of ours and of each peer, interleaved."""
    samples: Samples = {}
    flags = ["--quick"] if quick else []
    commands: list[list[str | Path]] = [[sys.executable, "ours.py", *flags]]
    if python is not None:
        commands += [[python, "peers.py", peer, *flags] for peer in PEERS]
    for turn in range(1, rounds + 1):
        for command in commands:
            say(f"round {turn} of {rounds}: {' '.join(str(word) for word in command[1:])}")
            for name, blocks in json.loads(environments.run(command).stdout).items():
                samples.setdefault(name, []).extend((processor, wall) for processor, wall in blocks)
    return samples


# Ours --------------------------------------------------------------------------------------------------------------

MICRO, MILLI = ("µs", 1e6), ("ms", 1e3)


def calls(samples: Samples) -> Section:
    """Calls through every stage of the kernel."""
    text = (
        "Trivial async tools (`add(a: int, b: int)`), called through every stage: offered, arguments decoded from JSON "
        "and validated, planned, run in the pool under a time limit, rendered, recorded. The six plugins are two that "
        "decide, two that wrap each call, and two that observe each call's end, and do no work of their own. Processor "
        "time of the process; on a machine with nothing else to do it equals the clock's, which the notes give."
    )
    return Section(
        "Calls",
        text,
        [
            timed(samples, "one call, the kernel alone", "call_alone", MICRO, 30),
            timed(samples, "one call, with six plugins", "call_six", MICRO, 40),
            timed(samples, "one offer and one call", "offer_and_call", MICRO),
            timed(samples, "one call of a sync tool, in a worker thread", "call_in_thread", MICRO),
            timed(samples, "a batch of 8", "batch_8", MILLI, 0.3),
            timed(samples, "a batch of 8, with six plugins", "batch_8_six", MILLI),
            timed(samples, "1,000 calls in one batch", "many_trivial", MILLI, 20),
            timed(samples, "1,000 calls in one batch, with six plugins", "many_trivial_six", MILLI),
        ],
    )


def workers(samples: Samples) -> Section:
    """Calls that wait, on 8 workers."""
    text = (
        "Calls of a tool that sleeps for a millisecond, in one batch on 8 workers, against eight bare trio tasks that "
        "share as many sleeps, in turn in the same process. Time on the clock; what is left over a bare sleep is "
        "trio's and the machine's."
    )
    ours, bare = ([wall for _, wall in samples[name]] for name in ("naps", "naps_bare"))
    ratio = Row(
        "1,000 calls of 1 ms on 8 workers ÷ eight bare tasks",
        min(ours) / min(bare),
        "×",
        1.2,
        median=statistics.median(ours) / statistics.median(bare),
        note=f"{spent(min(ours))} against {spent(min(bare))}",
    )
    return Section("Waiting", text, [ratio])


def registry(samples: Samples) -> Section:
    """Many tools."""
    text = (
        "A thousand typed async functions with four parameters and a docstring, made into tools and registered for a "
        "new session of an open kernel; then the offer's list of them as JSON, the first time and again. Processor "
        "time."
    )
    return Section(
        "A thousand tools",
        text,
        [
            timed(samples, "1,000 typed tools made and registered", "register_many", MILLI, 100),
            timed(samples, "listed as JSON, the first time", "list_many", MILLI, 3),
            timed(samples, "listed as JSON, again", "list_many_again", MILLI, 3),
        ],
    )


def timed(
    samples: Samples, name: str, which: str, unit: tuple[str, float], limit: float | None = None, note: str = ""
) -> Row:
    """A row of processor time: the best of the blocks, their median, and the clock's best as a note."""
    word, factor = unit
    pairs = samples[which]
    wall = f"{figure(min(wall for _, wall in pairs) * factor, word)} on the clock"
    return Row(
        name,
        min(one for one, _ in pairs) * factor,
        word,
        limit,
        median=statistics.median(one for one, _ in pairs) * factor,
        note=f"{note}; {wall}" if note else wall,
    )


def starting(quick: bool) -> Section:
    """Importing, and the command line."""
    say("imports and the command line")
    text = (
        "Fresh processes, in turn; imports in processor time, medians, without the interpreter's own start. "
        "`import pydantic` loads little of pydantic; the second row is the engine against pydantic ready for use. "
        "`toolkeel tools` is the whole command on the clock. Heavy are SQL parsers, databases, template "
        "engines, indexes and HTTP clients."
    )
    with tempfile.TemporaryDirectory(prefix="toolkeel-benchmarks-") as folder:
        home = Path(folder)
        taken = startup.import_times(2 if quick else 21)
        processor, clock = startup.command_times(1 if quick else 11, home)
        imported, commanded = startup.heavy_in_import(home), startup.heavy_in_command(home)

    def ratio(name: str, ours: str, theirs: str, limit: float | None = None) -> Row:
        one, other = taken[ours], taken[theirs]
        note = f"{spent(one)} against {spent(other)}"
        return Row(name, one / other, "×", limit, note=note)

    rows = [
        ratio("`import toolkeel` ÷ `import trio, pydantic, pluggy`", startup.LIGHT, startup.FLOOR, 1.2),
        ratio("`from toolkeel import Kernel` ÷ trio, pluggy, pydantic's models", startup.ENGINE, startup.READY),
        Row(
            "`toolkeel tools`",
            min(clock),
            "s",
            0.5,
            median=statistics.median(clock),
            note=f"{figure(min(processor), 's')} of processor time",
        ),
        Row("heavy modules that `import toolkeel` imports", len(imported), "", 0, note=", ".join(imported)),
        Row("heavy modules that `toolkeel tools` imports", len(commanded), "", 0, note=", ".join(commanded)),
    ]
    return Section("Starting", text, rows)


def spent(seconds: float) -> str:
    """A time in the unit that suits it."""
    word, factor = MICRO if seconds < 1e-3 else MILLI
    return figure(seconds * factor, word)


# Peers -------------------------------------------------------------------------------------------------------------

COMPARED = (
    ("call_alone", "one call", (
        ("fastmcp", "FastMCP `server.call_tool`", 8.0),
        ("mcp", "mcp `MCPServer.call_tool`", None),
        ("langchain", "LangChain `tool.ainvoke`", None),
        ("langgraph", "LangGraph `ToolNode`, one call", None),
        ("pydantic_ai", "pydantic-ai, one call more in a run", None),
        ("openai_agents", "OpenAI agents `Runner`, one call more in a run", None),
        ("openai_agents_raw", "OpenAI agents `on_invoke_tool`: raw invocation", None),
        ("fastmcp_client", "FastMCP `Client` in memory", None),
        ("mcp_client", "mcp `Client` in memory", None),
    )),
    ("batch_8", "eight calls of one response", (
        ("fastmcp_8", "FastMCP `server.call_tool`, gathered", None),
        ("mcp_8", "mcp `MCPServer.call_tool`, gathered", None),
        ("langgraph_8", "LangGraph `ToolNode`", None),
        ("pydantic_ai_8", "pydantic-ai, eight calls more in a run", None),
        ("openai_agents_8", "OpenAI agents `Runner`, eight calls more in a run", None),
        ("openai_agents_raw_8", "OpenAI agents `on_invoke_tool`, gathered", None),
    )),
    ("many_trivial", "1,000 calls at once", (
        ("fastmcp_many", "FastMCP `server.call_tool`, gathered", None),
        ("mcp_many", "mcp `MCPServer.call_tool`, gathered", None),
        ("langgraph_many", "LangGraph `ToolNode`", None),
        ("openai_agents_raw_many", "OpenAI agents `on_invoke_tool`, gathered", None),
    )),
)  # fmt: skip
"""Our figure, what it is, and the peers' figures that are of the same kind, with their limits."""


def peers(samples: Samples, measured: bool) -> Section:
    """The peers' figures as multiples of ours."""
    rows = [
        compared(samples, f"{what}: {name}", ours, peer, limit, measured)
        for ours, what, others in COMPARED
        for peer, name, limit in others
    ]
    slower = [row.name for row in rows if row.value is not None and row.value < 1]
    text = (
        "How many times as long a peer takes as toolkeel, in the same run, in processor time: the best blocks "
        "compared, and the medians. The same tool, async and typed; each peer gets arguments "
        "in the form it takes (JSON text for toolkeel and the OpenAI agents SDK, a decoded mapping for the others). "
        "toolkeel's figure holds every stage of a call; the nearest to it are `ToolNode` and the agents' runs, which "
        "look a tool up, validate, run, catch and answer. A run of an agent also has a cost of its own, so its figure "
        "is what further calls add. A server's `call_tool` validates and runs; raw invocation only calls a function "
        "whose arguments were validated: no pool, no time limit, no record, no refusal. Where a figure is under 1, "
        "toolkeel is the slower one" + (f"; in this run: {'; '.join(slower)}." if slower else ".")
    )
    return Section("Peers", text, rows)


def compared(samples: Samples, name: str, ours: str, peer: str, limit: float | None, measured: bool) -> Row:
    """One peer's figure over ours."""
    if not measured:
        return Row(name, None, "×", limit, "at least", note="the peers were not run")
    mine = [processor for processor, _ in samples[ours]]
    other = [processor for processor, _ in samples[peer]]
    return Row(
        name,
        min(other) / min(mine),
        "×",
        limit,
        "at least",
        statistics.median(other) / statistics.median(mine),
        f"{spent(min(other))} against {spent(min(mine))}",
    )


# Large outputs -----------------------------------------------------------------------------------------------------


def outputs(quick: bool) -> Section:
    """What outputs.py measures: a name, a value, and its unit with the limit."""
    say("large outputs")
    code = "import json, outputs; print(json.dumps(outputs.rows()))"
    command = [sys.executable, "-c", code, *(["--quick"] if quick else [])]
    found = json.loads(environments.run(command).stdout)
    rows: list[Row] = []
    for name, value, described in found:
        unit, _, limit = str(described).partition(", at most ")
        rows.append(Row(name, value, unit, float(limit) if limit else None))
    text = (
        "Results of 100 MB each (a JSON array, JSON lines, one line of words, short lines) called through the kernel "
        "with the outputs plugin, stored whole and previewed; then read in parts through `read_output`. Time on the "
        "clock, best of five. The loop's longest stall is that of a ticker of 1 ms beside the call, the worst of five: "
        "on a busy machine it also shows other processes."
    )
    return Section("Large outputs", text, rows)


# The page ----------------------------------------------------------------------------------------------------------


def whole_page(sections: list[Section], options: argparse.Namespace, python: Path | None, before: float) -> str:
    """The page docs/benchmarks.md."""
    command = [".venv/bin/python", "tests/benchmarks/run.py", "--rounds", str(options.rounds)]
    command += ["--quick"] if options.quick else []
    command += ["--no-peers"] if python is None else []
    versions = environments.our_versions()
    others = environments.peer_versions(python) if python is not None else {}

    def listed(names: dict[str, str]) -> str:
        return ", ".join(f"{name} {version}" for name, version in names.items())

    held = [row.holds for section in sections for row in section.rows if row.limit is not None]
    lines = [
        "<!-- Written by tests/benchmarks/run.py. Run it again instead of editing. -->",
        "",
        "# Benchmarks",
        "",
        paragraph(
            "toolkeel and its peers, measured side by side in one run on one machine. Each round is a fresh "
            "process and measures in blocks of runs; values are the best block of all rounds, beside the median. A "
            "limit is a promise: ✓ says that this run kept it, ✗ that it did not. This run kept "
            f"{held.count(True)} of {len(held)}."
        ),
        "",
        "| | |",
        "|---|---|",
        f"| command | `{shlex.join(command)}` |",
        f"| machine | {environments.machine()} |",
        f"| load before and after | {before:.1f} and {environments.load():.1f}; what else runs on a machine disturbs |",
        f"| when | {datetime.now(UTC):%Y-%m-%d} |",
        f"| rounds | {options.rounds}, ours and each peer in fresh processes in turn, from compiled bytecode |",
        f"| Python | {sys.version.split()[0]} |",
        f"| toolkeel and what it stands on | {listed(versions)} |",
    ]
    if others:
        lines.append(f"| peers | {listed(others)} |")
    return "\n".join([*lines, "", as_markdown(sections).rstrip(), ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
