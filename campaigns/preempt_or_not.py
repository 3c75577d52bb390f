"""To preempt or not: longest stretch and delivery by preset: ``make campaign-preempt_or_not``.

Blackham, Tang and Heiser, "To preempt or not to preempt, that is the question" (2012), table 1: the
longest region with interrupts masked and the delivery that follows, for an improved seL4 that is
pinned in the level-2 cache, and for parts of QNX. The table has the same sums of bounds for the
presets of the shipped kernel, ``before`` at the fixed sizes of ``docs/ilp.md``, and the longest
masked region of the system call by ``wcet masked``, whose loops are all bounded. With
``ARGS=--write`` it is replaced in ``docs/results/bounds.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import INLINED, KERNEL, sizes
from quoll.processes.parallel_map import parallel_map
from tests.testing.harness import build
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import StageLog
from wcet.latency.view import LatencyView, latency_view
from wcet.masked.masked_entries import masked
from wcet.request import add_analysis, requested

KERNELS = build.ROOT / "build/bilby"
LOCKED = "platform-paper.toml"  # beside a kernel that locks lines
# kernel -> its build, and other files of it
BUILDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "`before`, at the fixed sizes": ("kzm-before", ()),
    "`after`": ("kzm-after", ()),
    "`mcs`": ("kzm-mcs", ()),
    "`latency`": ("kzm-latency", ()),
    "`latency`, lines locked in L1": ("kzm-latency-l1", (LOCKED,)),
    "`latency`, locked in L2, lines in L1": ("kzm-latency-l2", (LOCKED,)),
}
HEAD = (
    *("kernel", "longest stretch", "its operation", "without it"),
    *("masked region of the system call", "delivery", "latency", "µs"),
)
PUBLISHED = (
    ("seL4, improved (published)", "~ 22,000", "", "", "", "~ 10,000", "~ 32,000", "60"),
    ("QNX, fully preemptible (published)", "> 4,441", "", "", "", "> 17,413", "> 21,854", "> 41"),
)


def options_of(kernel: str, entries: Sequence[str] = ()) -> AnalysisOptions:
    """For a kernel and its entries (all if none); the platform file beside it has locked lines."""
    board = KERNELS / kernel / LOCKED
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    preset = kernel.split("-")[1]
    arguments = [f"--platform={board if board.exists() else 'kzm-paper'}"]
    arguments += INLINED.get(preset, ())
    if preset == "before":
        arguments += [f"--set={name}={value}" for name, value in sizes().items()]
    return requested(parser.parse_args(arguments), entries)


def viewed(kernel: str) -> LatencyView:
    """The longest stretch of a kernel."""
    elf = KERNELS / kernel / "kernel.elf"
    return latency_view(elf, options_of(kernel), StageLog(verbose=False), 1)


def longest_region(kernel: str) -> int:
    """Cycles of the longest masked region of the system call; ValueError if one has no bound."""
    elf, options = KERNELS / kernel / "kernel.elf", options_of(kernel, ["syscall"])
    found = masked(elf, options, StageLog(verbose=False), None)
    if found.missing:
        raise ValueError(f"{kernel}: {found.missing[0].reasons}")
    return found.regions[0].cycles


def row(name: str, view: LatencyView, region: int) -> tuple[str, ...]:
    """The bounds of a preset in cycles; its latency in microseconds, too."""
    result, (longest,) = view.result, view.stretches
    latency, operation = result.latency, longest.stretch.operation
    assert latency is not None, "every entry has a number"
    assert operation is not None, "counts are known"
    assert longest.remaining is not None, "there are other stretches"
    return (
        name,
        f"{latency.longest_cycles:,}",
        f"`{result.function(operation.functions[-1])}`, {operation.cycles:,}",
        f"{longest.remaining.cycles:,}",
        f"{region:,}",
        f"{latency.interrupt_cycles:,}",
        f"{latency.cycles:,}",
        f"{result.microseconds(latency.cycles):,.1f}",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs/results/bounds.md")
    options = parser.parse_args()
    for kernel, files in BUILDS.values():
        build.kernel(kernel, *KERNEL, *files)
    kernels = [(name, kernel) for name, (kernel, _) in BUILDS.items()]

    def one(index: int) -> tuple[str, ...]:
        name, kernel = kernels[index]
        found = row(name, viewed(kernel), longest_region(kernel))
        print(*found, sep=" | ", flush=True)
        return found

    rows = parallel_map(one, [1] * len(kernels), 2)
    table = markdown(HEAD, (*rows, *PUBLISHED))
    print(table)
    write(options, "results/bounds.md", {"preempt or not": table})
    return 0


if __name__ == "__main__":
    sys.exit(main())
