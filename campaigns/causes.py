"""The difference between a bound and the slowest execution, by cause.

    computed - observed = other paths + fetches + data + pipeline

``other paths`` is the bound less the charge of the executed path: longer paths, which no program
took or none can take. The rest is the model of the hardware on the executed path: its charge by the
causes of the analysis, less the cycles of the execution. The concrete machine tells these apart,
from the same state: cycles of fetches are lost if every fetch hits, cycles of data if every access
hits, too. Write-backs count as data. A path that a test for interrupts cuts is charged as if an
interrupt arrived before that test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from pipeline.costs import CostCause, Costs
from quoll.image.image import Image
from tests.testing.pipeline.climbed import ClimbedState
from wcet.analysis.result import EntryResult
from wcet.executions.recorded_paths import RecordedPath

__all__ = ["Beyond", "Causes", "beyond", "causes"]

PIPELINE = (CostCause.ISSUE, CostCause.STALL, CostCause.BRANCH, CostCause.OTHER)


@dataclass(frozen=True, slots=True)
class Causes:
    """Cycles. ``one_way``: the execution with one way in each set of the level-1 caches."""

    paths: int
    fetches: int
    data: int
    pipeline: int
    observed: int
    one_way: int

    @property
    def row(self) -> tuple[int, ...]:
        """In the order of the table."""
        return self.paths, self.fetches, self.data, self.pipeline, self.observed, self.one_way


def causes(bound: int, path: RecordedPath, slowest: ClimbedState) -> Causes | None:
    """Of a bound and the slowest execution of a path.

    None if the path is cut by a test for interrupts behind which paths end in several ways.
    """
    steps = path.interrupted()
    if steps is None:
        return None
    costs = path.paths.costs
    charged = path_cycles(costs, steps)
    fetches = by_cause(costs, steps, (CostCause.FETCH_MISS,))
    pipeline = by_cause(costs, steps, PIPELINE)
    data = charged - fetches - pipeline
    with_fetches, with_all = (slowest.with_hits(data=hits) for hits in (False, True))
    return Causes(
        bound - charged,
        fetches - (slowest.most - with_fetches),
        data - (with_fetches - with_all),
        pipeline - with_all,
        slowest.most,
        slowest.with_one_way(),
    )


def by_cause(costs: Costs, steps: Iterable[PathStep], chosen: Iterable[CostCause]) -> int:
    """Cycles of some causes along a path."""
    nodes, edges = Counter[int](), Counter[int]()
    for step in steps:
        nodes[step.node] += 1
        if step.edge is not None:
            edges[step.edge] += 1
    return sum(
        costs.start[cause]
        + sum(costs.nodes[n][cause] * count for n, count in nodes.items())
        + sum(costs.edges[e][cause] * count for e, count in edges.items())
        for cause in chosen
    )


@dataclass(frozen=True, slots=True)
class Beyond:
    """A block on which the worst path spends more than an executed path.

    ``worst``, ``executed``: how often it is on each of them. ``cycles``: more of its charge.
    """

    place: str
    worst: int
    executed: int
    cycles: int


def beyond(entry: EntryResult, path: RecordedPath, image: Image, most: int) -> tuple[Beyond, ...]:
    """The ``most`` blocks on which the worst path of ``entry`` spends most beyond ``path``."""
    steps = path.interrupted() or tuple(PathStep(v.node, v.edge) for v in path.visits)
    graph = path.paths.graph
    nodes, edges = (Counter(step.node for step in steps), Counter(step.edge for step in steps))
    costs = path.paths.costs.on_path(
        [nodes[n] for n in range(len(graph.nodes))], [edges[e] for e in range(len(graph.edges))]
    )
    counts = Counter(graph.nodes[step.node].block.insns[0].addr for step in steps)
    cycles = Counter[int]()
    for step in steps:
        edge = 0 if step.edge is None else costs.edge_cycles(step.edge)
        cycles[graph.nodes[step.node].block.insns[0].addr] += costs.node_cycles(step.node) + edge
    worst, more = Counter[int](), Counter[int]()
    for step, charged in entry.charged_steps():
        block = entry.graph.nodes[step.node].block.insns[0].addr
        worst[block] += 1
        more[block] += sum(charged)
    more.subtract(cycles)
    return tuple(
        Beyond(image.place(block), worst[block], counts[block], extra)
        for block, extra in more.most_common(most)
        if extra > 0 and worst[block] > counts[block]
    )
