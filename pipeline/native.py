"""The concrete machines compiled from ``simulator.c``, with the same cycles as the Python ones.

From the same state, ``simulator.c`` takes as many cycles as ``pipeline_simulator`` and
``dual_issue_simulator``, and executes a million instructions in a fraction of a second.

The system's C compiler compiles the file on first use. ``quoll.results.results_store`` stores the
library under a key of the text and the compiler. Only verified bytes are loaded, from memory.
Without a compiler the Python machines run instead, with the same results.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from cache.cache_simulator import SimulatedCache
from cache.policy import ReplacementPolicy
from pipeline.classes import classify_insn
from pipeline.core import CoreTable, DualIssuePairing
from pipeline.dual_issue_simulator import DualIssueMachine
from pipeline.pipeline_simulator import ExecutedInsn, PipelineMachine
from pipeline.predictor_simulator import PredictingMachine
from quoll.arm.coprocessor import coprocessor_operation
from quoll.arm.insn import AccessKind, Insn
from quoll.arm.operation import Operation
from quoll.errors import TimingError
from quoll.results.cache_key import key_of
from quoll.results.results_store import ResultsStore

__all__ = [
    "CompiledTrace",
    "Instructions",
    "SplitMix",
    "execute",
    "execute_in_turn",
    "exported",
    "library",
    "no_effect",
]

SOURCE = Path(__file__).parent / "simulator.c"
FLAGS = ("-O2", "-shared", "-fPIC")
PATIENCE = 120  # seconds for the compiler
REGISTERS, LIST, WAYS, FILLS, BUFFER = 16, 18, 512, 64, 64
PASSED, TAKEN, CACHED, ACCESS = 1, 2, 4, 8
BARRIERS = {Operation.INSTRUCTION_BARRIER: 1 << 12, Operation.DATA_BARRIER: 1 << 13}
GOLDEN, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
Num = ctypes.c_int64


def _fields(*names: str) -> list[tuple[str, type[ctypes.c_int64]]]:
    return [(name, Num) for name in names]


class _Operand(ctypes.Structure):
    _fields_ = _fields("reg", "early", "late", "address", "passed")


class _Result(ctypes.Structure):
    _fields_ = _fields("reg", "latency")


class _Instruction(ctypes.Structure):
    _fields_ = [
        *_fields("next", "waits_flags", "conditional", "sets_flags", "memory", "access", "bytes",
                 "issue", "unit", "taken", "not_taken", "flag_distance", "updates", "base_latency",
                 "operation", "pair", "may_join", "flags_late", "operands", "results", "held"),
        ("operand", _Operand * LIST), ("result", _Result * LIST), ("hold", _Result * LIST),
    ]  # fmt: skip


class _Cache(ctypes.Structure):
    __slots__ = ()  # another name is an error
    _fields_ = [
        *_fields("ways", "sets", "line_bytes", "policy", "always_hits", "counter", "clock"),
        ("line", Num * WAYS), ("dirty", Num * WAYS), ("used", Num * WAYS),
    ]  # fmt: skip


class _Level2(ctypes.Structure):
    __slots__ = ()
    _fields_ = [
        *_fields("hit", "dirty_victims", "ways", "sets", "line_bytes", "policy", "counter",
                 "clock"),
        *((name, ctypes.POINTER(Num)) for name in ("line", "dirty", "used")),
    ]  # fmt: skip


class _Machine(ctypes.Structure):
    __slots__ = ()
    _fields_ = [
        *_fields("dual", "aligned", "ahead", "access", "line_rest", "dirty_victims", "l2_dirty",
                 "replay", "fetch_restart", "buffer_words", "clock", "free", "flags", "setter",
                 "has_setter", "unit", "bypassed", "branch_unit", "second_pipe_free"),
        ("ready", Num * REGISTERS), ("unlocked", Num * REGISTERS),
        ("fills", Num), ("fill", Num * FILLS),
        ("buffered", Num), ("buffer", Num * BUFFER),
        *_fields("fetched", "log_first", "log_lines", "last_fill"),
        ("random", ctypes.c_uint64),
        ("icache", _Cache), ("dcache", _Cache),
        ("l2", ctypes.POINTER(_Level2)),
    ]  # fmt: skip


class SplitMix(Random):
    """The generator of ``simulator.c``: 64 bits of state (Steele, Lea, Flood: OOPSLA 2014)."""

    def __init__(self, state: int) -> None:
        super().__init__(0)
        self.state = state & MASK

    def getrandbits(self, k: int) -> int:
        """The upper ``k`` of the next 64 bits."""
        self.state = z = (self.state + GOLDEN) & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return (z ^ z >> 31) >> (64 - k)

    def random(self) -> float:
        """The next number in [0, 1)."""
        return self.getrandbits(53) / (1 << 53)


class Instructions:
    """Descriptions of instructions for the compiled machine, each made once."""

    def __init__(self, core: CoreTable, *, aligned: bool = True) -> None:
        self.core, self.aligned = core, aligned
        self._described: list[_Instruction] = []
        self._known: dict[tuple[int, bool], tuple[Insn, int]] = {}  # kept alive, so ids are unique
        self._array: ctypes.Array[_Instruction] | None = None

    def number(self, insn: Insn, aligned8: bool) -> int:
        """Index of ``insn`` in ``array``."""
        known = self._known.get((id(insn), aligned8))
        if known is None:
            known = self._known[id(insn), aligned8] = insn, len(self._described)
            made = _describe(self.core, insn, aligned=self.aligned, aligned8=aligned8)
            self._described.append(made)
            self._array = None
        return known[1]

    @property
    def array(self) -> ctypes.Array[_Instruction]:
        """All descriptions as one array."""
        if self._array is None:
            self._array = (_Instruction * len(self._described))(*self._described)
        return self._array


@dataclass
class CompiledTrace:
    """Steps prepared for ``execute``: the instruction, events and target of each."""

    instructions: ctypes.Array[_Instruction]
    steps: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    first: int
    executed: Sequence[ExecutedInsn]
    issued: np.ndarray[tuple[int], np.dtype[np.int64]] = field(init=False)

    @staticmethod
    def of(instructions: Instructions, steps: Sequence[ExecutedInsn]) -> CompiledTrace:
        """The trace of ``steps`` in sequence; control leaves after the last one."""
        rows: list[tuple[int, int, int, int]] = []
        number = instructions.number
        for step in steps:
            address = step.address
            bits = PASSED * step.passed | TAKEN * step.taken | CACHED * step.cached
            if address is None:
                rows.append((number(step.insn, False), bits, 0, -1))
            else:
                rows.append((number(step.insn, address % 8 == 0), bits | ACCESS, address, -1))
        table = np.array(rows, dtype=np.int64)
        for position in np.flatnonzero(table[:-1, 1] & TAKEN).tolist():
            table[position, 3] = steps[position + 1].insn.addr
        return CompiledTrace(instructions.array, table, steps[0].insn.addr, steps)


def _describe(core: CoreTable, insn: Insn, *, aligned: bool, aligned8: bool) -> _Instruction:
    kind = classify_insn(insn, aligned=aligned, aligned8=aligned8)
    row = core.row(*kind.row)
    transfer = core.row(*kind.taken) if kind.taken is not None else None
    extra = int(transfer is not None and transfer.with_list)
    lists = _lists(core, insn, aligned=aligned, aligned8=aligned8)
    pair = row.pair if transfer is None or row.pair is DualIssuePairing.ALONE else transfer.pair
    memory = insn.memory
    found = _Instruction(
        next=insn.next,
        waits_flags=insn.conditional or insn.reads_flags,
        conditional=insn.conditional,
        sets_flags=insn.sets_flags,
        memory=memory is not None,
        access=0 if memory is None else ACCESSES[memory.access],
        bytes=0 if memory is None else memory.size * memory.count,
        issue=row.issue,
        unit=row.memory + extra if row.memory or memory is not None else 0,
        taken=-1 if transfer is None else transfer.issue + row.issue * transfer.after_list,
        not_taken=-1 if kind.not_taken is None else core.row(*kind.not_taken).issue,
        flag_distance=core.row("FLAGS_TO_TARGET").latency[0] if kind.flag_rule else -1,
        updates=-1 if kind.updates is None else kind.updates,
        base_latency=core.base_latency(row, last=kind.updates_last),
        operation=_operation(core, insn),
        pair=list(DualIssuePairing).index(pair),
        may_join=row.pair is DualIssuePairing.EITHER and row.issue == 1,
        flags_late=row.late.get("flags", 0),
        **{name: len(entries) for name, entries in lists.items()},
    )
    for name, entries in lists.items():
        array = getattr(found, ARRAYS[name])
        for index, entry in enumerate(entries):
            array[index] = entry
    return found


POLICIES = {  # with one way, "one-way" is any of them
    ReplacementPolicy.RANDOM: 0,
    ReplacementPolicy.ROUND_ROBIN: 1,
    ReplacementPolicy.ONE_WAY: 1,
    ReplacementPolicy.LRU: 2,
    ReplacementPolicy.FIFO: 3,
}
ACCESSES = {AccessKind.LOAD: 1, AccessKind.PRELOAD: 1, AccessKind.STORE: 2, AccessKind.SWAP: 3}
ARRAYS = {"operands": "operand", "results": "result", "held": "hold"}


def _lists(
    core: CoreTable, insn: Insn, *, aligned: bool, aligned8: bool
) -> dict[str, list[tuple[int, ...]]]:
    kind = classify_insn(insn, aligned=aligned, aligned8=aligned8)
    row = core.row(*kind.row)
    extra = int(kind.taken is not None and core.row(*kind.taken).with_list)
    reads = insn.reads | frozenset(kind.held)
    operands: list[tuple[int, ...]] = []
    for register in sorted(reads | kind.address):
        roles = [role for role, r in kind.roles.items() if r == register]
        early = any(role in row.early for role in roles)
        late = min((row.late.get(role, 0) for role in roles), default=0)
        operands.append((register, early, late, register in kind.address, register in reads))
    last = len(row.latency) - 1
    latencies = [row.latency[min(i, last)] if row.latency else -1 for i in range(LIST)]
    return {
        "operands": operands,
        "results": [
            (r, latencies[i] + extra if row.latency else -1) for i, r in enumerate(kind.results)
        ],
        "held": [(r, latencies[i]) for i, r in enumerate(kind.held)],
    }


def _operation(core: CoreTable, insn: Insn) -> int:
    found = coprocessor_operation(insn)
    if found is not None and found.written is not None:
        return found.written.crn << 8 | found.written.crm << 4 | found.written.opc2
    return BARRIERS.get(insn.operation, 0) if core.dual_issue else 0


def execute(machine: PipelineMachine, trace: CompiledTrace) -> int:
    """Cycles from the state of ``machine`` until all is quiet, as its own ``execute`` returns.

    The call uses ``machine`` up. ``SplitMix`` replaces its random draws, from the machine's own
    state if it has one, else seeded by its generator. ``trace.issued`` gets the clock after each
    step.
    """
    random = _drawing(machine)
    compiled = library()
    if compiled is None or not _compiled(machine):
        return _interpret(machine, trace)
    state = exported(machine, random)
    end = _simulate(compiled, state, trace)
    random.state = state.random
    return end


def execute_in_turn(
    machine: PipelineMachine, traces: Sequence[CompiledTrace], pause: int
) -> list[int]:
    """Cycles of each of ``traces``, one after another on one machine, which is used up.

    Each begins when the one before has issued its last instruction, with ``pause`` cycles in which
    nothing is issued. As ``execute``, else.
    """
    random = _drawing(machine)
    compiled = library()
    state = machine if compiled is None or not _compiled(machine) else exported(machine, random)
    cycles: list[int] = []
    for trace in traces:
        start: int = state.clock
        state.clock += pause
        if compiled is None or isinstance(state, PipelineMachine):
            _interpret(machine, trace)
        else:
            _simulate(compiled, state, trace)
        cycles.append(int(trace.issued[-1]) - start)
    return cycles


def _drawing(machine: PipelineMachine) -> SplitMix:
    """The generator that the machine draws from, from now on."""
    random = machine.chip.random
    if not isinstance(random, SplitMix):
        random = SplitMix(random.getrandbits(64))
        machine.chip.random = machine.memory.random = random
        for cached in (machine.chip.fetch.cache, machine.chip.dcache, machine.memory.l2):
            if cached is not None:
                cached.reseed(random)
    return random


def _simulate(compiled: ctypes.CDLL, state: _Machine, trace: CompiledTrace) -> int:
    """Execute on the library's machine, which is changed; the cycle at which all is quiet."""
    trace.issued = np.zeros(len(trace.executed), dtype=np.int64)
    end: int = compiled.simulate(
        ctypes.byref(state), trace.instructions, trace.steps.ctypes.data, len(trace.executed),
        trace.first, trace.issued.ctypes.data,
    )  # fmt: skip
    if end < 0:
        raise no_effect(trace, end)
    return end


def _compiled(machine: PipelineMachine) -> bool:
    """Whether ``simulator.c`` models the machine.

    It models neither a TLB, nor lines locked in L2, nor a predictor.
    """
    predicts = isinstance(machine, PredictingMachine)
    return machine.tlb is None and not predicts and not machine.memory.locked


def no_effect(trace: CompiledTrace, end: int) -> TimingError:
    """The error for the result ``end`` of the library: the operation of a step is not modelled.

    Raises MemoryError if the library had none for the arrivals of lines.
    """
    if -1 - end == len(trace.executed):
        raise MemoryError
    insn = trace.executed[-1 - end].insn
    return TimingError(
        "this operation has no concrete effect", where=f"{insn.addr:#x}: {insn.text}"
    )


def _interpret(machine: PipelineMachine, trace: CompiledTrace) -> int:
    trace.issued = np.zeros(len(trace.executed), dtype=np.int64)
    machine.start(trace.first)
    for position, step in enumerate(trace.executed):
        machine.execute(step)
        trace.issued[position] = machine.clock
        if trace.steps[position, 3] >= 0:
            machine.start(int(trace.steps[position, 3]))
    return machine.finished


def exported(machine: PipelineMachine, random: SplitMix) -> _Machine:
    """The state of ``machine`` for the library."""
    dual = isinstance(machine, DualIssueMachine)
    board, memory, chip = machine.board, machine.memory.latencies, machine.chip
    state = _Machine(
        dual=dual, aligned=machine.aligned, ahead=chip.prefetch_bytes, access=memory.access,
        line_rest=memory.line_rest, dirty_victims=memory.dirty_l1_victims,
        l2_dirty=machine.memory.dirty, replay=memory.replay,
        fetch_restart=memory.fetch_restart, buffer_words=machine.buffer_words,
        clock=machine.clock, free=machine.memory.free, flags=board.flags,
        setter=board.setter or 0, has_setter=board.setter is not None, unit=board.unit,
        bypassed=-1 if board.bypassed is None else board.bypassed,
        fills=len(machine.fills), buffered=len(machine.buffer), random=random.state,
    )  # fmt: skip
    for register in range(REGISTERS):
        state.ready[register] = board.result.get(register, -9)
        state.unlocked[register] = board.unlocked.get(register, -9)
    for index, at in enumerate(machine.fills):
        state.fill[index] = at
    for index, at in enumerate(machine.buffer):
        state.buffer[index] = at
    _export_cache(chip.fetch.cache, state.icache)
    _export_cache(chip.dcache, state.dcache)
    if machine.memory.l2 is not None and memory.l2_hit is not None:
        state.l2 = ctypes.pointer(
            _level2(machine.memory.l2, memory.l2_hit, dirty_victims=memory.dirty_l2_victims)
        )
    return state


def _level2(cached: SimulatedCache, hit: int, *, dirty_victims: bool) -> _Level2:
    geometry, (lines, dirty) = cached.geometry, cached.contents()
    used, clock = cached.uses()
    rows = Num * len(lines)
    return _Level2(
        hit=hit, dirty_victims=dirty_victims,
        ways=geometry.ways, sets=geometry.sets, line_bytes=geometry.line_bytes,
        policy=POLICIES[cached.policy], counter=cached.counter, clock=clock,
        line=rows(*lines), dirty=rows(*dirty), used=rows(*used),
    )  # fmt: skip


def _export_cache(cached: SimulatedCache, state: _Cache) -> None:
    geometry = cached.geometry
    state.ways, state.sets, state.line_bytes = geometry.ways, geometry.sets, geometry.line_bytes
    state.policy = POLICIES[cached.policy]
    state.always_hits, state.counter = cached.always_hits, cached.counter
    if geometry.ways * geometry.sets > WAYS:
        raise TimingError(f"the compiled machine has room for {WAYS} lines")
    lines, dirty = cached.contents()
    used, state.clock = cached.uses()
    count = len(lines)
    state.line[:count], state.dirty[:count], state.used[:count] = lines, dirty, used


@cache
def library() -> ctypes.CDLL | None:
    """The compiled library, or None without a working compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    store = ResultsStore.of_user()
    try:
        version = _run([compiler, "--version"])
        content = SOURCE.read_bytes(), FLAGS, os.path.realpath(compiler), version
        key = key_of("simulator", *content, sysconfig.get_platform(), sys.version)
        compiled = store.get(key)
        if compiled is None:
            compiled = _compile(compiler)
            store.put(key, compiled)
        loaded = _load(compiled)
    except (OSError, subprocess.TimeoutExpired):
        return None
    loaded.simulate.restype = Num
    loaded.simulate.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, Num, Num, ctypes.c_void_p,
    ]  # fmt: skip
    return loaded


def _compile(compiler: str) -> bytes:
    """The C file, compiled; raises OSError on failure."""
    with tempfile.TemporaryDirectory(prefix="quoll-simulator-") as folder:
        made = Path(folder, "simulator.so")
        _run([compiler, *FLAGS, "-o", str(made), str(SOURCE)])
        return made.read_bytes()


def _load(compiled: bytes) -> ctypes.CDLL:
    """The library of exactly these bytes; no other process can change them after the check.

    It is loaded from an anonymous memory file if the system has them, else from a private folder.
    """
    with suppress(OSError, AttributeError):
        memory = os.memfd_create("simulator")  # stays open: under a number used before, the loader
        with open(memory, "wb", closefd=False) as file:  # would find the library it has for that
            file.write(compiled)
        return ctypes.CDLL(f"/proc/self/fd/{memory}")
    with tempfile.TemporaryDirectory(prefix="quoll-simulator-") as folder:
        Path(folder, "simulator.so").write_bytes(compiled)
        return ctypes.CDLL(f"{folder}/simulator.so")


def _run(command: list[str]) -> bytes:
    """The output of a command. Raises OSError if it fails, TimeoutExpired after ``PATIENCE``."""
    done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
    if done.returncode:
        raise OSError(f"{command[0]} failed")
    return done.stdout
