"""Random C programs against their bounds, on all processors: ``make soundness``.

Each program is compiled for one of two cores, in ARM or Thumb state, at one of six levels; analysed
without facts; run on random inputs, and each run replayed on the concrete machine from random
states. One that the analysis refuses counts as not bounded. Results are stored, so that a campaign
that was stopped goes on where it ended; with ``--minutes`` it ends by itself, and the table has the
programs until then. Prints a table by core and state; exits with status 1 if an execution took
longer than its bound or the charge of its path, or left the graph. ``--write`` puts the table into
docs/results/validation.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import median, quantiles
from time import monotonic
from typing import Any

from campaigns.documented import markdown, replace
from quoll.errors import ControlFlowError, UnboundedLoop
from quoll.recordings.follow import MissingEdge
from tests.testing.harness import build
from tests.testing.wcet.programs import bound, check, program
from wcet.sweep.cluster import Outcome, ResultFolder, run_tasks
from wcet.sweep.task import Json, Task

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Og")
CORES = (("kzm", "arm1136jf-s"), ("cubieboard", "cortex-a8"))
BUILDS = [(*core, thumb, level) for level in LEVELS for core in CORES for thumb in (False, True)]
TOGETHER = 48  # programs between two looks at the time
HEAD = (
    "core, state", "programs", "bounded", "executions", "exceeded",
    "bound/seen: least, median, 90 %", "charge/seen: least, median, 90 %",
)  # fmt: skip


def examine(argument: Mapping[str, Any]) -> Json:
    """One program, in a worker: bound, charge and most cycles seen of each input."""
    seed = argument["seed"]
    platform, cpu, thumb, level = BUILDS[seed % len(BUILDS)]
    elf = program(seed, level, cpu, thumb=thumb)
    try:
        result = bound(elf, platform)
    except (UnboundedLoop, ControlFlowError):
        return {"cases": [], "fault": None}
    try:
        cases = check(result, seed, argument["inputs"], argument["states"])
    except (AssertionError, MissingEdge) as error:
        return {"cases": [], "fault": str(error)}
    return {"cases": [[c.bound, c.charged, c.most] for c in cases], "fault": None}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--inputs", type=int, default=4, help="runs of a program")
    parser.add_argument("--states", type=int, default=50, help="replays of a run")
    parser.add_argument("--scheduler", help="of a Dask cluster (default: this machine)")
    parser.add_argument("--workers", type=int, help="processes of this machine (default: all)")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no programs after them")
    parser.add_argument("--write", action="store_true", help="into docs/results/validation.md")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.programs)
    name = "campaigns.soundness:examine"  # also where this module is the main one
    tasks = [
        Task(str(s), name, {"seed": s, "inputs": options.inputs, "states": options.states})
        for s in seeds
    ]
    folder = ResultFolder(Path(build.ROOT, "build/soundness"))
    report, outcomes, end = (
        progress(len(tasks)),
        list[Outcome](),
        monotonic() + 60 * options.minutes,
    )
    together = len(tasks) if options.minutes == inf else TOGETHER
    while len(outcomes) < len(tasks) and monotonic() < end:
        some = tasks[len(outcomes) : len(outcomes) + together]
        outcomes += run_tasks(
            some, folder, report, scheduler=options.scheduler, workers=options.workers
        )
    seeds = seeds[: len(outcomes)]
    faults = [
        f"seed {seed}, {' '.join(map(str, BUILDS[seed % len(BUILDS)]))}: {text}"
        for seed, outcome in zip(seeds, outcomes, strict=True)
        if (text := outcome.failure or outcome.result["fault"])
    ]
    table = markdown(HEAD, rows(list(seeds), outcomes))
    print(table, *faults, sep="\n")
    if options.write:
        few = f"{options.inputs} inputs, {options.states} states of each, seeds from {seeds[0]}:"
        replace("results/validation.md", "soundness", f"{few}\n\n{table}")
    return int(bool(faults))


def progress(total: int) -> Any:
    """A report of each hundredth task that ends."""
    ended = 0

    def report(task: Task, outcome: Outcome, dashboard: str) -> None:
        nonlocal ended
        ended += 1
        if ended % 100 == 0:
            print(f"{ended} of at most {total}", file=sys.stderr, flush=True)

    return report


def rows(seeds: Sequence[int], outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """A row for each core and state that has programs."""
    found = []
    for platform, cpu in CORES:
        for thumb in (False, True):
            own = [
                outcome
                for seed, outcome in zip(seeds, outcomes, strict=True)
                if BUILDS[seed % len(BUILDS)][:3] == (platform, cpu, thumb)
            ]
            if own:
                found.append(row(f"{cpu}, {'Thumb' if thumb else 'ARM'}", own))
    return found


def row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The figures of one core and state."""
    results = [outcome.result for outcome in outcomes if outcome.failure is None]
    cases = [case for result in results for case in result["cases"]]
    return (
        name,
        f"{len(outcomes):,}",
        f"{sum(bool(result['cases']) for result in results):,}",
        f"{len(cases):,}",
        f"{len(outcomes) - len(results) + sum(r['fault'] is not None for r in results):,}",
        spread([bound / most for bound, _, most in cases]),
        spread([charged / most for _, charged, most in cases]),
    )


def spread(ratios: Sequence[float]) -> str:
    """The least, the median, and the last decile."""
    if len(ratios) < 2:
        return ""
    return f"{min(ratios):.3f}, {median(ratios):.2f}, {quantiles(ratios, n=10)[-1]:.2f}"


if __name__ == "__main__":
    sys.exit(main())
