"""Time of the analysis, its loops, and the gain of preemption points, beside published figures.

``make campaign-analysis_effort ARGS=--write`` analyses the shipped kernel without stored results,
under the figures of the papers, and replaces two tables in ``docs/results/papers.md``. The gain is
computed from the tables of that page, which ``campaigns.papers`` writes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import KERNEL
from campaigns.papers import published
from campaigns.tables import all_tables, number
from tests.testing.harness import build
from wcet.analysis.analysis import analyse
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.request import add_analysis, requested

__all__ = ["effort", "factors", "main"]

PLATFORM = "kzm-paper"
PUBLISHED = ("seL4", "65 min", "", "some", "the others", "EuroSys 2012, sections 5.1, 5.3 and 6.3")


def proved_and_stated(result: AnalysisResult) -> tuple[int, int]:
    """The loops of all entries whose bounds are proved, and those with a bound from a fact."""
    methods: dict[int, set[str]] = {}
    for entry in result.entries.values():
        for bound in entry.bounds:
            header = entry.graph.nodes[entry.graph.loops[bound.loop].header].block.addr
            methods.setdefault(header, set()).add(bound.method)
    stated = sum("fact" in found for found in methods.values())
    return len(methods) - stated, stated


def effort() -> str:
    """The table of times and loops: ours, measured now, and the published figures."""
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    options = requested(parser.parse_args([f"--platform={PLATFORM}", "--no-cache"]), [])
    wall, before = time.monotonic(), os.times()
    result = analyse(build.kernel("kzm-after", *KERNEL), options, StageLog(verbose=False))
    wall, after = time.monotonic() - wall, os.times()
    used = sum(after[:4]) - sum(before[:4])
    proved, stated = proved_and_stated(result)
    ours = ("bilby, `after`", f"{wall:,.1f} s", f"{used:,.1f} s", str(proved), str(stated),
            f"`{PLATFORM}`, all entries, nothing stored")  # fmt: skip
    head = ("kernel", "analysis", "processor time", "loops bounded by the analysis", "by people",
            "source")  # fmt: skip
    return markdown(head, (PUBLISHED, ours))


def factors(rows: Sequence[Sequence[str]]) -> str:
    """Bounds before over after, from the documented table of entries; sums are the latency."""
    head = ("bound", "seL4: before, µs", "after", "factor", "bilby: before, µs", "after", "factor")
    found, sums = [], [0.0] * 4
    for entry, row in zip(published().entries, rows, strict=True):
        assert row[0] == entry.name
        cells = [number(cell) or 0.0 for cell in row[1:5]]
        values = [cells[0], cells[2], cells[1], cells[3]]
        if entry.name in ("system call", "interrupt"):
            sums = [a + b for a, b in zip(sums, values, strict=True)]
        found.append(_with_factors(entry.name, values))
    return markdown(head, (*found, _with_factors("latency: system call and interrupt", sums)))


def _with_factors(name: str, values: Sequence[float]) -> tuple[str, ...]:
    cells = [name]
    for before, after in (values[:2], values[2:]):
        cells += [f"{before:,.1f}", f"{after:,.1f}", f"{before / after:.1f}"]
    return tuple(cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs/results/papers.md")
    options = parser.parse_args()
    tables = {
        "analysis effort": effort(),
        "factors": factors(all_tables()["papers-papers-1"].rows),
    }
    print(*tables.values(), sep="\n")
    write(options, "results/papers.md", tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
