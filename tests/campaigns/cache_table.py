"""Bounds of the kernel by replacement policy and L2: ``make campaign-cache_table``.

Argument: a platform (kzm by default). Prints the tables of ``docs/caches.md``: bounds; references
that compete in a set; misses of instructions with the kernel pinned in L2; bounds with and without
the edges that values exclude.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cache.classify import classify
from cache.policy import Policy
from cache.reference import Kind
from ilp.solve import solver_named
from ilp.worst_case import worst_case
from loopbounds.bound import LoopBound
from loopbounds.bounds import BoundOptions, bound_loops
from pipeline.charge import charge
from pipeline.costs import Cause
from quoll.supergraph import Supergraph
from quoll.values import Values, analyse
from tests.harness import build
from wcet.analyse import Options, Run
from wcet.platform import Platform
from wcet.reference_shares import pressure
from wcet.request import default_cache
from wcet.stages import Stages

POLICIES = (Policy.ONE_WAY, Policy.ROUND_ROBIN, Policy.FIFO, Policy.LRU)
PINNED = ("__image_start..__image_end", "0xFFFF0000..0xFFFF1000")


@dataclass(frozen=True)
class Entry:
    """One entry, ready for any platform."""

    name: str
    graph: Supergraph
    values: Values
    bounds: tuple[LoopBound, ...]


def main() -> int:
    platform = sys.argv[1] if len(sys.argv) > 1 else "kzm"
    run = begin(platform)
    boards = {
        "L2 off": run.platform.with_l2(False),
        "L2 on": run.platform.with_l2(True),
        "pinned": replace(run.platform.with_l2(True), locked=PINNED, locked_ways=7).locking(
            run.image
        ),
    }
    entries = [prepared(run, name, address) for name, address in run.entries.items()]
    for entry in entries:
        for label, board in boards.items():
            bounds = [solved(run, entry, with_policy(board, p))[0] for p in POLICIES]
            print(f"| {entry.name} | {label} | " + " | ".join(f"{b:,}" for b in bounds) + " |")
    for entry in entries:
        print(f"| {entry.name} | " + " | ".join(competition(entry, run.platform)) + " |")
    for entry in entries:
        on, pinned = (fetch_misses(run, entry, boards[k]) for k in ("L2 on", "pinned"))
        print(f"| {entry.name} | {on:,} | {pinned:,} | {pinned / on:.6f} |")
    for name, address in run.entries.items():
        print("| " + " | ".join(with_and_without(run, name, address)) + " |")
    return 0


def begin(platform: str) -> Run:
    build.kernel()
    kernel = build.ROOT / "build/bilby/kzm-after/kernel.elf"
    options = Options(
        entries=("all",), platform=platform, l2=None, facts=(), neighbouring_facts=False, ends=(),
        solver="highs", time_limit=60.0, bounds=BoundOptions(cache=default_cache()),
    )  # fmt: skip
    return Run.begin(kernel, options, Stages(verbose=False))


def prepared(run: Run, name: str, address: int) -> Entry:
    valued = run.preparation().valued(name, address)
    bounds = bound_loops(valued.graph, run.image, valued.values, run.facts, run.options.bounds)
    return Entry(name, valued.graph, valued.values, bounds)


def with_policy(board: Platform, policy: Policy) -> Platform:
    return replace(board, hierarchy=replace(board.hierarchy, policy=policy))


def solved(run: Run, entry: Entry, board: Platform) -> tuple[int, int]:
    """The bound, and the cycles of instruction misses in it."""
    classes = classify(entry.graph, entry.values, board.hierarchy)
    costs = charge(entry.graph, classes, entry.values, board.hierarchy, board.timing).costs
    answer = worst_case(
        entry.graph, costs, entry.bounds, (), solver=solver_named("highs"), seconds=60.0,
        place=run.image.place,
    )  # fmt: skip
    solution = answer.solution
    fetches = costs.start[Cause.FETCH_MISS]
    for table, counts in ((costs.nodes, solution.nodes), (costs.edges, solution.edges)):
        fetches += sum(c * n[Cause.FETCH_MISS] for c, n in zip(counts, table, strict=True))
    return solution.cycles, fetches


def fetch_misses(run: Run, entry: Entry, board: Platform) -> int:
    """Instruction misses of one execution of every node and edge."""
    classes = classify(entry.graph, entry.values, board.hierarchy)
    costs = charge(entry.graph, classes, entry.values, board.hierarchy, board.timing).costs
    return sum(c[Cause.FETCH_MISS] for table in (costs.nodes, costs.edges) for c in table)


def competition(entry: Entry, board: Platform) -> Iterator[str]:
    """Sets with more than one line, and with more than there are ways."""
    hierarchy = board.hierarchy
    classes = classify(entry.graph, entry.values, hierarchy)
    for kinds, cache in (
        ((Kind.FETCH, Kind.PREFETCH), hierarchy.l1i),
        ((Kind.LOAD, Kind.STORE), hierarchy.l1d),
    ):
        found = pressure(classes, kinds, cache.sets, cache.line_bytes)
        yield f"{sum(s for n, s in found.items() if n > 1)}"
        yield f"{sum(s for n, s in found.items() if n > cache.ways)}"


def with_and_without(run: Run, name: str, address: int) -> Iterator[str]:
    """Contexts in which edges were removed, and bounds with and without that."""
    valued = run.preparation().valued(name, address)
    plain = run.preparation().whole_graph(address)
    contexts = {edge.context for edge in valued.infeasible}
    yield name
    yield f"{len(valued.infeasible)} in {len(contexts)} of {len(plain.contexts)}"
    for graph, values in ((plain, analyse(plain, run.image)), (valued.graph, valued.values)):
        bounds = bound_loops(graph, run.image, values, run.facts, run.options.bounds)
        missing = sum(bound.bound is None for bound in bounds)
        if missing:
            yield f"{missing} loops without a bound"
            continue
        yield f"{solved(run, Entry(name, graph, values, bounds), run.platform)[0]:,}"


if __name__ == "__main__":
    sys.exit(main())
