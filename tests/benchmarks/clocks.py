"""How a round measures: in blocks of runs, on the processor's clock and on the wall's.

Imported by ours.py and peers.py, each in a process and an environment of its own, so it imports nothing but the
standard library, and awaits on whatever loop runs.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

QUICK = "--quick" in sys.argv
BLOCKS, CALLS, PAIRS = (2, 8, 1) if QUICK else (30, 100, 5)
MANY = 1_000

Taken = tuple[float, float]
"""Seconds of processor time of the whole process, and of the clock on the wall."""
Figures = dict[str, list[Taken]]
"""What one run took in each block of each figure."""


async def timed(work: Callable[[], Awaitable[object]], runs: int = 1) -> Taken:
    """What one run of ``work`` takes, as the mean of so many in a row."""
    processor, wall = time.process_time(), time.perf_counter()
    for _ in range(runs):
        await work()
    return (time.process_time() - processor) / runs, (time.perf_counter() - wall) / runs


async def per_run(work: Callable[[], Awaitable[object]], runs: int, blocks: int = BLOCKS) -> list[Taken]:
    """What one run of ``work`` takes, in blocks of so many runs, after one block to warm up."""
    gc.collect()
    await timed(work, runs)
    return [await timed(work, runs) for _ in range(blocks)]


def middle(taken: Sequence[Taken]) -> Taken:
    """The median of each clock."""
    return statistics.median(one for one, _ in taken), statistics.median(one for _, one in taken)
