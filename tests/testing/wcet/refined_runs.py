"""Executions of a program against its refined bound, and against each exclusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from ilp.constraints.proved_exclusions import InfeasibleCore
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import IlpSolution, PathStep
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.image.image import Image
from quoll.inlining.sharing import NEVER, SummarySettings
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.follow import follow
from quoll.results.results_store import NOWHERE, ResultsStore
from tests.testing.quoll.building import address
from tests.testing.wcet.infeasible_programs import DEVICE
from tests.testing.wcet.planted_programs import PlantedProgram
from tests.testing.wcet.programs import run
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.prepared import PreparedPaths, SummarisedFunction
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import SilentStageLog
from wcet.latency.summarised_calls import called
from wcet.refinement.passes import Pass, passes_of
from wcet.refinement.refine import RefinedBound, refine

__all__ = [
    "broken_exclusions",
    "graph_of",
    "has_all",
    "inlined",
    "most_returns",
    "most_taken",
    "options",
    "paths_of",
    "random_path",
    "refined",
    "removed",
]

LONGEST = 200  # edges of a random path
SECONDS = 60.0


def refined(
    elf: Path,
    entry: str = "main",
    platform: str = "kzm",
    seconds: float = SECONDS,
    sharing: SummarySettings | None = None,
) -> RefinedBound:
    """The refined bound of an entry, with the facts beside the ELF."""
    wanted = options(entry, platform)
    if sharing is not None:
        wanted = replace(wanted, summary_settings=sharing)
    return refine(elf, wanted, seconds, SilentStageLog())


def inlined(program: PlantedProgram) -> EntryResult:
    """The result of ``main`` without summaries."""
    wanted = replace(options("main", program.platform), summary_settings=NEVER)
    return analyse(program.elf, wanted, SilentStageLog()).entries["main"]


def options(
    entry: str = "main", platform: str = "kzm", store: ResultsStore = NOWHERE
) -> AnalysisOptions:
    """The options of an analysis of one entry."""
    return AnalysisOptions(
        entries=(entry,),
        platform=platform,
        l2=None,
        facts=(),
        neighbouring_facts=True,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(budget=Budget(seconds=4), workers=1),
        store=store,
    )


def graph_of(found: RefinedBound) -> Supergraph:
    """The graph of an entry without tests for interrupts."""
    [paths] = found.entry.paths
    return paths.graph


def paths_of(
    found: RefinedBound, runs: int, seed: int, inlined: EntryResult | None = None
) -> Iterator[list[int]]:
    """The edges of executions of ``main`` with random arguments and memory.

    Raises AssertionError for one that takes more cycles than the refined bound, as charged by the
    same entry ``inlined``: a summary may have several bounds.
    """
    graph, symbol = graph_of(found), found.image.symbol("main")
    thumb, plain = symbol is not None and symbol.thumb, inlined or found.entry
    for number in range(runs):
        random = Random(f"{seed} {number}")
        pcs, _ = run(
            found.image, found.entry.address, random, changing=(DEVICE, DEVICE + 3), thumb=thumb
        )
        steps = [PathStep(v.node, v.edge) for v in follow(graph, found.image, pcs)]
        visits = follow(plain.graph, found.image, pcs) if inlined else steps
        charged = path_cycles(plain.costs, (PathStep(v.node, v.edge) for v in visits))
        assert charged <= found.cycles, (seed, number, charged, found.cycles)
        yield [step.edge for step in steps if step.edge is not None]


def broken_exclusions(found: RefinedBound, path: list[int]) -> list[tuple[int, ...]]:
    """The exclusions that a path violates: passes near each other take all of their edges."""
    graph = graph_of(found)
    passes = passes_of(AcyclicGraph.of(graph), path)
    return [core.edges for core in found.cores if violated(graph, core, passes, path)]


def violated(graph: Supergraph, core: InfeasibleCore, passes: list[Pass], path: list[int]) -> bool:
    """Whether a pass takes all edges, or iterations that are near each other take the same edge."""
    if core.most and core.counts:
        return most_returns(core, passes) > core.most
    if core.most:
        return most_taken(graph, core, path) > core.most
    if core.distance == 1:
        return any(has_all(core, one) for one in passes)
    assert core.loop is not None
    loop, number, last = graph.loops[core.loop], 0, -core.distance
    for edge in path:
        if edge == core.edges[0]:
            if number - last < core.distance:
                return True
            last = number
        number += graph.edges[edge].dst == loop.header
        if edge in loop.entries:
            last = number - core.distance
    return False


def most_returns(core: InfeasibleCore, passes: list[Pass]) -> int:
    """The most returns to the headers of a core's loops in a pass that enters all of them."""
    entered = [dict(one.counts) for one in passes if one.loop == core.loop]
    loops = [loop for loop, _ in core.counts]
    all_of_them = [counts for counts in entered if counts.keys() >= {*loops}]
    return max((sum(counts[loop] - 1 for loop in loops) for counts in all_of_them), default=0)


def most_taken(graph: Supergraph, core: InfeasibleCore, path: list[int]) -> int:
    """The most executions of the edge of a core after one entry of its loop."""
    assert core.loop is not None
    most = now = 0
    for edge in path:
        now = 0 if edge in graph.loops[core.loop].entries else now + (edge == core.edges[0])
        most = max(most, now)
    return most


def has_all(core: InfeasibleCore, one: Pass) -> bool:
    """Whether a pass takes all edges of a core, and has all of its counts."""
    counts = dict(one.counts)
    often = all(counts.get(loop, 0) >= least for loop, least in core.counts)
    return one.loop == core.loop and {*core.edges} <= {*one.edges} and often


def random_path(graph: Supergraph, random: Random) -> list[int]:
    """The edges of a path from the entry, which may stop anywhere."""
    node, path = graph.entry, list[int]()
    while graph.successors[node] and len(path) < LONGEST:
        path.append(random.choice(graph.successors[node]))
        node = graph.edges[path[-1]].dst
    return path


def calls(
    image: Image, known: Sequence[SummarisedFunction], paths: PreparedPaths, solution: IlpSolution
) -> int:
    """The executions of ``early`` and ``late`` on a worst path, those in summaries included."""
    costly = {address(image, name) & ~1 for name in ("early", "late")}
    nodes = zip(paths.graph.nodes, solution.nodes, strict=True)
    own = sum(count for node, count in nodes if node.block.addr in costly)
    return own + sum(
        one.calls * calls(image, known[: one.earlier], one.function.paths, one.function.solution)
        for one in called(known, paths.graph, paths.costs, solution, 1, 0)
    )


def removed(program: PlantedProgram, found: RefinedBound) -> bool | None:
    """Whether the worst path has no more calls than any execution; None: it never had.

    The bounds of summaries by result may have removed a hidden pair before refinement.
    """
    entry, (paths,) = found.entry, found.entry.paths
    before = calls(found.image, entry.summaries, paths, entry.solution)
    if before <= program.limit and not program.hidden:
        return None
    worst = found.worst.answer.worst.solution
    return calls(found.image, entry.summaries, paths, worst) <= program.limit
