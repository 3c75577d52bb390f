"""Bounds of the kernel by entry, preset and platform: ``make campaign-kernel_bounds``.

Level-2 cache off, no constraints. The bound of the preset ``before`` is a function of the
parameters in ``docs/ilp.md``, and a number at the values there; for each parameter alone, the
campaign computes the value at which the system call takes 11.6 times as long as in ``after``. With
``ARGS=--write`` the tables in ``docs/results/bounds.md`` are replaced. Ends with status 1 if the
preset ``after`` depends on a name.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass

from campaigns.documented import add_write, write
from ilp.parametric import ParametricBound
from tests.testing.harness import build
from wcet.analysis.analysis import analyse
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.request import add_analysis, requested

KERNELS = build.ROOT / "build/bilby"
SIZES = build.ROOT / "docs/ilp.md"
PLATFORMS = ("kzm-paper", "kzm")
PRESETS = ("before", "after", "latency")
ENTRIES = ("syscall", "undefined", "prefetch-abort", "data-abort", "interrupt")
FACTOR = 11.6  # of the paper, system call
KERNEL = ("kernel.elf", "kernel.facts")  # the files of a build that an analysis reads
# Options by preset: these kernels have enough contexts for function summaries, with which no path
# has a charge of its own.
INLINED = {"mcs": ("--share=never",)}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Cycles of each entry, and of a path from arrival to delivery of an interrupt."""

    entries: dict[str, int]
    functions: dict[str, ParametricBound]  # of the entries that depend on names
    latency: int
    start: str  # start of the longest masked path


def sizes() -> dict[str, int]:
    """The fixed value of each name."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", SIZES.read_text(encoding="utf-8"), re.M)
    return {name: int(value) for name, value in rows}


def analysis(
    board: str, platform: str, preset: str, values: dict[str, int], l2: str = "off"
) -> AnalysisResult:
    """All entries; ``l2``: the level-2 cache, ``off`` or ``on``."""
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    arguments = [f"--platform={platform}", f"--l2={l2}", *INLINED.get(preset, ())]
    arguments += [f"--set={name}={value}" for name, value in values.items()]
    options = requested(parser.parse_args(arguments), [])
    kernel = KERNELS / f"{board}-{preset}" / "kernel.elf"
    return analyse(kernel, options, StageLog(verbose=False))


def bounds(platform: str, preset: str, values: dict[str, int], l2: str = "off") -> Bounds:
    """One analysis of all entries on KZM."""
    found = analysis("kzm", platform, preset, values, l2)
    entries = {name: found.entries[name].cycles for name in ENTRIES}
    functions = {
        name: entry.parametric
        for name, entry in found.entries.items()
        if entry.parametric is not None
    }
    start = found.entries["syscall"].starts[0].place
    at = "its entry" if start is None else found.image.place(start)
    latency = max(entries.values()) + entries["interrupt"]
    return Bounds(entries, functions, latency, at)


def tables(platform: str) -> tuple[list[str], bool]:
    """The tables of one platform, and whether ``after`` is independent of parameters."""
    fixed = bounds(platform, "before", sizes())
    function = bounds(platform, "before", {}).functions
    after, latency = (bounds(platform, preset, {}) for preset in PRESETS[1:])
    rows = [
        f"### {platform}",
        "",
        "| entry | `before` | at the fixed sizes | `after` | factor | `latency` |",
        "|---|---|---|---|---|---|",
    ]
    for name in ENTRIES:
        at, now = fixed.entries[name], after.entries[name]
        text = str(function[name]).replace("cycles <= ", "").replace("cycles = ", "")
        rows.append(
            f"| {name} | {text} | {at:,} | {now:,} | {at / now:.1f} | {latency.entries[name]:,} |"
        )
    rows += [
        f"| interrupt latency | | {fixed.latency:,} | {after.latency:,} "
        f"| {fixed.latency / after.latency:.1f} | {latency.latency:,} |",
        "",
        f"Longest masked path: `after` from {after.start}, `latency` from {latency.start}.",
        f"At 532 MHz the latencies are {after.latency / 532:.1f} µs (`after`) and "
        f"{latency.latency / 532:.1f} µs (`latency`).",
        "",
        f"The system call is {FACTOR} times as long as in `after`, if the other names are 0, at "
        + "; ".join(thresholds(function["syscall"], after.entries["syscall"]))
        + ".",
        "",
    ]
    return rows, not after.functions


def thresholds(function: ParametricBound, after: int) -> list[str]:
    """The value of each name alone at which its function reaches the factor."""
    affine = function.pieces[-1]
    missing = FACTOR * after - affine.constant
    return [
        f"{missing / slope:,.1f} {name}"
        for name, slope in zip(function.names, affine.slopes, strict=True)
        if slope
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs/results/bounds.md")
    parser.add_argument("--platform", choices=PLATFORMS, action="append")
    options = parser.parse_args()
    for preset in PRESETS:
        build.kernel(f"kzm-{preset}", *KERNEL)
    lines, independent = [], True
    for platform in options.platform or PLATFORMS:
        rows, none = tables(platform)
        print("\n".join(rows), flush=True)
        lines += rows
        independent &= none
    write(options, "results/bounds.md", {"bounds": "\n".join(lines)})
    return 0 if independent else 1


if __name__ == "__main__":
    sys.exit(main())
