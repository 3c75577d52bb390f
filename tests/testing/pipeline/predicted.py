"""Random programs on a machine that predicts branches, and their charges."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cache.cache_simulator import SimulatedCache
from cache.classify import classify
from cache.policy import ReplacementPolicy
from cache.wrong_paths import InsnAt
from pipeline.charge import ChargedCosts, charge
from pipeline.classes import InsnClass
from pipeline.core import load_core
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus
from pipeline.predictor_simulator import PredictingMachine, SimulatedPredictor
from pipeline.timing_model import BranchModel, CoreProfile, EntryState
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import Insn
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.supergraph import SuperEdge
from tests.testing.cache.graphs import CODE, Program, at, pool, program_of, random_program
from tests.testing.pipeline.runs import (
    ACCESSES,
    ENTRY,
    KZM,
    MIXED,
    QUIET,
    WARM,
    Case,
    Path,
    charged,
    random_machine,
    random_path,
    run,
    timing,
)

__all__ = ["check_fetches", "check_loop", "check_predicted"]

ADD = "add r0, r1, r2\n"
BETWEEN = "beq .\nb .\nbl .\n" + 9 * ADD


def check_predicted(random: Random, prediction: BranchPrediction) -> Case:
    """One random program, path and initial state. Raises AssertionError if the bound is lower."""
    text, special = random.choice([MIXED, WARM, ACCESSES]), random.random() < 0.2
    program = _aimed(random_program(random, maintenance=special, text=text), random)
    path = random_path(program, random, 14)
    ahead, entry = random.choice([0, 8, 48]), random.choice([ENTRY, QUIET])
    code = _code_of(program)
    charges = _charges(program, path, ahead, entry, prediction, code)
    branches = [insn.addr for node in program.graph.nodes for insn in node.block.insns]
    predictor = SimulatedPredictor(prediction, random, [*branches, *range(CODE, CODE + 999, 4)])
    machine = random_machine(
        random,
        ahead,
        entry,
        made=lambda core, memory, chip: PredictingMachine(core, memory, chip, predictor, code),
    )
    assert isinstance(machine, PredictingMachine)
    return _compared(machine, program, path, charges)


class Contrary(SimulatedPredictor):
    """Mostly wrong about the branch that is executed."""

    actual = False

    def predicts_taken(self, insn: Insn) -> bool:
        if not self._dynamic:
            return super().predicts_taken(insn)
        return self.actual == (self._random.random() < 0.1)


class Contradicted(PredictingMachine):
    """Tells its predictor the outcome."""

    def _begin(self, step: ExecutedInsn, kind: InsnClass, cycle: int) -> None:
        assert isinstance(self.predictor, Contrary)
        self.predictor.actual = step.taken
        super()._begin(step, kind, cycle)


class Far(Random):
    """Draws the two ends of a range more often than the numbers between them."""

    def randint(self, a: int, b: int) -> int:
        return self.choice([a, b, b, super().randint(a, b)])


def check_fetches(seed: int, prediction: BranchPrediction) -> Case:
    """Code without accesses on a direct-mapped cache, where each charge for a fetch may be due."""
    random = Far(seed)
    program = _aimed(random_program(random, maintenance=False, text=ADD), random)
    path = random_path(program, random, 30)
    ahead = random.choice([8, 16, 48])
    return _contradicted(random, program, path, ahead, prediction, _code_of(program))


def _contradicted(
    random: Random,
    program: Program,
    path: Path,
    ahead: int,
    prediction: BranchPrediction,
    code: InsnAt,
) -> Case:
    charges = _charges(program, path, ahead, QUIET, prediction, code)
    geometry = KZM.geometries[1]
    caches = [SimulatedCache(geometry, ReplacementPolicy.LRU, random) for _ in range(2)]
    machine = Contradicted(
        load_core(KZM.core, CoreProfile.NOMINAL),
        MemoryBus(KZM.memory),
        FetchAndCaches(caches[0], caches[1], ahead, random),
        Contrary(prediction, random),
        code,
    )
    return _compared(machine, program, path, charges)


def check_loop(distance: int, *, nested: bool) -> Case:
    """Ten iterations of a loop with a branch that is never taken, and always predicted to be.

    Its target is ``distance`` bytes behind the loop's start; if ``nested``, a branch back is there.
    """
    add, beq, back = (pool(text)[0] for text in (ADD, "beq .\n", "b .\n"))
    target = CODE + distance
    first = (*(at(add, CODE + 4 * i) for i in range(3)), at(beq, CODE + 12)._replace(target=target))
    second = at(add, CODE + 16), at(back, CODE + 20)._replace(target=CODE)
    there = at(back, target + 4)._replace(target=CODE) if nested else at(add, target + 4)
    blocks = Block(0, first), Block(1, second)
    edges = [SuperEdge(0, 1, EdgeKind.FALLTHROUGH), SuperEdge(1, 0, EdgeKind.TAKEN)]
    program = program_of(Random(0), blocks, edges)
    path = Path([0, 1] * 10, [0, 1] * 9 + [0], [])
    for number in range(20):
        insns = blocks[number % 2].insns
        taken = number % 2 == 1
        path.steps.append(
            [ExecutedInsn(i, not i.conditional, taken and i is insns[-1]) for i in insns]
        )
    program = replace(program, graph=replace(program.graph, exits=(1,)))
    known = {insn.addr: insn for insn in (*first, *second, there)}

    def code(addr: int, thumb: bool) -> Insn | None:
        return known.get(addr) or at(add, addr)

    return _contradicted(Eager(1), program, path, 16, BranchPrediction.DYNAMIC, code)


class Eager(Random):
    """Fetch always runs ahead as far as it may."""

    def randint(self, a: int, b: int) -> int:
        return b

    def random(self) -> float:
        return 0.5


def _charges(
    program: Program,
    path: Path,
    ahead: int,
    entry: EntryState,
    prediction: BranchPrediction,
    code: InsnAt,
) -> ChargedCosts:
    graph = replace(program.graph, exits=(path.nodes[-1],))
    caches = replace(KZM.hierarchy(ahead), prediction=prediction)
    costs = replace(timing(CoreProfile.NOMINAL, entry), branches=BranchModel(None, prediction))
    classes = classify(graph, program, caches, code)
    return charge(graph, classes, program, caches, costs, exception=False)


def _compared(
    machine: PredictingMachine, program: Program, path: Path, charges: ChargedCosts
) -> Case:
    concrete, bound = run(machine, program, path), charged(charges, path)
    assert concrete <= bound, f"{concrete} cycles, but {bound} are charged"
    return Case(concrete, bound, machine.wrong)


def _aimed(program: Program, random: Random) -> Program:
    """The program with each direct branch aimed at the block where its first edge leads."""
    graph = program.graph
    nodes = []
    for index, node in enumerate(graph.nodes):
        insns, last = node.block.insns, node.block.last
        if last.target is not None:
            edges = [graph.edges[e] for e in graph.successors[index]]
            aims = [e.dst for e in edges if e.kind is not EdgeKind.FALLTHROUGH]
            aims.append(random.randrange(len(graph.nodes)))
            last = last._replace(target=graph.nodes[aims[0]].block.addr)
        nodes.append(replace(node, block=replace(node.block, insns=(*insns[:-1], last))))
    return replace(program, graph=replace(graph, nodes=tuple(nodes)))


def _code_of(program: Program) -> InsnAt:
    """Its instructions; between the blocks others, of some programs with branches near them."""
    blocks = [node.block for node in program.graph.nodes]
    there = {insn.addr: insn for block in blocks for insn in block.insns}
    between = pool(BETWEEN if len(there) % 2 else ADD)

    def code(addr: int, thumb: bool) -> Insn | None:
        insn = there.get(addr)
        if insn is None:
            insn = at(between[addr * 2654435761 % 4093 % len(between)], addr)
            if insn.target is not None:
                block = blocks[addr // 4 % len(blocks)]
                insn = insn._replace(target=block.addr + 4096 + addr % 96)
            there[addr] = insn
        return insn

    return code
