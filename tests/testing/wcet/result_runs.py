"""Executions of programs with summaries by class of result, against each bound and each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from pipeline.costs import ExcludedEdges, LimitedCall
from quoll.arm.insn import LR, SP, Insn
from quoll.facts.applied import LimitedCycles
from quoll.image.image import Image
from quoll.inlining.sharing import SummarySettings
from quoll.recordings.follow import NodeVisit, follow
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.wcet.programs import RETURN, STACK, Recorder, executed_from
from tests.testing.wcet.refined_runs import options
from wcet.analysis.analysis import analyse
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import SilentStageLog

__all__ = [
    "INLINED",
    "SUMMARISED",
    "Execution",
    "bounded",
    "broken_rows",
    "executions",
    "judge",
    "levels",
]

INLINED, SUMMARISED = SummarySettings(contexts=1 << 62), SummarySettings(contexts=0, least=2)


@dataclass(frozen=True)
class Execution:
    """The addresses of an execution, and r0 before each instruction and at its end."""

    pcs: list[int]
    results: list[int]


class _NotingMachine(ConcreteMachine):
    """Notes r0 before each instruction."""

    def step(self, insn: Insn) -> None:
        """Execute an instruction."""
        self.noted.append(self.registers[0])
        super().step(insn)

    noted: list[int]


def bounded(elf: Path, entry: str, settings: SummarySettings, platform: str) -> EntryResult:
    """The result of an entry."""
    wanted = replace(options(entry, platform), summary_settings=settings)
    return analyse(elf, wanted, SilentStageLog()).entries[entry]


def executions(image: Image, entry: str, runs: int, seed: int) -> Iterator[Execution]:
    """Executions of a function with random arguments and memory."""
    symbol = image.symbol(entry)
    assert symbol is not None
    for number in range(runs):
        random = Random(f"{seed} {entry} {number}")
        memory = Recorder(image, random)
        machine = _NotingMachine(memory)
        machine.noted = []
        machine.registers[:13] = [random.randrange(16) for _ in range(13)]
        machine.registers[SP], machine.registers[LR] = STACK, RETURN | symbol.thumb
        machine.thumb = symbol.thumb
        pcs = executed_from(image, machine, symbol.addr & ~1, memory)
        yield Execution(pcs, [*machine.noted, machine.registers[0]])


def levels(entry: EntryResult) -> dict[int, tuple[LimitedCycles, ...]]:
    """The bounds by class of result of the functions that ``entry`` calls."""
    replaced = entry.graph.guidance.replaced
    return {at: of.limited for at, of in replaced.items() if any(one.result for one in of.limited)}


def judge(plain: EntryResult, image: Image, execution: Execution, *, called: bool) -> int:
    """The cycles that full inlining charges for an execution; ``called``: without its start."""
    visits = follow(plain.graph, image, execution.pcs)
    steps = (PathStep(v.node, v.edge) for v in visits)
    return path_cycles(plain.costs, steps) - called * sum(plain.costs.start)


def broken_rows(entry: EntryResult, image: Image, execution: Execution) -> list[ExcludedEdges]:
    """The exclusions of ``entry`` that an execution violates."""
    visits = follow(entry.graph, image, execution.pcs)
    taken = Counter(visit.edge for visit in visits)
    return [
        one
        for call in entry.costs.limited
        for one in call.excluded
        if sum(taken[e] for e in one.edges) + forced(call, one, visits, execution)
        > sum(taken[e] for e in one.passes) + one.first
    ]


def forced(
    call: LimitedCall, one: ExcludedEdges, visits: tuple[NodeVisit, ...], execution: Execution
) -> int:
    """How often a call has a result that only options of ``one`` have."""
    every = (call.charged, *call.options)
    count = 0
    for visit, behind in pairwise(visits):
        if visit.edge == call.edge:
            result = execution.results[behind.start]
            fitting = [o for o in every if o.result is None or result in o.result]
            assert fitting, "each call has a class"
            count += all(option in one.options for option in fitting)
    return count
