"""Distributes stages over processes, without an effect on results.

This process bounds loops. In parallel, if the graph is large enough, worker processes classify
references and time blocks, which does not depend on the numbers of iterations, and one worker
computes the key under which loop bounds are stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from loopbounds.proof.keys import graph_identity
from pipeline.costs import Costs
from quoll.preemption.segments import PendingSegment
from quoll.processes.futures import Future, submit
from quoll.processes.parallel_map import two_step_map
from wcet.analysis.entry_stages import (
    LARGE,
    BoundedLoops,
    TimedSegment,
    ValuedCode,
    block_timer,
    charged,
    iterations,
    of_segment,
    timed,
)
from wcet.analysis.prepared import PreparedPaths
from wcet.result_classes.branches import with_results

__all__ = ["Costing", "costing", "identified"]


@dataclass(frozen=True, slots=True)
class CostedSegment:
    """Costs of the paths from one start, and the seconds spent on them."""

    costs: Costs
    seconds: tuple[float, float]  # of the cache and the pipeline stage


Costing = Callable[[BoundedLoops], list[PreparedPaths]]


def identified(valued: ValuedCode) -> Future[str]:
    """The key under which loop bounds are stored, computed by a worker if the graph is large."""
    run, graph = valued.code.run, valued.graph
    find = partial(graph_identity, graph, run.image, valued.values)
    pays = run.options.bounds.store.enabled and len(graph.nodes) >= LARGE
    return submit(find, worth=pays)


@contextmanager
def costing(valued: ValuedCode, parts: Sequence[PendingSegment]) -> Iterator[Costing]:
    """A function from loop bounds to the paths from each start with their costs.

    Worker processes start when the block is entered, and exit with it.
    """
    timer = block_timer(valued.code.run)

    def first(index: int) -> TimedSegment:
        return timed(valued, parts[index], timer)

    def then(index: int, known: TimedSegment, loops: BoundedLoops) -> CostedSegment:
        start = time.perf_counter()
        rounds = iterations(of_segment(parts[index], loops.bounds))
        costs = charged(valued, parts[index], known, rounds, loops.execution).costs
        of_caches, of_blocks = known.seconds
        return CostedSegment(costs, (of_caches, of_blocks + time.perf_counter() - start))

    with two_step_map(first, then, [len(part.graph.nodes) for part in parts], LARGE) as charge_all:
        yield partial(_paths, valued, parts, charge_all)


def _paths(
    valued: ValuedCode,
    parts: Sequence[PendingSegment],
    charge_all: Callable[[BoundedLoops], list[CostedSegment]],
    loops: BoundedLoops,
) -> list[PreparedPaths]:
    code, bounds = valued.code, [of_segment(part, loops.bounds) for part in parts]
    code.run.stages.say(f"cache, pipeline: {code.name}")
    start = time.perf_counter()
    costed = charge_all(loops)
    elapsed = time.perf_counter() - start
    spent = [sum(one.seconds[stage] for one in costed) for stage in (0, 1)]
    for stage, seconds in zip(("cache", "pipeline"), spent, strict=True):
        code.run.stages.spent(stage, elapsed * seconds / (sum(spent) or 1))
    with code.stage("pipeline"):
        costs = with_results(valued.values, parts, [one.costs for one in costed])
    return [
        PreparedPaths(part.start, part.graph, one, of, loops.execution, loops.prefix)
        for part, of, one in zip(parts, bounds, costs, strict=True)
    ]
