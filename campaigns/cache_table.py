"""Bounds of the kernel by replacement policy and L2: ``make campaign-cache_table``.

Prints tables of ``docs/results/caches.md``, with ``ARGS=--write`` into it: bounds; references that
compete in a set; misses of instructions with the kernel pinned in L2; bounds with and without the
edges that values exclude.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cache.classify import classify
from cache.policy import ReplacementPolicy
from cache.reference import ReferenceKind
from campaigns.documented import markdown
from campaigns.documented import replace as replace_table
from ilp.solvers.solve import solver_named
from ilp.worst_case import worst_case
from loopbounds.bounds import bound_loops
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from pipeline.charge import charge
from pipeline.costs import CostCause, Costs
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.pending import find_pending_tests
from quoll.preemption.segments import SegmentValues, segments, undivided
from quoll.results.results_store import ResultsStore
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.harness import build
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import AnalysisTarget, iterations, of_segment, whole_graph
from wcet.analysis.preparation import infeasible_edges, valued
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.commands.cache import competing
from wcet.platforms.platform_model import Platform
from wcet.reports.references import known_line

POLICIES = (
    ReplacementPolicy.ONE_WAY,
    ReplacementPolicy.ROUND_ROBIN,
    ReplacementPolicy.FIFO,
    ReplacementPolicy.LRU,
)
PLATFORMS = ("kzm", "kzm-paper")
POLICY_HEAD = ("entry", "L2", "one-way", "round-robin", "FIFO", "LRU")
COMPETITION_HEAD = (
    "entry",
    *("L1I, more than one", "more than 4", "references"),
    *("L1D, more than one", "more than 4", "references"),
)
PINNED_HEAD = ("entry", "L2 on", "pinned", "share")
REMOVED_HEAD = (
    "entry", "edges", "contexts", "`kzm` without", "with", "`kzm-paper` without", "with",
)  # fmt: skip
PINNED = ("__image_start..__image_end", "0xFFFF0000..0xFFFF1000")


@dataclass(frozen=True)
class Start:
    """The paths from one start (rule 21), ready for any platform."""

    place: int | None  # None: the entry
    graph: Supergraph
    values: SegmentValues
    bounds: tuple[LoopBound, ...]


@dataclass(frozen=True)
class Entry:
    """One entry with all starts of its paths."""

    name: str
    starts: tuple[Start, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/results/caches.md")
    write = parser.parse_args().write
    found: dict[str, str] = {}
    removed: dict[str, list[str]] = {}
    for platform in PLATFORMS:
        run = begin(platform)
        entries = []
        for name, address in run.entries.items():
            known = valued(AnalysisTarget(run, name, address))
            entries.append(prepared(run, name, known.graph, known.values))
        found[f"policies {platform}"] = markdown(POLICY_HEAD, policies(run, entries))
        if not removed:
            rows = [(entry.name, *competition(entry, run.platform)) for entry in entries]
            found["competition"] = markdown(COMPETITION_HEAD, rows)
        found[f"pinned {platform}"] = markdown(PINNED_HEAD, pinned(run, entries))
        for entry in entries:
            removed.setdefault(entry.name, []).extend(with_and_without(run, entry))
    rows = [(name, *cells[:4], *cells[6:]) for name, cells in removed.items()]
    found["removed edges"] = markdown(REMOVED_HEAD, rows)
    for name, text in found.items():
        print(f"{name}\n{text}", flush=True)
        if write:
            replace_table("results/caches.md", name, text)
    return 0


def boards(run: AnalysisRun) -> dict[str, Platform]:
    """The platform without L2, with it, and with the kernel locked in it."""
    on = run.platform.with_l2(True)
    return {
        "off": run.platform.with_l2(False),
        "on": on,
        "pinned": replace(on, locked=PINNED, locked_ways=7).locking(run.image),
    }


def policies(run: AnalysisRun, entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """Entry, L2, and the bound under each policy."""
    for entry in entries:
        for label, board in boards(run).items():
            bounds = [bound(run, entry, with_policy(board, p)) for p in POLICIES]
            assert max(bounds) == bounds[0], "a policy looser than one-way"
            yield entry.name, label, *(f"{b:,}" for b in bounds)


def pinned(run: AnalysisRun, entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """Entry, cycles of instruction misses with L2 on and with the kernel pinned, and the share."""
    known = boards(run)
    for entry in entries:
        on, held = (fetch_misses(entry, known[k]) for k in ("on", "pinned"))
        yield entry.name, f"{on:,}", f"{held:,}", f"{held / on:.6f}"


def begin(platform: str) -> AnalysisRun:
    build.kernel()
    kernel = build.ROOT / "build/bilby/kzm-after/kernel.elf"
    options = AnalysisOptions(
        entries=("all",), platform=platform, l2=None, facts=(), neighbouring_facts=True, exits=(),
        solver="highs", time_limit=60.0, bounds=BoundOptions(store=ResultsStore.of_user()),
    )  # fmt: skip
    return AnalysisRun.begin(kernel, options, StageLog(verbose=False))


def prepared(run: AnalysisRun, name: str, graph: Supergraph, values: ValueResults) -> Entry:
    """The starts of an entry with their loop bounds, on the edges of ``graph``.

    Edges that values exclude stay, except for edges that a pending interrupt excludes.
    """
    tests = find_pending_tests(values, run.platform.pending)
    segments_of_paths = [undivided(graph)]
    if tests is not None:
        negative = replace(tests, dead=tests.negative)
        segments_of_paths = list(segments(values, negative, run.image))
    turning = frozenset(loop for segment in segments_of_paths for loop in segment.loops)
    found = bound_loops(graph, run.image, values, run.facts, run.options.bounds, only=turning)
    return Entry(
        name,
        tuple(
            Start(
                segment.start,
                segment.graph,
                SegmentValues(values, segment),
                of_segment(segment, found),
            )
            for segment in segments_of_paths
        ),
    )


def with_policy(board: Platform, policy: ReplacementPolicy) -> Platform:
    return replace(board, hierarchy=replace(board.hierarchy, policy=policy))


def costs_of(start: Start, board: Platform) -> Costs:
    classes = classify(start.graph, start.values, board.hierarchy)
    classes = classes.counted(iterations(start.bounds))
    first = start.place is None
    return charge(
        start.graph, classes, start.values, board.hierarchy, board.timing, exception=first
    ).costs


def bound(run: AnalysisRun, entry: Entry, board: Platform) -> int:
    """Cycles, from the worst start."""
    return max(
        worst_case(
            start.graph, costs_of(start, board), start.bounds, (), solver=solver_named("highs"),
            seconds=60.0, place=run.image.place,
        ).solution.cycles
        for start in entry.starts
    )  # fmt: skip


def fetch_misses(entry: Entry, board: Platform) -> int:
    """Instruction misses of one execution of every node and edge after the entry."""
    costs = costs_of(entry.starts[0], board)
    return sum(c[CostCause.FETCH_MISS] for table in (costs.nodes, costs.edges) for c in table)


def competition(entry: Entry, board: Platform) -> Iterator[str]:
    """The sets with several lines, and with more lines than ways; references to the former."""
    hierarchy = board.hierarchy
    classes = classify(entry.starts[0].graph, entry.starts[0].values, hierarchy)
    for kinds, cache in (
        ((ReferenceKind.FETCH, ReferenceKind.PREFETCH), hierarchy.l1i),
        ((ReferenceKind.LOAD, ReferenceKind.STORE), hierarchy.l1d),
    ):
        found = competing(classes, kinds, cache.sets, cache.line_bytes)
        rivals = set().union(*(of for of in found.values() if len(of) > 1))
        every = [r for of in classes.references for r in of if r.kind in kinds]
        yield f"{sum(len(of) > 1 for of in found.values())}"
        yield f"{sum(len(of) > cache.ways for of in found.values())}"
        yield f"{sum(known_line(r, cache.line_bytes) in rivals for r in every)} of {len(every)}"


def with_and_without(run: AnalysisRun, entry: Entry) -> Iterator[str]:
    """Contexts with removed edges, and bounds with and without their removal."""
    address = run.entries[entry.name]
    plain = whole_graph(run, address)
    values = analyse(plain, run.image)
    removed = infeasible_edges(plain, values)
    yield f"{len(removed)}"
    yield f"{len({e.context for e in removed})} of {len(plain.contexts):,}"
    whole = prepared(run, entry.name, plain, values)
    missing = max(sum(b.bound is None for b in start.bounds) for start in whole.starts)
    yield f"{missing} loops without a bound" if missing else f"{bound(run, whole, run.platform):,}"
    yield f"{bound(run, entry, run.platform):,}"


if __name__ == "__main__":
    sys.exit(main())
