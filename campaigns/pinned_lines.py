"""Bounds with pinned lines beside the published ones: ``make campaign-pinned_lines``.

The shipped kernel under the paper's figures, one way of each first-level cache locked, one choice
of lines for all entries: by the worst paths after ``ATTEMPTS``, which make the choice the same each
time, and by the paper's rule. With ``ARGS=--write`` the table is replaced in ``docs/pinning.md``.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from functools import partial
from math import inf
from pathlib import Path

from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import KERNEL
from quoll.results.results_store import ResultsStore, begin_run
from tests.testing.harness import build
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.library import analysis_options
from wcet.pinning.bounds import EntryWithPins, PinnedBounds, PinnedEntry
from wcet.pinning.choice import choose
from wcet.pinning.first_touched import first_touched
from wcet.pinning.pins import NO_PINS

PUBLISHED = Path(__file__).with_name("papers.toml")
ATTEMPTS = 32  # of the choice: solutions of all integer programs
HEAD = (
    "entry", "without, cycles", "first touched", "gain", "worst paths", "gain",
    "published, µs", "gain",
)  # fmt: skip


def cycles(entries: Sequence[EntryWithPins]) -> dict[str, int]:
    """The bounds by entry."""
    return {entry.result.name: entry.result.cycles for entry in entries}


def gain(before: float, after: float) -> str:
    """The part by which a bound falls."""
    return f"{(before - after) / before:.0%}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs/pinning.md")
    arguments = parser.parse_args()
    kernel = build.kernel("kzm-after", *KERNEL)
    begin_run()
    options = analysis_options(("all",), "kzm-paper", (), {}, ResultsStore.of_user())
    run = AnalysisRun.begin(kernel, options, SilentStageLog())
    entries = tuple(PinnedEntry.of(run, name, at) for name, at in run.entries.items())
    bounds = PinnedBounds(run, entries, 1)
    unpinned = bounds.solved(NO_PINS)
    touched = cycles(first_touched(bounds, unpinned).entries)
    report = partial(print, "lines and sum of the bounds:", flush=True)
    chosen = choose(bounds, inf, report, unpinned, attempts=ATTEMPTS)
    before, best, rows = cycles(unpinned), cycles(chosen.entries), []
    for row in tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["pinned"]["rows"]:
        without, first, worst = (max(of[e] for e in row["ours"]) for of in (before, touched, best))
        own = (
            f"{without:,}",
            f"{first:,}",
            gain(without, first),
            f"{worst:,}",
            gain(without, worst),
        )
        old, pinned = row["microseconds"]
        rows.append((row["name"], *own, f"{old} → {pinned}", gain(old, pinned)))
    table = markdown(HEAD, rows)
    print(table, "complete" if chosen.complete else "the attempts were over")
    write(arguments, "pinning.md", {"pinned": table})
    return 0


if __name__ == "__main__":
    sys.exit(main())
