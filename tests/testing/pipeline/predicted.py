"""Random programs on a machine that predicts branches, and their charges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TypedDict

from cache.cache_simulator import SimulatedCache
from cache.classify import classify
from cache.policy import ReplacementPolicy
from cache.wrong_paths import InsnAt
from pipeline.charge import ChargedCosts, charge
from pipeline.classes import InsnClass
from pipeline.core import load_core
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus
from pipeline.predictor_simulator import PredictingMachine, SimulatedPredictor
from pipeline.return_stack_simulator import SimulatedReturnStack
from pipeline.timing_model import BranchModel, CoreProfile, EntryState
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import Insn
from quoll.arm.return_stack import ReturnAddress
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

__all__ = ["check_fetches", "check_loop", "check_predicted", "nested_program"]

ADD = "add r0, r1, r2\n"
BETWEEN = "beq .\nb .\nbl .\nbx lr\n" + 9 * ADD
FUNCTIONS = 6


def check_predicted(random: Random, prediction: BranchPrediction) -> Case:
    """One random program, path and initial state. Raises AssertionError if the bound is lower."""
    text, special = random.choice([MIXED, WARM, ACCESSES]), random.random() < 0.2
    if random.random() < 0.5:
        program, length = nested_program(random, text), 60
    else:
        program, length = random_program(random, maintenance=special, text=text), 14
    program = _aimed(program, random)
    path = random_path(program, random, length)
    ahead, entry = random.choice([0, 8, 48]), random.choice([ENTRY, QUIET])
    code = _code_of(program)
    charges = _charges(program, path, ahead, entry, prediction, code)
    branches = [insn.addr for node in program.graph.nodes for insn in node.block.insns]
    predictor = SimulatedPredictor(prediction, random, [*branches, *range(CODE, CODE + 999, 4)])
    machine = random_machine(
        random,
        ahead,
        entry,
        made=lambda core, memory, chip: PredictingMachine(
            core, memory, chip, predictor, code, **_returns(prediction, branches, random)
        ),
    )
    assert isinstance(machine, PredictingMachine)
    return _compared(machine, program, path, charges)


class ReturnsOfMachine(TypedDict):
    """The arguments of a machine about its return stack."""

    returns: SimulatedReturnStack | None
    steady: bool


def _returns(
    prediction: BranchPrediction, branches: Sequence[int], random: Random
) -> ReturnsOfMachine:
    """A return stack with addresses of the program, and of others."""
    addresses = [ReturnAddress(at, thumb=False) for at in (*branches, *range(CODE, CODE + 999, 4))]
    returns = SimulatedReturnStack(random, addresses) if prediction.of_returns else None
    return {"returns": returns, "steady": prediction is BranchPrediction.RETURNS}


def nested_program(random: Random, text: str) -> Program:
    """Functions of straight and conditional code that call each other, each call expanded."""
    plain, ends = pool(text), pool("beq .\nbl .\nbx lr\npop {r4, r5, pc}\n")
    functions: list[tuple[list[Block], list[int | None]]] = []  # blocks, and whom each calls
    for number in range(FUNCTIONS):
        addr = CODE + 4096 * 3 * number + 4 * random.randrange(40)
        blocks, calls = [], list[int | None]()
        count = random.randint(1, 4)
        for index in range(count):
            insns = []
            for _ in range(random.randint(0, 12)):
                insns.append(at(random.choice(plain), addr))
                addr += 4
            call = None
            if index == count - 1:
                end = random.choice(ends[2:])
            elif number < FUNCTIONS - 1 and random.random() < 0.7:
                end, call = ends[1], random.randint(number + 1, min(number + 2, FUNCTIONS - 1))
            else:
                end = ends[0]
            insns.append(at(end, addr))
            addr += 4
            blocks.append(Block(index, tuple(insns)))
            calls.append(call)
        functions.append((blocks, calls))
    nodes: list[Block] = []
    edges: list[SuperEdge] = []

    def expand(number: int) -> tuple[int, int]:
        """Add a copy of a function; its first and its last node."""
        blocks, calls = functions[number]
        first = len(nodes)
        nodes.extend(blocks)
        for node, call in enumerate(calls[:-1], first):
            last = first + len(blocks) - 1
            if call is None:
                edges.append(SuperEdge(node, node + 1, EdgeKind.FALLTHROUGH))
                edges.append(SuperEdge(node, min(node + 2, last), EdgeKind.TAKEN))
            else:
                entered, left = expand(call)
                edges.append(SuperEdge(node, entered, EdgeKind.CALL))
                edges.append(SuperEdge(left, node + 1, EdgeKind.RETURN))
        return first, first + len(blocks) - 1

    expand(0)
    return program_of(random, nodes, edges)


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
    nested = random.random() < 0.5
    made = (
        nested_program(random, ADD)
        if nested
        else random_program(random, maintenance=False, text=ADD)
    )
    program = _aimed(made, random)
    path = random_path(program, random, 60 if nested else 30)
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
        **_returns(prediction, [insn.addr for insn in _insns(program)], random),
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


def _insns(program: Program) -> Iterator[Insn]:
    for node in program.graph.nodes:
        yield from node.block.insns


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
