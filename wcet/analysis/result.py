"""The result of ``wcet analyse``: all data of the reports, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.proved_exclusions import ProvedExclusion
from ilp.parametric import ParametricBound
from ilp.paths.solution import IlpSolution, PathStep, WorstPath
from ilp.solvers.integer_program import IntegerProgram
from loopbounds.proof.bound import LoopBound
from pipeline.costs import CostCause, Costs
from quoll.assumptions import Assumption
from quoll.errors import UnboundedLoop, UnsoundBound
from quoll.facts.located import NO_FACTS, LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.fact_evidence import FactLabel
from wcet.analysis.prepared import InfeasibleEdge, PreparedPaths, SummarisedFunction
from wcet.analysis.seen_executions import SeenExecution
from wcet.analysis.stage_times import StageUse
from wcet.platforms.platform_model import Platform

__all__ = ["AnalysisResult", "EntryResult", "InterruptLatency", "StartBound"]


@dataclass(frozen=True, slots=True)
class StartBound:
    """A start of an entry's paths (rule 21), and their bound in cycles.

    ``place``: the address of the block that has just read the interrupt controller in the given
    context, before an interrupt was pending; None: the entry itself. ``inside``: the address of a
    function with a summary that the block calls, and that has just read the controller.
    """

    place: int | None
    context: int
    cycles: int
    inside: int | None = None


@dataclass(frozen=True, slots=True)
class EntryResult:
    """One entry: its graph, the result of each stage, and the bound in cycles.

    Where code tests for interrupts, ``graph`` and the following fields belong to the worst start.

    With ``parametric``, that function is the bound, and ``solution`` and ``path`` are for the
    parameters in ``example``.
    """

    name: str  # as the user wrote it, or the platform's name for the vector
    symbol: str  # printed place of the first instruction
    address: int  # of the first instruction
    graph: Supergraph
    costs: Costs
    bounds: tuple[LoopBound, ...]
    solution: IlpSolution
    path: WorstPath
    infeasible: tuple[InfeasibleEdge, ...]
    assumptions: tuple[Assumption, ...]
    constraints: tuple[Constraint, ...]  # with an effect on this entry
    model: IntegerProgram | None  # the solved integer program; None: cached solution
    numbers: tuple[int, ...]  # per loop: its bound in the integer program
    parametric: ParametricBound | None = None
    example: Mapping[str, int] = field(default_factory=dict)
    starts: tuple[StartBound, ...] = ()  # the worst one first
    paths: tuple[PreparedPaths, ...] = ()  # for every start, the entry's first
    by_start: tuple[EntryResult, ...] = ()  # the bound from each start, the worst one first
    unmasking: tuple[str, ...] = ()  # places after which interrupts may be unmasked
    never_returning: tuple[str, ...] = ()  # functions, each with its evidence
    summaries: tuple[SummarisedFunction, ...] = ()  # functions with a summary
    exclusions: tuple[ProvedRow, ...] = ()  # rows proved by refinement
    proved: tuple[ProvedExclusion, ...] = ()  # the exclusions of all starts
    seen: SeenExecution | None = None  # the longest execution that is known

    @property
    def cycles(self) -> int:
        """The bound, in cycles of the core; a parametric one at ``example``."""
        return self.solution.cycles

    @property
    def bound_cycles(self) -> int | None:
        """The bound as one number; None if it is a function."""
        return None if self.parametric else self.cycles

    @property
    def interval(self) -> str:
        """The bound and the longest known execution, as a sentence; "" without both."""
        bound = self.bound_cycles
        return "" if self.seen is None or bound is None else self.seen.within(bound)

    @property
    def for_what(self) -> str:
        """The parameters of cycles and path, as " for n = 10"; "" without any."""
        named = ", ".join(f"{name} = {value}" for name, value in self.example.items())
        return f" for {named}" if named else ""

    @property
    def costs_on_path(self) -> Costs:
        """The costs of the worst path."""
        return self.costs.on_path(self.solution.nodes, self.solution.edges, self.solution.calls)

    def charged_steps(self) -> Iterator[tuple[PathStep, tuple[int, ...]]]:
        """The worst path: each step with its cycles by ``CostCause``.

        They include the edge out of the step, and for the first one the start of the path.
        """
        known = self.costs_on_path
        start, less = known.start, dict(known.less)
        for step in self.path.steps:
            saved = [0] * len(CostCause)
            saved[CostCause.OTHER] -= less.pop(step.node, 0)
            costs = [start, known.nodes[step.node], saved]
            if step.edge is not None:
                costs.append(known.edges[step.edge])
            yield step, tuple(map(sum, zip(*costs, strict=True)))
            start = (0,) * len(CostCause)

    def cycles_by_cause(self) -> dict[CostCause, int]:
        """The cycles of the bound by cause: counts times costs, summed over nodes and edges.

        All are 0 if no counts are known that reach the bound.
        """
        if not self.solution.nodes:
            return dict.fromkeys(CostCause, 0)
        known = self.costs_on_path
        total = list(known.start)
        total[CostCause.OTHER] -= sum(known.less.values())
        for costs, counts in (
            (known.nodes, self.solution.nodes),
            (known.edges, self.solution.edges),
        ):
            for cost, count in zip(costs, counts, strict=True):
                if count:
                    for cause, cycles in enumerate(cost):
                        total[cause] += count * cycles
        return {cause: total[cause] for cause in CostCause}


@dataclass(frozen=True, slots=True)
class InterruptLatency:
    """Longest masked path over all entries, plus the interrupt path (rules 21, 32). Cycles.

    Both begin when the controller shows the interrupt, ``delay`` after its device asserts it.
    """

    longest: str  # name of the entry with the longest masked path
    longest_cycles: int
    interrupt: str  # name of the interrupt entry
    interrupt_cycles: int
    together: int  # interrupts that may be pending at once
    delay: int  # until the controller shows the interrupt
    assumptions: tuple[Assumption, ...]  # in addition to the entries'

    @property
    def cycles(self) -> int:
        """The cycles of the delay, of the masked path and of all interrupt paths after it."""
        return self.delay + self.longest_cycles + self.together * self.interrupt_cycles


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """The result of a run.

    ``latency`` is None unless every entry of the platform has a number as bound, and none may
    unmask interrupts before a path ends. ``unbounded``: the requested entries without a bound, with
    the reasons of their loops.
    """

    kernel: Path
    image: Image
    platform: Platform
    platform_reason: str  # why this platform: requested, or chosen by a build attribute
    facts_files: tuple[str, ...]
    entries: Mapping[str, EntryResult]
    latency: InterruptLatency | None
    stages: Mapping[str, StageUse]
    unbounded: Mapping[str, UnboundedLoop] = field(default_factory=dict)
    facts: tuple[FactLabel, ...] = ()  # in file order
    located: LocatedFacts = NO_FACTS  # the same with their places
    configuration: Mapping[str, str] = field(default_factory=dict)  # beside kernel and facts

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Every assumption of any entry and of the latency, each once, in order of first use."""
        of_entries = (a for e in self.entries.values() for a in e.assumptions)
        of_latency = () if self.latency is None else self.latency.assumptions
        return tuple(dict.fromkeys((*of_entries, *of_latency)))

    @property
    def unsound(self) -> tuple[UnsoundBound, ...]:
        """An error for each entry of which a known execution takes longer than the bound."""
        return tuple(
            entry.seen.error(name, bound)
            for name, entry in self.entries.items()
            if entry.seen
            and (bound := entry.bound_cycles) is not None
            and entry.seen.refutes(bound)
        )

    def function(self, address: int) -> str:
        """The name of the function at ``address``, or the address if it has no symbol."""
        found = self.image.symbol_at(address)
        return found[0].name if found and found[1] == 0 else hex(address)

    def microseconds(self, cycles: int) -> float:
        """Cycles of the core as microseconds at the platform's clock."""
        return cycles * 1e6 / self.platform.clock_hz
