"""Replays recorded executions on the concrete machine, against bounds and costs.

An execution is a path of the graph (``quoll.recordings.follow``). Its instructions and data
addresses are executed by the concrete pipeline with four-way caches of the real policies, on
nominal figures (rule 17), from random initial states. The cycles must be at most the bound of the
entry and, more sharply, at most the charged cycles of this very path.

A recording shows the accesses, and thus the conditions of conditional accesses and branches; the
conditions of other instructions are random, and equal for all that read the same flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from random import Random

import numpy as np

from cache.cache_simulator import SimulatedCache
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy
from cache.wrong_paths import InsnAt, constant_code
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from pipeline.block_times import transfers
from pipeline.core import CoreTable, issue_width, load_core
from pipeline.dual_issue_simulator import concrete_machine
from pipeline.native import CompiledTrace as Steps
from pipeline.native import Instructions, SplitMix, execute
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.predictor_simulator import PredictingMachine, SimulatedPredictor
from pipeline.return_stack_simulator import SimulatedReturnStack
from pipeline.timing_model import CoreProfile, TimingModel
from pipeline.tlb_simulator import Tlb
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import AccessKind, Insn
from quoll.arm.return_stack import ReturnAddress, is_call
from quoll.cfg.cfg import EdgeKind
from quoll.errors import InputError, UsageError
from quoll.image.image import Image
from quoll.image.memory_map import RegionKind
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.follow import NodeVisit
from quoll.recordings.trace import End, Execution, Trace
from wcet.analysis.prepared import PreparedPaths
from wcet.executions.recorded_paths import RecordedPath, cut
from wcet.platforms.platform_model import Platform

__all__ = [
    "PathReplay",
    "ReplayPath",
    "ReplaySubject",
    "StartContents",
    "TimelineStep",
    "by_path",
    "executed",
    "first_addresses",
    "initial",
    "moments",
    "nominal_core",
    "random_machine",
    "replay",
    "replay_paths",
    "takes_exception",
    "taking_the_exception",
]

DISPLACED = (
    0x1000_0000  # lines of user programs that pollute the caches, outside the kernel's window
)
PREDICTED = 128  # branches of user programs that a predictor may remember


class StartContents(Enum):
    """Initial contents of the caches; the one with most misses first."""

    POLLUTED = "polluted"  # other programs' lines in all ways, most of them dirty
    COLD = "cold"  # nothing valid
    MIXED = "mixed"  # the same, with some of the execution's own lines


@dataclass(frozen=True, slots=True)
class ReplayPath:
    """A path of a graph, instruction by instruction; ``taken``: it transferred control.

    Code inside a function that a fact replaces is not part of it.
    """

    insns: tuple[Insn, ...]
    taken: tuple[bool, ...]
    origin: tuple[int, ...]  # per instruction: its position in the execution

    @staticmethod
    def of(graph: Supergraph, visits: Sequence[NodeVisit]) -> ReplayPath:
        """The path along ``visits``, whose last instruction leaves it, if it is a transfer."""
        insns: list[Insn] = []
        taken: list[bool] = []
        origin: list[int] = []
        for visit in visits:
            block = graph.nodes[visit.node].block
            insns += block.insns
            origin += range(visit.start, visit.start + len(block.insns))
            leaves = visit.edge is None or graph.edges[visit.edge].kind is not EdgeKind.FALLTHROUGH
            taken += [False] * (len(block.insns) - 1) + [leaves and transfers(block.last)]
        return ReplayPath(tuple(insns), tuple(taken), tuple(origin))


def executed(
    path: ReplayPath, accesses: Mapping[int, int], platform: Platform, random: Random
) -> list[ExecutedInsn]:
    """The steps of one execution. ``accesses``: position in the execution -> first address.

    Raises InputError where a recorded access is missing.
    """
    memory = platform.hierarchy.memory
    foreign_cached = random.random() < 0.5
    accesses = {at: accesses[o] for at, o in enumerate(path.origin) if o in accesses}
    holds = _conditions(path, accesses, random)
    steps: list[ExecutedInsn] = []
    for position, insn in enumerate(path.insns):
        passed, address, cached = holds[position], None, True
        if insn.memory is not None and passed:
            address = accesses.get(position)
            if address is None and not _may_do_nothing(insn):
                raise InputError(
                    f"the recording lacks the access of {insn.text} at {insn.addr:#x}",
                    hint="it was made by another recorder or is of another kernel",
                )
        if address is not None:
            region = memory.region(address)
            cached = foreign_cached if region is None else region.kind is RegionKind.CACHED
        steps.append(ExecutedInsn(insn, passed, path.taken[position], address, cached))
    return steps


def _may_do_nothing(insn: Insn) -> bool:
    """Whether the instruction may make no access although it is executed."""
    memory = insn.memory
    assert memory is not None
    return memory.access is AccessKind.PRELOAD or (
        memory.exclusive and memory.access is AccessKind.STORE
    )


def _conditions(path: ReplayPath, accesses: Mapping[int, int], random: Random) -> list[bool]:
    """Per instruction whether its condition holds: recorded, else random per value of the flags."""
    flags = 0  # number of the present value of the flags
    keys: list[tuple[int, int]] = []
    known: dict[tuple[int, int], bool] = {}
    for position, insn in enumerate(path.insns):
        key = (flags, insn.cond >> 1)
        keys.append(key)
        if insn.conditional and transfers(insn):
            known[key] = path.taken[position] ^ (insn.cond & 1 == 1)
        elif insn.conditional and insn.memory is not None and not _may_do_nothing(insn):
            known[key] = (position in accesses) ^ (insn.cond & 1 == 1)
        flags += insn.sets_flags
    found: list[bool] = []
    for insn, key in zip(path.insns, keys, strict=True):
        if not insn.conditional:
            found.append(True)
            continue
        if key not in known:
            known[key] = random.random() < 0.5
        found.append(known[key] ^ (insn.cond & 1 == 1))
    return found


@cache
def nominal_core(timing: TimingModel) -> CoreTable:
    """The nominal core, with the platform's constant time for every branch, if it has one."""
    core = load_core(timing.core, CoreProfile.NOMINAL, timing.own_rows)
    constant = timing.branches.constant
    if constant is None:
        return core
    rows = dict(core.rows)
    for key, row in rows.items():
        if key[0] in ("B", "BX"):
            rows[key] = replace(row, issue=constant)
        elif key[0] == "FLAGS_TO_TARGET":
            rows[key] = replace(row, latency=(0,))
    return replace(core, rows=rows)


def random_machine(
    platform: Platform,
    steps: Sequence[ExecutedInsn],
    contents: StartContents,
    random: Random,
    *,
    real_l2: bool = False,
    code: InsnAt = lambda addr, thumb: None,
) -> PipelineMachine:
    """A machine in a random state that an entry may have: caches, pending accesses, busy units.

    An enabled L2 misses on every access, except for locked lines; with ``real_l2`` it is a cache
    with contents of its own. ``code``: the instructions that a predictor may fetch.
    """
    hierarchy, timing = platform.hierarchy, platform.timing
    if hierarchy.locked_i or hierarchy.locked_d:
        raise UsageError(
            "recorded executions cannot be run on caches with lines locked in level 1",
            hint="leave out caches.l1i.locked and caches.l1d.locked: no bound gets smaller by that",
        )
    if (
        hierarchy.initial_i
        or hierarchy.initial_d
        or hierarchy.l1d.write_allocate
        or (hierarchy.l1d.write_through)
    ):
        raise UsageError(
            "recorded executions are run on caches of any contents that are written back to and "
            "allocate on reads only",
            hint="leave out initial, held, write_allocate and write_through of caches.l1i and l1d",
        )
    any_policy = (
        hierarchy.policy is ReplacementPolicy.ONE_WAY
    )  # then the bounds hold for every policy
    policy = random.choice(list(ReplacementPolicy)) if any_policy else hierarchy.policy
    icache, dcache = (
        SimulatedCache(hierarchy.l1i, policy, random),
        SimulatedCache(hierarchy.l1d, policy, random),
    )
    level2 = None
    if real_l2 and hierarchy.l2 is not None:
        level2 = SimulatedCache(hierarchy.l2, policy, random)
    if contents != StartContents.COLD:
        own = contents == StartContents.MIXED
        own_code = {s.insn.addr for s in steps} if own else set()
        data = {s.address for s in steps if own and s.address is not None and s.cached}
        fraction = random.choice([0.5, 1.0]) if own else 1.0
        for cached, used in ((icache, own_code), (dcache, data), (level2, own_code | data)):
            if cached is not None:
                lines = sorted({cached.geometry.line(addr) for addr in used})
                cached.pollute(lines + _foreign(cached.geometry), fraction)
    memory = MemoryBus(timing.memory, locked=hierarchy.locked, l2=level2)
    chip = FetchAndCaches(icache, dcache, hierarchy.fetch_ahead, random)
    machine = _machine(platform, steps, memory, chip, code)
    _outstanding(machine, timing, random)
    if timing.tlb is not None:
        addresses = [a for s in steps for a in (s.insn.addr, s.address) if a is not None]
        machine.tlb = Tlb(timing.tlb, [timing.tlb.page(a) for a in addresses], random)
    return machine


def _machine(
    platform: Platform,
    steps: Sequence[ExecutedInsn],
    memory: MemoryBus,
    chip: FetchAndCaches,
    code: InsnAt,
) -> PipelineMachine:
    """The machine; a predictor remembers some branches of the path, and of other programs."""
    core, hierarchy = nominal_core(platform.timing), platform.hierarchy
    if hierarchy.prediction is BranchPrediction.OFF:
        return concrete_machine(core, memory, chip, aligned=hierarchy.aligned)
    branches = sorted({step.insn.addr for step in steps if step.insn.target is not None})
    branches += [DISPLACED + 4 * chip.random.randrange(1 << 20) for _ in range(PREDICTED)]
    chip.random.shuffle(branches)
    predictor = SimulatedPredictor(hierarchy.prediction, chip.random, branches)
    returns = None
    if hierarchy.prediction.of_returns:
        left = {ReturnAddress(s.insn.next, s.insn.thumb) for s in steps if is_call(s.insn)}
        left |= {ReturnAddress(branch, thumb=False) for branch in branches[:PREDICTED]}
        returns = SimulatedReturnStack(chip.random, sorted(left))
    return PredictingMachine(
        core,
        memory,
        chip,
        predictor,
        code,
        aligned=hierarchy.aligned,
        returns=returns,
        steady=hierarchy.prediction is BranchPrediction.RETURNS,
    )


def _foreign(geometry: CacheGeometry) -> list[int]:
    """Lines of another program: one for every way."""
    first = geometry.line(DISPLACED)
    return list(range(first, first + geometry.sets * geometry.ways))


def _outstanding(machine: PipelineMachine, timing: TimingModel, random: Random) -> None:
    """Outstanding accesses of the interrupted program, up to the maximum."""
    entry, memory = timing.entry, machine.memory
    full = random.random() < 0.5
    outstanding = [n if full else random.randint(0, n) for n in
             (entry.load_misses, entry.store_words, entry.fetch_misses)]  # fmt: skip
    for _ in range(outstanding[0]):
        if timing.memory.dirty_l1_victims:
            memory.write(0)
        machine.fills.append(memory.line(0)[1])
    for _ in range(outstanding[1]):
        machine.buffer.append(memory.write(0))
    for _ in range(outstanding[2]):
        memory.line(0)
    longest, board = machine.core.longest, machine.board
    for register in range(15):
        board.result[register] = longest if full else random.randint(-1, longest)
        board.unlocked[register] = longest if full else random.randint(-1, longest)
    board.unit = longest if full else random.randint(-1, longest)
    board.setter = random.choice([None, random.randint(-9, 0)])


def replay(
    machine: PipelineMachine,
    steps: Sequence[ExecutedInsn],
    *,
    exception: bool,
    instructions: Instructions | None = None,
) -> int:
    """Cycles from the start of the path, including taking the exception, until the machine is idle.

    ``instructions`` are reused between replays on one core.
    """
    if exception:
        machine.clock = taking_the_exception(machine.core)
    known = instructions or Instructions(machine.core, aligned=machine.aligned)
    return execute(machine, Steps.of(known, steps))


def taking_the_exception(core: CoreTable) -> int:
    """Cycles before the first instruction of an exception's path."""
    return max(core.row("EXCEPTION_ENTRY", kind).issue for kind in ("any", "asynchronous"))


@dataclass(frozen=True, slots=True)
class ReplaySubject:
    """An analysed entry, and its platform."""

    name: str
    paths: tuple[PreparedPaths, ...]  # for every start, the entry's first
    image: Image
    platform: Platform
    real_l2: bool = False  # see random_machine()

    @property
    def width(self) -> int:
        """The most instructions that its core issues in a cycle."""
        return issue_width(self.platform.timing)


@dataclass(frozen=True, slots=True)
class PathReplay:
    """One path, with its executions, its charged cycles and its most observed cycles.

    ``executions``: the number of executions that start with it. The beginning of a path has no
    charge (None), as its continuation is unknown. ``interrupted``: the charge if an interrupt
    arrives before the test that ends it, else of the path itself; None if that has several ways.
    """

    executions: int
    instructions: int
    charged: int | None
    most: int
    contents: StartContents | None  # of the caches, in the slowest replay; None if measured
    number: int  # of the path
    state: int  # initial state of the slowest replay
    interrupted: int | None

    @property
    def ratio(self) -> float | None:
        """Charged cycles over observed cycles; None without a charge."""
        return None if self.charged is None else self.charged / self.most

    def exceeds(self, bound: int) -> bool:
        """Whether it took longer than ``bound``, or than its charge."""
        return self.most > (bound if self.charged is None else min(bound, self.charged))


def by_path(trace: Trace) -> dict[int, list[list[Execution]]]:
    """Complete executions, by entry address and then by path."""
    paths: dict[tuple[int, bytes], list[Execution]] = {}
    alike = {
        execution: paths.setdefault((execution.entry, execution.pcs.tobytes()), [])
        for execution in trace.distinct()
        if execution.end is not End.STOPPED
    }
    for execution in trace.executions:
        if execution in alike:
            alike[execution].append(execution)
    entries: dict[int, list[list[Execution]]] = {}
    for (entry, _), executions in paths.items():
        entries.setdefault(entry, []).append(executions)
    return entries


def replay_paths(
    subject: ReplaySubject,
    paths: Sequence[Sequence[Execution]],
    states: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> list[PathReplay]:
    """Every path from ``states`` initial states, with its recordings in rotation.

    Raises ``quoll.recordings.follow.MissingEdge`` if one is no path of the graph. ``progress`` is
    called with the number of paths done.
    """
    platform = subject.platform
    instructions = Instructions(nominal_core(platform.timing), aligned=platform.hierarchy.aligned)
    found: list[PathReplay] = []
    for number, recorded in enumerate(cut(subject.paths, subject.image, paths, subject.width)):
        found.append(_replay_path(subject, recorded, instructions, number, states, seed))
        progress(number + 1)
    return found


def _replay_path(
    subject: ReplaySubject,
    recorded: RecordedPath,
    instructions: Instructions,
    number: int,
    states: int,
    seed: int,
) -> PathReplay:
    path = ReplayPath.of(recorded.paths.graph, recorded.visits)
    costs, ended = recorded.paths.costs, recorded.interrupted()
    charged = path_cycles(costs, (PathStep(v.node, v.edge) for v in recorded.visits))
    interrupted = None if ended is None else path_cycles(costs, ended)
    if any(execution.path_only for execution, _ in recorded.sources):
        whole = recorded.complete and recorded.paths.start is None
        cycles = _measured(recorded) if whole else None
        if cycles is None:
            raise InputError(
                "a trace of addresses shows no cycles of a path without 'cycles' behind it, nor of "
                "a part between two tests for interrupts",
                hint="wcet check-facts follows it; wcet help hardware-traces",
            )
        length = len(path.insns)
        count = len(recorded.sources)
        return PathReplay(count, length, charged, cycles, None, number, 0, charged)
    most, worst, at = -1, StartContents.COLD, 0
    for state in range(states):
        machine, steps, contents = initial(subject, path, recorded, number, state, seed)
        exception = takes_exception(subject, recorded)
        cycles = replay(machine, steps, exception=exception, instructions=instructions)
        if cycles > most:
            most, worst, at = cycles, contents, state
    return PathReplay(
        len(recorded.sources) if recorded.paths.start is None else 0,
        len(path.insns),
        charged if recorded.complete else None,
        most,
        worst,
        number,
        at,
        interrupted,
    )


def _measured(recorded: RecordedPath) -> int | None:
    """The most cycles that were measured of the path."""
    cycles = (execution.measured for execution, _ in recorded.sources)
    return max((count for count in cycles if count is not None), default=None)


def takes_exception(subject: ReplaySubject, recorded: RecordedPath) -> bool:
    """Whether the recorded path starts by taking an exception."""
    return recorded.paths.start is None and subject.name in subject.platform.entries


def initial(
    subject: ReplaySubject,
    path: ReplayPath,
    recorded: RecordedPath,
    number: int,
    state: int,
    seed: int,
) -> tuple[PipelineMachine, list[ExecutedInsn], StartContents]:
    """The machine, the steps and the contents of one replay, determined by its numbers."""
    random = SplitMix(Random(f"{seed} {subject.name} {number} {state}").getrandbits(64))
    execution, begin = recorded.sources[state % len(recorded.sources)]
    steps = executed(path, first_addresses(execution, begin, path), subject.platform, random)
    every = list(StartContents)
    contents = every[state] if state < len(every) else random.choice(every)
    machine = random_machine(
        subject.platform,
        steps,
        contents,
        random,
        real_l2=subject.real_l2,
        code=constant_code(subject.image),
    )
    return machine, steps, contents


def first_addresses(execution: Execution, begin: int, path: ReplayPath) -> dict[int, int]:
    """Lowest address that each instruction accessed, by its position behind ``begin``.

    From there, ``execution`` took ``path``.
    """
    rows = execution.access_words
    low, high = np.searchsorted(rows[:, 0], (begin, begin + path.origin[-1] + 1))
    first: dict[int, int] = {}
    for index, addr, _ in rows[low:high].tolist():
        first[index - begin] = min(addr, first.get(index - begin, addr))
    return first


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """An executed instruction: the clock before it, and the cycles until the next one may issue.

    Also its line misses (prefetches included), load misses, words stored past the cache, and
    ``memory``: the cycles for which the bus is busy beyond the clock.
    """

    addr: int
    text: str
    at: int
    cycles: int
    fetch_misses: int
    load_misses: int
    stored_words: int
    memory: int

    @property
    def reasons(self) -> str:
        """The causes as text, "" if only issue and operands took time."""
        causes = (
            (self.fetch_misses, "I-miss"),
            (self.load_misses, "D-miss"),
            (self.stored_words, "word stored past the cache"),
        )
        texts = [name if n == 1 else f"{n} × {name}" for n, name in causes if n]
        if texts and self.memory:
            texts.append(f"memory busy for {self.memory}")
        return "; ".join(texts)


def moments(
    machine: PipelineMachine, steps: Sequence[ExecutedInsn], *, exception: bool
) -> Iterator[TimelineStep]:
    """The steps of an execution on the Python machine, which starts in its initial state."""
    if exception:
        machine.clock = taking_the_exception(machine.core)
    machine.start(steps[0].insn.addr)
    for position, step in enumerate(steps, 1):
        before = _counts(machine)
        at = machine.clock
        machine.execute(step)
        after = _counts(machine)
        if step.taken and position < len(steps):
            machine.start(steps[position].insn.addr)
        fetches, loads, words = (end - begin for end, begin in zip(after, before, strict=True))
        yield TimelineStep(
            addr=step.insn.addr,
            text=step.insn.text,
            at=at,
            cycles=machine.clock - at,
            fetch_misses=fetches,
            load_misses=loads,
            stored_words=words,
            memory=max(0, machine.memory.free - machine.clock),
        )


def _counts(machine: PipelineMachine) -> tuple[int, int, int]:
    return machine.chip.fetch.misses, machine.load_misses, machine.stored_words
