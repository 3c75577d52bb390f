"""Rounds of refinement: exclude the cores of the worst path, and solve again.

The bound of each round is sound: every exclusion holds in all executions. The rounds end when the
worst path has no core that is not excluded yet, or after the given processor time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.proved_exclusions import (
    CoreKey,
    InfeasibleCore,
    PathDecision,
    ProvedExclusion,
    ProvedExclusions,
)
from loopbounds.proof.bound import PROVED
from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.assumptions import Assumption
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import PendingSegment
from quoll.processes.processor_time import own
from quoll.value_analysis.value_results import ValueResults
from wcet.analysis.entry_stages import AnalysisTarget, divided
from wcet.analysis.integer_programs import StartProgram, bound_of_paths
from wcet.analysis.preparation import ValuedEntry, valued
from wcet.analysis.run import AnalysisRun
from wcet.refinement.core_names import CoreName, GraphNames
from wcet.refinement.exclusions import SearchTime, SegmentEdges, cores_of_path, rare_edges
from wcet.refinement.lifting import ContextCopies, lifted, proved_again
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.unsatisfiable_core import Over

__all__ = ["Ending", "RefinementRounds", "Round", "worst_start"]

# Values of a condition. In the shipped kernel one has 1,300 at most, or else 33,000 and more: then
# it is about an unknown word in place of a large term.
VALUES = 5000


class Ending(Enum):
    """The reason for which there is no further round."""

    NOT_REFUTED = "the worst path is not refuted"
    REPEATED = "no contradiction of the worst path is new, and the program cannot exclude it"
    TIME = "the time is over; a run with a longer --time goes on"
    NO_PATH = "no path is known that reaches the bound"
    IN_LOOP = "paths start in a loop, whose iterations are not followed"


@dataclass(frozen=True, slots=True)
class Round:
    """A round: its exclusions, and the bound in cycles with them and all earlier ones.

    ``stored``: they were proved by an earlier run, perhaps for another build, and then again.
    """

    exclusions: tuple[ProvedExclusion, ...]
    cycles: int
    stored: bool = False


def worst_start(programs: Sequence[StartProgram]) -> int:
    """The number of the first start with the longest path."""
    cycles = [one.answer.worst.solution.cycles for one in programs]
    return cycles.index(max(cycles))


@dataclass(slots=True)
class RefinementRounds:
    """The programs of all starts while they are refined.

    ``solved``: the number of cores with which each was solved. ``edges``: of the segments of
    refined starts. ``before``: assumptions of the stored proofs.
    """

    analysed: AnalysisRun
    programs: list[StartProgram]
    solved: list[int]
    segments: list[PendingSegment]
    values: ValueResults
    edges: dict[int, SegmentEdges]
    conditions: PassConditions
    copies: ContextCopies
    cores: dict[CoreKey, InfeasibleCore]
    shown: dict[CoreKey, ProvedExclusion]
    before: tuple[Assumption, ...]

    @staticmethod
    def begin(
        run: AnalysisRun,
        name: str,
        address: int,
        programs: Sequence[StartProgram],
        proved: ProvedExclusions,
        known: ValuedEntry | None,
    ) -> RefinementRounds:
        """No round yet; ``programs`` are solved with the exclusions ``proved``.

        ``known``: the entry with values, if they were computed in this run. Their graph and the
        programs have the same starts of paths.
        """
        entry = known or valued(AnalysisTarget(run, name, address), preemptible=True)
        segments = divided(entry)
        for segment, program in zip(segments, programs, strict=True):
            assert segment.graph.edges == program.paths.graph.edges, "stages repeat their results"
            assert places(segment.graph) == places(program.paths.graph)
        return RefinementRounds(
            run,
            list(programs),
            [len(proved.cores)] * len(programs),
            segments,
            entry.values,
            {},
            PassConditions.of(entry, proved_bounds(segments, programs), VALUES),
            ContextCopies(entry.graph),
            {core.key: core for core in proved.cores},
            dict(zip((core.key for core in proved.cores), proved.shown, strict=True)),
            proved.assumptions,
        )

    @property
    def acyclic(self) -> AcyclicGraph:
        """The whole graph."""
        return self.conditions.code.acyclic

    def solve_again(self, programs: Sequence[StartProgram]) -> None:
        """Go on with ``programs``, which are solved with all exclusions so far."""
        self.programs, self.solved = list(programs), [len(self.cores)] * len(programs)

    def proved(self) -> ProvedExclusions:
        """All exclusions, with the rows of each start."""
        assumed = sorted(self.conditions.assumed - {*self.before}) if self.cores else ()
        return ProvedExclusions(
            tuple(self.cores.values()),
            tuple(self.shown.values()),
            tuple(self._rows(start) for start in range(len(self.programs))),
            (*self.before, *assumed),
        )

    def _rows(self, start: int) -> tuple[ProvedRow, ...]:
        rows = (self._edges(start).row(core, self.acyclic) for core in self.cores.values())
        return tuple(one for one in rows if one is not None)

    def carried_over(self, names: Sequence[CoreName], end: float) -> tuple[ProvedExclusion, ...]:
        """The cores of an earlier build that are proved again until the processor time ``end``."""
        found: list[ProvedExclusion] = []
        placing = GraphNames(self.acyclic.graph, self.analysed.image)
        if self.acyclic.innermost[self.acyclic.graph.entry] >= 0:
            return ()
        for core in map(placing.placed, names):
            if own() > end:
                break
            again = core and proved_again(self.conditions, core)
            if again is not None and again.key not in self.cores:
                found.append(self._add(again))
        return tuple(found)

    def named(self) -> tuple[CoreName, ...]:
        """All cores by names."""
        names = GraphNames(self.acyclic.graph, self.analysed.image)
        return tuple(map(names.name, self.cores.values()))

    def run(self, end: float) -> tuple[tuple[Round, ...], Ending]:
        """All rounds up to the processor time ``end``."""
        rounds: list[Round] = []
        if self.acyclic.innermost[self.acyclic.graph.entry] >= 0:
            return (), Ending.IN_LOOP
        while own() < end:
            worst = self._worst()
            path = self.programs[worst].answer.worst.path
            if not path.steps:
                return tuple(rounds), Ending.NO_PATH
            taken = [step.edge for step in path.steps if step.edge is not None]
            refuted = self._excluded(self._edges(worst).path(taken), end)
            new = tuple(printed for printed in refuted if printed is not None)
            if not new and own() > end:
                break
            if not new:
                return tuple(rounds), Ending.REPEATED if refuted else Ending.NOT_REFUTED
            self._solve(worst)
            rounds.append(Round(new, self.cycles()))
        return tuple(rounds), Ending.TIME

    def cycles(self) -> int:
        """The bound of all starts."""
        return self.programs[self._worst()].answer.worst.solution.cycles

    def _edges(self, start: int) -> SegmentEdges:
        known = self.edges.get(start)
        if known is None:
            graph = self.acyclic.graph
            known = self.edges[start] = SegmentEdges(self.segments[start], graph)
        return known

    def _worst(self) -> int:
        """The start with the longest path, solved with all exclusions."""
        while True:
            worst = worst_start(self.programs)
            if self.solved[worst] == len(self.cores):
                return worst
            self._solve(worst)

    def _solve(self, start: int) -> None:
        """Solve the program of a start with all exclusions; a worse bound is not taken."""
        program = self.programs[start]
        inputs = replace(program.inputs, exclusions=self._rows(start))
        self.solved[start] = len(self.cores)
        if inputs != program.inputs:
            answer = bound_of_paths(self.analysed, program.paths, inputs)
            if answer.worst.solution.cycles <= program.answer.worst.solution.cycles:
                self.programs[start] = replace(program, answer=answer)

    def _excluded(self, path: Sequence[int], end: float) -> list[ProvedExclusion | None]:
        """Add the cores of a path; edges in nearby iterations only if there is no new core.

        None stands for a core of the path that was there.
        """
        over = SearchTime(end)
        found = self._added(cores_of_path(self.conditions, path, over), over)
        if any(found):
            return found
        rare = self._added(rare_edges(self.conditions, path, self.cores, over), over)
        return [*found, *(one for one in rare if one is not None)]

    def _added(self, cores: Iterable[InfeasibleCore], over: Over) -> list[ProvedExclusion | None]:
        """Add the ``cores`` until the time is ``over``, and their copies elsewhere."""
        found: list[ProvedExclusion | None] = []
        for core in cores:
            new = core.key not in self.cores
            found.append(self._add(core) if new else None)
            if over():
                break
            for copy in lifted(self.conditions, self.copies, core) if new else ():
                if copy.key not in self.cores:
                    found.append(self._add(copy))
        return found

    def _add(self, core: InfeasibleCore) -> ProvedExclusion:
        self.cores[core.key] = core
        printed = self.shown[core.key] = self._printed(core)
        return printed

    def _printed(self, core: InfeasibleCore) -> ProvedExclusion:
        graph, image = self.acyclic.graph, self.analysed.image
        decisions = []
        for e in core.edges:
            source, target = graph.nodes[graph.edges[e].src], graph.nodes[graph.edges[e].dst]
            last = source.block.last
            decisions.append(
                PathDecision(image.place(last.addr), last.text, image.place(target.block.addr))
            )
        loop = None if core.loop is None else self._header(core.loop)
        counts = tuple((self._header(inner), least) for inner, least in core.counts)
        return ProvedExclusion(tuple(decisions), loop, core.distance, core.about, counts, core.most)

    def _header(self, loop: int) -> str:
        graph = self.acyclic.graph
        return self.analysed.image.place(graph.nodes[graph.loops[loop].header].block.addr)


def places(graph: Supergraph) -> list[tuple[int, int]]:
    """The context and the address of each node."""
    return [(node.context, node.block.addr) for node in graph.nodes]


def proved_bounds(
    segments: Sequence[PendingSegment], programs: Sequence[StartProgram]
) -> dict[int, int]:
    """The bounds of the whole graph's loops that are proved for all executions."""
    found: dict[int, int] = {}
    for segment, program in zip(segments, programs, strict=True):
        for bound in program.paths.bounds:
            if bound.method in PROVED and bound.bound is not None:
                loop = segment.loops[bound.loop]
                found[loop] = max(bound.bound, found.get(loop, 0))
    return found
