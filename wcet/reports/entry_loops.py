"""The loops of an entry with the bounds that its analysis uses, for ``wcet loops``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ilp.constraints.parameters import loop_parameters, named, numbered
from loopbounds.proof.bound import LoopBound, NotWhilePending
from quoll.assumptions import Assumption
from quoll.facts.applied import RecursionDepth
from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.preemption.segments import PendingSegment
from wcet.analysis.entry_stages import AnalysisTarget, ValuedCode, bounded, divided
from wcet.analysis.preparation import assumed_by, valued
from wcet.analysis.run import AnalysisRun
from wcet.analysis.summaries import FunctionSummary

__all__ = ["EntryLoops", "LoopInContext", "loops_of", "with_parameters"]


@dataclass(frozen=True, slots=True)
class LoopInContext:
    """A loop in one context, with its bound.

    ``summary``: the address of the function with a summary, in whose contexts the bound holds; the
    context then belongs to ``graph``, which starts there.
    """

    graph: Supergraph
    loop: SuperLoop
    bound: LoopBound
    summary: int | None = None

    @property
    def header(self) -> int:
        """The address of the header."""
        return self.graph.nodes[self.loop.header].block.addr

    @property
    def iterations(self) -> int | None:
        """Most executions of the header per entry, including the first iteration."""
        if self.bound.bound is None:
            return None
        return self.bound.bound + self.graph.apart(self.loop)


@dataclass(frozen=True, slots=True)
class EntryLoops:
    """The loops of an entry, then the loops of its functions with a summary.

    ``graphs``: of the entry, then of these functions. ``depths``: recursion depths in all of them.
    """

    name: str
    graphs: tuple[Supergraph, ...]
    loops: tuple[LoopInContext, ...]
    depths: Mapping[int, RecursionDepth]
    assumptions: tuple[Assumption, ...]


def loops_of(code: AnalysisTarget) -> EntryLoops:
    """The loops that the code at an entry reaches, as ``wcet analyse`` bounds them.

    Raises a WcetError for refused code, and FactsError for a wrong fact.
    """
    entry = valued(code)
    run = entry.code.run
    with code.stage("values"):
        parts = divided(entry)
    with code.stage("loop bounds"):
        found = bounded(entry, parts)
    bounds = with_parameters(run, entry.graph, on_paths(entry, parts, found.bounds))
    loops = [
        *(LoopInContext(entry.graph, entry.graph.loops[b.loop], b) for b in bounds),
        *of_summaries(run, entry.summaries),
    ]
    graphs = (entry.graph, *(p.graph for one in entry.summaries for p in one.paths))
    reached = {g.contexts[node.context].function for g in graphs for node in g.nodes}
    depths = {f: depth for f, depth in entry.graph.guidance.depths.items() if f in reached}
    of_loops = (assumption for one in loops for assumption in one.bound.assumptions)
    assumptions = (*assumed_by(entry, parts, found), *of_loops)
    return EntryLoops(code.name, graphs, tuple(loops), depths, assumptions)


def of_summaries(run: AnalysisRun, summaries: Sequence[FunctionSummary]) -> Iterator[LoopInContext]:
    """The loops of functions with summaries, without duplicates of several activations or paths."""
    seen: set[tuple[object, ...]] = set()
    for one in summaries:
        for paths in one.paths:
            for bound in with_parameters(run, paths.graph, paths.bounds):
                loop = paths.graph.loops[bound.loop]
                header = paths.graph.nodes[loop.header]
                calls = tuple(c.call_site for c in paths.graph.call_string(header.context))
                key = (one.function, header.block.addr, calls, bound.bound, bound.explained)
                if key not in seen:
                    seen.add(key)
                    yield LoopInContext(paths.graph, loop, bound, one.function)


def with_parameters(
    run: AnalysisRun, graph: Supergraph, bounds: Sequence[LoopBound]
) -> tuple[LoopBound, ...]:
    """``bounds`` with the parameters, or their numbers, that facts give."""
    parameters, values = loop_parameters(graph, run.image, run.facts), run.options.parameters
    still = {loop: p for loop, p in parameters.items() if p.name not in values}
    return named(numbered(bounds, parameters, values), still)


def on_paths(
    valued: ValuedCode, parts: Sequence[PendingSegment], bounds: Sequence[LoopBound]
) -> list[LoopBound]:
    """``bounds``; for a loop in no segment, which no path repeats, with that reason (rule 21)."""
    graph, run = valued.graph, valued.code.run
    repeated = {loop for part in parts for loop in part.loops}
    if parts[0].start is not None:  # a fact sets the start, after the other loops
        return [bound for bound in bounds if bound.loop in repeated]
    reached = {node for part in parts for node in part.nodes}
    reads = (
        valued.values.reading(run.platform.pending.registers) if len(repeated) < len(bounds) else ()
    )
    found = []
    for bound in bounds:
        loop = graph.loops[bound.loop]
        if bound.loop in repeated:
            found.append(bound)
            continue
        tested = sorted({graph.nodes[n].block.addr for n in reads if n in loop.nodes})
        evidence = NotWhilePending(tuple(map(run.image.place, tested)))
        times = int(loop.header in reached)
        found.append(LoopBound(bound.loop, times, None, "pending", evidence, None, 0.0))
    return found
