"""Rounds of refinement: exclude the cores of the worst path, and solve again.

The bound of each round is sound: every exclusion holds in all executions. The rounds end when the
worst path has no core that is not excluded yet, or after the given time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from loopbounds.proof.bound import CHECKERS
from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.assumptions import Assumption
from quoll.errors import UsageError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import PendingSegment
from wcet.analysis.analysis import cached_or_prepared
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import AnalysisTarget, divided
from wcet.analysis.integer_programs import (
    StartProgram,
    bound_of_paths,
    constraints_of,
    entry_result,
    start_programs,
)
from wcet.analysis.preparation import valued
from wcet.analysis.result import EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.platforms.platform_model import Platform
from wcet.refinement.exclusions import (
    CoreKey,
    InfeasibleCore,
    SegmentEdges,
    cores_of_path,
    rare_edges,
)
from wcet.refinement.pass_conditions import PassConditions

__all__ = ["Ending", "PathDecision", "ProvedExclusion", "RefinedBound", "Round", "refine"]


class Ending(Enum):
    """The reason for which there is no further round."""

    NOT_REFUTED = "the worst path is not refuted"
    REPEATED = "no contradiction of the worst path is new, and the program cannot exclude it"
    TIME = "the time is over"
    NO_PATH = "no path is known that reaches the bound"
    IN_LOOP = "paths start in a loop, whose iterations are not followed"


@dataclass(frozen=True, slots=True)
class PathDecision:
    """A transfer of control that is excluded together with others."""

    place: str  # of the instruction that decides
    insn: str
    target: str


@dataclass(frozen=True, slots=True)
class ProvedExclusion:
    """Decisions that no execution takes together, or no iteration of the loop at ``loop``.

    ``distance`` above 1: no two of so many consecutive iterations take the decision. ``about``: the
    words that the decisions have in common.
    """

    decisions: tuple[PathDecision, ...]
    loop: str | None
    distance: int
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """A round: its exclusions, and the bound in cycles with them and all earlier ones."""

    exclusions: tuple[ProvedExclusion, ...]
    cycles: int


@dataclass(frozen=True, slots=True)
class RefinedBound:
    """The bound of an entry after refinement; ``cores``: the exclusions as edges of ``graph``."""

    image: Image
    platform: Platform
    entry: EntryResult  # before
    rounds: tuple[Round, ...]
    ending: Ending
    assumptions: tuple[Assumption, ...]
    graph: Supergraph  # of all paths from the entry
    cores: tuple[InfeasibleCore, ...]

    @property
    def cycles(self) -> int:
        """The bound in cycles."""
        return self.rounds[-1].cycles if self.rounds else self.entry.cycles


def refine(
    kernel: Path, options: AnalysisOptions, seconds: float, stages: StageLog
) -> RefinedBound:
    """Refine the bound of the one entry that ``options`` requests.

    ``seconds``: of the rounds, after the stages before them.

    Raises as ``wcet.analysis.analysis.analyse`` does, and UsageError for several entries and for a
    parametric bound.
    """
    run = AnalysisRun.begin(kernel, options, stages)
    if len(run.entries) != 1:
        raise UsageError("wcet refine is about one entry", hint="name it with --entry")
    ((name, address),) = run.entries.items()
    prepared = cached_or_prepared(run, name, address)
    limits = constraints_of(run, name, prepared)
    before = entry_result(run, name, address, prepared, limits)
    if before.parametric is not None:
        raise UsageError(
            f"the bound of {name} is a function of {', '.join(before.parametric.names)}",
            hint="give numbers with --set NAME=N",
        )
    programs = start_programs(run, name, address, prepared, limits)
    with stages.stage("refine", name):
        rounds = _Rounds.begin(run, name, address, programs)
        found, ending = rounds.run(time.monotonic() + seconds)
    stages.done()
    assumptions = tuple(dict.fromkeys((*before.assumptions, *sorted(rounds.assumed()))))
    cores = tuple(rounds.cores.values())
    graph = rounds.acyclic.graph
    return RefinedBound(run.image, run.platform, before, found, ending, assumptions, graph, cores)


@dataclass(slots=True)
class _Rounds:
    """The programs of all starts while they are refined.

    ``solved``: the number of cores with which each was solved. ``edges``: of the segments of
    refined starts.
    """

    analysed: AnalysisRun
    programs: list[StartProgram]
    solved: list[int]
    segments: list[PendingSegment]
    edges: dict[int, SegmentEdges]
    conditions: PassConditions
    cores: dict[CoreKey, InfeasibleCore]

    @staticmethod
    def begin(
        run: AnalysisRun, name: str, address: int, programs: Sequence[StartProgram]
    ) -> _Rounds:
        """No round yet. The values' graph and the programs have the same starts of paths."""
        entry = valued(AnalysisTarget(run, name, address))
        segments = divided(entry)
        for segment, program in zip(segments, programs, strict=True):
            assert segment.graph.edges == program.paths.graph.edges, "stages repeat their results"
            assert places(segment.graph) == places(program.paths.graph)
        return _Rounds(
            run,
            list(programs),
            [0] * len(programs),
            segments,
            {},
            PassConditions.of(entry, proved_bounds(segments, programs)),
            {},
        )

    @property
    def acyclic(self) -> AcyclicGraph:
        """The whole graph."""
        return self.conditions.code.acyclic

    def assumed(self) -> set[Assumption]:
        """The named assumptions of the proofs."""
        return self.conditions.assumed if self.cores else set()

    def run(self, end: float) -> tuple[tuple[Round, ...], Ending]:
        """All rounds up to the time ``end``."""
        rounds: list[Round] = []
        if self.acyclic.innermost[self.acyclic.graph.entry] >= 0:
            return (), Ending.IN_LOOP
        while time.monotonic() < end:
            worst = self._worst()
            path = self.programs[worst].answer.worst.path
            if not path.steps:
                return tuple(rounds), Ending.NO_PATH
            taken = [step.edge for step in path.steps if step.edge is not None]
            refuted = self._excluded(self._edges(worst).path(taken), end)
            new = tuple(printed for printed in refuted if printed is not None)
            if not new and time.monotonic() > end:
                break
            if not new:
                return tuple(rounds), Ending.REPEATED if refuted else Ending.NOT_REFUTED
            self._solve(worst)
            rounds.append(Round(new, self.programs[self._worst()].answer.worst.solution.cycles))
        return tuple(rounds), Ending.TIME

    def _edges(self, start: int) -> SegmentEdges:
        known = self.edges.get(start)
        if known is None:
            graph = self.acyclic.graph
            known = self.edges[start] = SegmentEdges(self.segments[start], graph)
        return known

    def _worst(self) -> int:
        """The start with the longest path, solved with all exclusions."""
        while True:
            cycles = [one.answer.worst.solution.cycles for one in self.programs]
            worst = cycles.index(max(cycles))
            if self.solved[worst] == len(self.cores):
                return worst
            self._solve(worst)

    def _solve(self, start: int) -> None:
        """Solve the program of a start with all exclusions; a worse bound is not taken."""
        program = self.programs[start]
        bounds = program.answer.numbers
        rows = (self._edges(start).row(core, bounds) for core in self.cores.values())
        chosen = [one for one in rows if one is not None]
        self.solved[start] = len(self.cores)
        if chosen:
            answer = bound_of_paths(self.analysed, program.paths, program.inputs, exclusions=chosen)
            if answer.worst.solution.cycles <= program.answer.worst.solution.cycles:
                self.programs[start] = replace(program, answer=answer)

    def _excluded(self, path: Sequence[int], end: float) -> list[ProvedExclusion | None]:
        """Add the cores of a path; edges in nearby iterations only if there is no new core.

        None stands for a core of the path that was there.
        """
        found = self._added(cores_of_path(self.conditions, path), end)
        if any(found):
            return found
        rare = self._added(rare_edges(self.conditions, path, self.cores), end)
        return [*found, *(one for one in rare if one is not None)]

    def _added(self, cores: Iterable[InfeasibleCore], end: float) -> list[ProvedExclusion | None]:
        """Add the ``cores`` that are found by the time ``end``."""
        found: list[ProvedExclusion | None] = []
        for core in cores:
            new = core.key not in self.cores
            found.append(self._printed(core) if new else None)
            if new:
                self.cores[core.key] = core
            if time.monotonic() > end:
                break
        return found

    def _printed(self, core: InfeasibleCore) -> ProvedExclusion:
        graph, image = self.acyclic.graph, self.analysed.image
        decisions = []
        for e in core.edges:
            source, target = graph.nodes[graph.edges[e].src], graph.nodes[graph.edges[e].dst]
            last = source.block.last
            decisions.append(
                PathDecision(image.place(last.addr), last.text, image.place(target.block.addr))
            )
        header = None if core.loop is None else graph.nodes[graph.loops[core.loop].header]
        loop = None if header is None else image.place(header.block.addr)
        return ProvedExclusion(tuple(decisions), loop, core.distance, core.about)


def places(graph: Supergraph) -> list[tuple[int, int]]:
    """The context and the address of each node."""
    return [(node.context, node.block.addr) for node in graph.nodes]


def proved_bounds(
    segments: Sequence[PendingSegment], programs: Sequence[StartProgram]
) -> dict[int, int]:
    """The bounds of the whole graph's loops that a checker has proved for all executions."""
    found: dict[int, int] = {}
    for segment, program in zip(segments, programs, strict=True):
        for bound in program.paths.bounds:
            if bound.method in CHECKERS and bound.bound is not None:
                loop = segment.loops[bound.loop]
                found[loop] = max(bound.bound, found.get(loop, 0))
    return found
