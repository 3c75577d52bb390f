"""Random programs on the concrete machine, against the analysis's charge for their path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from cache.cache_simulator import CacheOutcome, SimulatedCache
from cache.classify import classify
from cache.events import FlowOrder
from cache.geometry import CacheGeometry, CacheHierarchy
from cache.policy import ReplacementPolicy
from pipeline import dual_issue
from pipeline.block_times import BlockTimer, block_times, transfers
from pipeline.charge import ChargedCosts, charge
from pipeline.core import CoreTable, load_core
from pipeline.costs import CostCause
from pipeline.dual_issue_simulator import concrete_machine
from pipeline.maxplus import IDLE
from pipeline.native import CompiledTrace, Instructions
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.timing_model import BranchModel, CoreProfile, EntryState, MemoryLatencies, TimingModel
from pipeline.tlb_model import TlbModel
from pipeline.tlb_simulator import Tlb
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.supergraph import Context, Supergraph, SuperNode
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import (
    CODE,
    DATA,
    DEVICE,
    FOREIGN,
    MAINTENANCE,
    PLAIN,
    Program,
    Words,
    at,
    pool,
    random_program,
)
from tests.testing.cache.walks import hierarchy
from tests.testing.pipeline.climbed import climb
from tests.testing.pipeline.sampled import sample

ARITHMETIC = """
    add r0, r1, r2
    adds r3, r0, r4
    cmp r0, r3
    addne r1, r5, r6
    moveq r2, r7
    adc r5, r5, r0
    mov r6, r1, lsl #3
    add r7, r0, r1, lsl r2
    mul r8, r0, r1
    muls r0, r1, r2
    mla r2, r8, r1, r0
    umull r4, r9, r0, r1
    smlabb r5, r0, r1, r2
    clz r3, r8
    uxtb r1, r3
    uxtb r1, r4
    mul r6, r4, r1
    qadd r9, r0, r1
    mrs r0, cpsr
    msr cpsr_f, r0
    mrc p15, 0, r6, c1, c0, 0
"""
ACCESSES = """
    ldr r0, [r4]
    ldr r1, [r0]
    ldr r2, [r1, r0, lsl #2]
    ldr r3, [r2, -r1]
    ldr r5, [r4], #4
    ldrb r6, [r5]
    ldrneb r6, [r1]
    str r6, [r4, #4]!
    streq r0, [r4]
    ldmia r4!, {r0-r3, r5-r7}
    stmia r4, {r0-r3, r5-r7}
    ldrd r2, r3, [r0]
    strd r2, r3, [r4]
    pld [r1]
    pld [r4, r0, asr #2]
    ldrb r6, [r4, r0, lsr #31]
    ldr r5, [r4, -r1]!
    str r6, [r4], r0, lsl #3
    ldrd r2, r3, [r4], #8
    swp r0, r1, [r4]
"""
WARM = ARITHMETIC + ACCESSES
MIXED = PLAIN + WARM
MEMORY = MemoryLatencies(60, None, 3, True, True)
ARMV7_OPERATIONS = """
    mcr p15, 0, r0, c7, c5, 0
    mcr p15, 0, r0, c7, c5, 4
    mcr p15, 0, r0, c7, c10, 1
    mcr p15, 0, r0, c7, c11, 1
    mcr p15, 0, r0, c7, c10, 4
    mcr p15, 0, r0, c7, c14, 1
    mcr p15, 0, r0, c13, c0, 1
"""
ENTRY = EntryState(3, 8, 1)


QUIET = EntryState(0, 0, 0)


@dataclass(frozen=True)
class Board:
    """A core, its caches and memory, and instructions that it does not have."""

    core: str
    memory: MemoryLatencies
    line_bytes: int
    operations: str

    @property
    def geometries(self) -> tuple[CacheGeometry, CacheGeometry]:
        """Real and of one way: 128 sets either way."""
        line = self.line_bytes
        return CacheGeometry(512 * line, 4, line), CacheGeometry(128 * line, 1, line)

    def hierarchy(self, ahead: int) -> CacheHierarchy:
        """With caches of the board's lines."""
        l1 = self.geometries[0]
        return replace(hierarchy(ahead), l1i=l1, l1d=l1)


KZM = Board("arm1136", MEMORY, 32, MAINTENANCE)
CUBIEBOARD = Board(
    "cortex-a8", MemoryLatencies(90, 12, 28, True, True, 8, 13, 16), 64, ARMV7_OPERATIONS
)
BOARDS = (KZM, CUBIEBOARD)


def timing(
    profile: CoreProfile,
    entry: EntryState = ENTRY,
    board: Board = KZM,
    tlb: TlbModel | None = None,
) -> TimingModel:
    """As ``kzm`` or ``cubieboard``, in either profile."""
    return TimingModel(board.core, profile, board.memory, BranchModel(None), entry, tlb)


@dataclass(frozen=True)
class Path:
    """Nodes and edges in turn, and the executed instructions."""

    nodes: list[int]
    edges: list[int]
    steps: list[list[ExecutedInsn]]  # per node


def random_path(program: Program, random: Random, length: int) -> Path:
    """A walk from the entry, with addresses and conditions that fit it."""
    graph = program.graph
    foreign_cached = random.random() < 0.5
    words = Words(program, random)
    node, nodes, edges, steps = graph.entry, [], [], []
    for _ in range(length):
        nodes.append(node)
        out = graph.successors[node]
        edge = random.choice(out) if out and len(nodes) < length else None
        taken = edge is not None and graph.edges[edge].kind is not EdgeKind.FALLTHROUGH
        if edge is None:
            taken = transfers(graph.nodes[node].block.last)
        steps.append(_executed(program, node, taken, foreign_cached, words, random))
        if edge is None:
            break
        edges.append(edge)
        words.follow(edge)
        node = graph.edges[edge].dst
    return Path(nodes, edges, steps)


def _executed(
    program: Program, node: int, taken: bool, foreign_cached: bool, words: Words, random: Random
) -> list[ExecutedInsn]:
    block = program.graph.nodes[node].block
    found = []
    for index, insn in enumerate(block.insns):
        last = index == len(block.insns) - 1 and transfers(insn)
        passed = not insn.conditional or random.random() < 0.5
        if last:
            passed = taken or not insn.conditional
        address, cached = None, True
        if insn.memory is not None:
            address = words.address(node, index, insn)
            device = DEVICE <= address < DEVICE + 0x100000
            cached = not device and (address >= FOREIGN + 8192 or foreign_cached)
        found.append(ExecutedInsn(insn, passed, last and taken, address, cached))
    return found


def random_machine(
    random: Random,
    ahead: int,
    entry: EntryState,
    board: Board = KZM,
    made: Callable[[CoreTable, MemoryBus, FetchAndCaches], PipelineMachine] = concrete_machine,
) -> PipelineMachine:
    """Any state that an entry may find: contents, outstanding accesses, busy registers."""
    geometry = random.choice(board.geometries)
    policy = random.choice(list(ReplacementPolicy))
    caches = [SimulatedCache(geometry, policy, random) for _ in range(2)]
    for cache, base in zip(caches, (CODE, DATA), strict=True):
        lines = [geometry.line(base) + 128 * k + i for k in range(4) for i in range(12)]
        cache.pollute(lines, random.choice([0.0, 0.6, 1.0]))
    core = load_core(board.core, CoreProfile.NOMINAL)
    chip = FetchAndCaches(caches[0], caches[1], ahead, random)
    level2 = random.choice([None, _level2(board, random)])
    memory = MemoryBus(board.memory, dirty=random.choice([7, 10]), l2=level2)
    machine = made(core, memory, chip)
    for _ in range(random.randint(0, entry.load_misses)):
        machine.fills.append(machine.memory.line(0)[1])
        machine.memory.write(0)
    for _ in range(random.randint(0, entry.store_words)):
        machine.buffer.append(machine.memory.write(0))
    for _ in range(random.randint(0, entry.fetch_misses)):
        machine.memory.line(0)
    if random.random() < 0.7:
        _busy(machine, random)
    return machine


def _level2(board: Board, random: Random) -> SimulatedCache:
    """A small second-level cache with some of the program's lines."""
    line = board.line_bytes
    policy = random.choice(list(ReplacementPolicy))
    cached = SimulatedCache(CacheGeometry(1024 * line, 8, line), policy, random)
    lines = [
        base // line + 128 * k + i for base in (CODE, DATA) for k in range(9) for i in range(9)
    ]
    cached.pollute(lines, random.choice([0.0, 0.6, 1.0]))
    return cached


def _busy(machine: PipelineMachine, random: Random) -> None:
    """Results, locks, flags and the unit as some instructions before may have left them."""
    longest, board = machine.core.longest, machine.board
    for register in range(15):
        board.result[register] = random.randint(-1, longest)
        board.unlocked[register] = random.randint(-1, longest)
    board.flags = random.randint(-1, min(6, longest))
    board.setter = random.choice([None, random.randint(-9, 0)])
    board.unit = random.randint(-1, longest)


class WarmCache(SimulatedCache):
    """A cache that holds everything."""

    @property
    def always_hits(self) -> bool:
        return True

    def load(self, line: int) -> CacheOutcome:
        return CacheOutcome(True)

    def store(self, line: int) -> CacheOutcome:
        return CacheOutcome(True)


def warm_machine(random: Random, board: Board = KZM) -> PipelineMachine:
    """Only the pipeline is at work."""
    caches = [
        WarmCache(board.geometries[1], ReplacementPolicy.ROUND_ROBIN, random) for _ in range(2)
    ]
    core = load_core(board.core, CoreProfile.NOMINAL)
    chip = FetchAndCaches(caches[0], caches[1], 0, random)
    return concrete_machine(core, MemoryBus(board.memory), chip)


def check_warm(random: Random, profile: CoreProfile, length: int = 8, board: Board = KZM) -> Case:
    """As ``check`` when everything hits, from an idle or a busy pipeline."""
    program = random_program(random, maintenance=False, text=WARM)
    for key in program.values:
        program.values[key] = ValueSet.of(DATA + 4 * random.randrange(200))
    program.origins.clear()
    flow = FlowOrder.of(program.graph)
    machine = warm_machine(random, board)
    idle = random.random() < 0.5
    if not idle:
        _busy(machine, random)
    start = dual_issue.IDLE if machine.core.dual_issue else IDLE
    costs = timing(profile, board=board)
    timer = BlockTimer(costs, aligned=True)
    times = block_times(program.graph, flow, program, timer, entry=start if idle else None)
    path = random_path(program, random, length)
    concrete = run(machine, program, path)
    bound = stalls = 0
    for node in path.nodes:
        time = times.nodes[node]
        assert time is not None
        bound += time.issue + time.stall
        stalls += time.stall
    for edge in path.edges:
        source = times.nodes[program.graph.edges[edge].src]
        assert source is not None
        way = source.taken if times.takes[edge] else source.falls
        assert way is not None
        bound += way[0]
    assert time is not None
    bound += time.leaving + time.drain
    assert concrete <= bound, f"{concrete} cycles, but the bound is {bound}"
    return Case(concrete, bound, stalls)


def run(machine: PipelineMachine, program: Program, path: Path) -> int:
    """Cycles from the exception's first instruction until all is quiet."""
    graph = program.graph
    machine.start(graph.nodes[path.nodes[0]].block.addr)
    for position, steps in enumerate(path.steps):
        for step in steps:
            machine.execute(step)
        if position < len(path.steps) - 1 and steps[-1].taken:
            machine.start(graph.nodes[path.nodes[position + 1]].block.addr)
    return machine.finished


def charged(charges: ChargedCosts, path: Path) -> int:
    """The analysis's charge for ``path``, whose last node is an exit."""
    costs = charges.costs
    nodes = sum(costs.start) + sum(costs.node_cycles(n) for n in path.nodes)
    edges = sum(costs.edge_cycles(e) for e in path.edges)
    return nodes + edges - costs.excess(Counter(path.nodes), Counter(path.edges))


@dataclass(frozen=True)
class Case:
    """One comparison, in cycles."""

    concrete: int
    bound: int
    stalls: int


def check(
    random: Random,
    profile: CoreProfile = CoreProfile.WCET,
    length: int = 12,
    board: Board = KZM,
    tlb: TlbModel | None = None,
) -> Case:
    """One random program, path and initial state. Raises AssertionError if the bound is lower."""
    ahead = random.choice([0, 8, 48])
    text = random.choice([MIXED, WARM, ACCESSES])
    special = random.random() < 0.3
    program = random_program(random, maintenance=special, text=text, operations=board.operations)
    path = random_path(program, random, length)
    program = replace(program, graph=replace(program.graph, exits=(path.nodes[-1],)))
    caches = board.hierarchy(ahead)
    classes = classify(program.graph, program, caches)
    entry = random.choice([ENTRY, QUIET])
    costs = timing(profile, entry, board, tlb)
    charges = charge(program.graph, classes, program, caches, costs, exception=False)
    machine = random_machine(random, ahead, entry, board)
    if tlb is not None:
        pages = [tlb.page(a) for a in (CODE, DATA, DATA + 4096, FOREIGN, DEVICE)]
        machine.tlb = Tlb(tlb, pages, random)
    concrete = run(machine, program, path)
    bound = charged(charges, path)
    assert concrete <= bound, f"{concrete} cycles, but {bound} are charged"
    stalls = sum(charges.costs.nodes[n][CostCause.STALL] for n in path.nodes)
    return Case(concrete, bound, stalls)


def straight_line(random: Random, profile: CoreProfile, board: Board, length: int = 40) -> Case:
    """One block without conditions from an idle pipeline, every access a hit at a known place."""
    plain = [insn for insn in pool(WARM) if insn.flow is ControlFlow.NEXT and not insn.conditional]
    insns = tuple(at(random.choice(plain), CODE + 4 * i) for i in range(length))
    graph = Supergraph(
        (Context(None, None, CODE),),
        (SuperNode(0, Block(0, insns)),),
        (),
        ((),),
        ((),),
        0,
        (0,),
        (),
    )
    places: dict[tuple[int, int], ValueSet | None] = {
        (0, i): ValueSet.of(DATA + 4 * random.randrange(200))
        for i, insn in enumerate(insns)
        if insn.memory is not None
    }
    program = Program(graph, places)
    machine = warm_machine(random, board)
    start = dual_issue.IDLE if machine.core.dual_issue else IDLE
    costs = timing(profile, board=board)
    timer = BlockTimer(costs, aligned=True)
    times = block_times(graph, FlowOrder.of(graph), program, timer, entry=start).nodes[0]
    assert times is not None
    path = random_path(program, random, 1)
    concrete, bound = run(machine, program, path), times.issue + times.stall + times.drain
    assert concrete <= bound, f"{concrete} cycles, but the bound is {bound}"
    return Case(concrete, bound, times.stall)


def sampled(
    random: Random, profile: CoreProfile, board: Board, states: int, proposals: int = 0
) -> Case:
    """One random program and path from many initial states, on the compiled machine.

    ``proposals``: of states that take more cycles, from the first one on.
    """
    ahead = random.choice([0, 8, 48, 144])
    special = random.random() < 0.3
    text = random.choice([MIXED, WARM, ACCESSES])
    program = random_program(random, maintenance=special, text=text, operations=board.operations)
    path = random_path(program, random, 16)
    program = replace(program, graph=replace(program.graph, exits=(path.nodes[-1],)))
    caches = board.hierarchy(ahead)
    classes = classify(program.graph, program, caches)
    entry = random.choice([ENTRY, QUIET])
    charges = charge(
        program.graph, classes, program, caches, timing(profile, entry, board), exception=False
    )
    bound = charged(charges, path)
    core = load_core(board.core, CoreProfile.NOMINAL)
    geometry = board.geometries[0]
    cold = [SimulatedCache(geometry, ReplacementPolicy.RANDOM, random) for _ in range(2)]
    machine = concrete_machine(
        core, MemoryBus(board.memory), FetchAndCaches(cold[0], cold[1], ahead, random)
    )
    steps = [step for node in path.steps for step in node]
    seed = random.getrandbits(62)
    trace = CompiledTrace.of(Instructions(core), steps)
    found = sample(machine, trace, entry, states, seed)
    assert found.most <= bound, f"state {found.worst}: {found.most} cycles, {bound} charged"
    most = climb([(machine, trace)], proposals, random).most
    assert most <= bound, f"climbing: {most} cycles, {bound} charged"
    stalls = sum(charges.costs.nodes[n][CostCause.STALL] for n in path.nodes)
    return Case(max(found.most, most), bound, stalls)
