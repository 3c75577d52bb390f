"""Bounds and executions with branch prediction: ``make campaign-predicted_branches ARGS=--write``.

The shipped kernel under ``kzm`` and two platforms that differ from it in the predictor only:
``kzm-predictor`` without the return stack, ``kzm-returns`` with it. The recorded path of each entry
that takes most without a predictor is replayed with and without it from the same numbers of random
states: caches, pending accesses, histories of the kernel's branches and of others, and any return
stack. A long path has fewer states: the machine with a predictor takes 20 µs an instruction.
Figure 9 of EuroSys 2012 compares measurements so.

With ``--write`` the tables in ``docs/results/observed.md`` are replaced. Exits with status 1 if an
execution takes longer than its bound, or than the charge of its path.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import KERNEL, analysis
from campaigns.observed import charge, recorded
from pipeline.native import Instructions
from quoll.recordings.trace import Execution
from tests.testing.harness import build
from wcet.analysis.result import AnalysisResult
from wcet.executions.path_replay import (
    ReplayPath,
    ReplaySubject,
    initial,
    nominal_core,
    replay,
    takes_exception,
)
from wcet.executions.recorded_paths import RecordedPath, cut

__all__ = ["Replayed", "main"]

TABLES = {"kzm-predictor": "predicted branches", "kzm-returns": "predicted returns"}
FEW, SEED = 3, 2026
MOST = 3_000_000  # instructions of a path, over all states


@dataclass(frozen=True, slots=True)
class Replayed:
    """An entry under one platform: its bound, and the most and the mean observed cycles.

    ``states``: the number of states that its path was replayed from.
    """

    states: int
    bound: int
    most: int
    mean: float
    exceeded: bool


def cycles(subject: ReplaySubject, path: RecordedPath, number: int, states: int) -> list[int]:
    """Cycles of a path from each of ``states`` random states."""
    steps = ReplayPath.of(path.paths.graph, path.visits)
    exception, aligned = takes_exception(subject, path), subject.platform.hierarchy.aligned
    known = Instructions(nominal_core(subject.platform.timing), aligned=aligned)
    found = []
    for state in range(states):
        machine, executed, _ = initial(subject, steps, path, number, state, SEED)
        found.append(replay(machine, executed, exception=exception, instructions=known))
    return found


def longest(subject: ReplaySubject, recordings: Sequence[Sequence[Execution]]) -> int:
    """The recorded path that takes most, by number."""
    paths = cut(subject.paths, subject.image, recordings, subject.width)
    few = [max(cycles(subject, path, number, FEW)) for number, path in enumerate(paths)]
    return max(range(len(paths)), key=few.__getitem__)


def replayed(
    subject: ReplaySubject,
    bound: int,
    recordings: Sequence[Sequence[Execution]],
    number: int,
    states: int,
) -> Replayed:
    """A recorded path, from at most ``states`` states."""
    path = cut(subject.paths, subject.image, recordings, subject.width)[number]
    insns = len(ReplayPath.of(path.paths.graph, path.visits).insns)
    found = cycles(subject, path, number, min(states, MOST // insns))
    most = min(bound, charge(path)) if path.complete else bound
    return Replayed(len(found), bound, max(found), sum(found) / len(found), max(found) > most)


def subject_of(result: AnalysisResult, name: str) -> ReplaySubject:
    return ReplaySubject(name, result.entries[name].paths, result.image, result.platform)


def table(found: dict[str, tuple[Replayed, Replayed]]) -> str:
    """Without and with the predictor, and the ratios."""
    head = (
        "entry", "states", "bound: off", "on", "on / off", "most observed: off", "on", "on / off",
        "mean observed: on / off",
    )  # fmt: skip
    return markdown(
        head,
        [
            (name, f"{on.states:,}",
             f"{off.bound:,}", f"{on.bound:,}", f"{on.bound / off.bound:.2f}",
             f"{off.most:,}", f"{on.most:,}", f"{on.most / off.most:.2f}",
             f"{on.mean / off.mean:.2f}")
            for name, (off, on) in found.items()
        ],
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=1000, help="at most, of each path")
    add_write(parser, "docs/results/observed.md")
    options = parser.parse_args()
    build.kernel("kzm-after", *KERNEL)
    recordings = recorded("kzm-after")
    off = analysis("kzm", "kzm", "after", {})
    without = {}
    chosen = {}
    for name, entry in off.entries.items():
        if entry.address in recordings:
            paths, subject = recordings[entry.address], subject_of(off, name)
            chosen[name] = longest(subject, paths)
            without[name] = replayed(subject, entry.cycles, paths, chosen[name], options.states)
    exceeded = any(one.exceeded for one in without.values())
    for platform, title in TABLES.items():
        on, found = analysis("kzm", platform, "after", {}), {}
        for name, one in without.items():
            entry = on.entries[name]
            found[name] = (
                one,
                replayed(
                    subject_of(on, name),
                    entry.cycles,
                    recordings[entry.address],
                    chosen[name],
                    options.states,
                ),
            )
            exceeded |= found[name][1].exceeded
            print(f"{platform}, {name}: {found[name]}", flush=True)
        text = table(found)
        print(text)
        write(options, "results/observed.md", {title: text})
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
