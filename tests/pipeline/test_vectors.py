"""Worked examples of the manual, on the abstract model and on the concrete twin.

ARM1176JZF-S TRM (DDI 0301), 16.2 and 16.12: cycles of a sequence whose accesses all hit. The
nominal profile is exact; the bounds of the wcet profile are at least as large.
"""

from __future__ import annotations

from random import Random

import pytest

from cache.cache_simulator import SimulatedCache
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy
from pipeline.core import load_core
from pipeline.demand import demand
from pipeline.maxplus import IDLE, BlockStepper
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.timing_model import CoreProfile, MemoryLatencies
from tests.testing.cache.graphs import at, pool

LATENCIES = MemoryLatencies(60, None, 3, True, True)
TABLE = [
    ("ldr r1, [r2]\nadd r6, r5, r4", 2, 2),
    ("add r1, r2, r3\nadd r9, r6, r1", 2, 2),
    ("ldr r1, [r2]\nadd r6, r5, r1", 4, 4),
    ("add r1, r5, r6\nldr r2, [r1]", 3, 3),
    ("ldr r1, [r2]\nldr r5, [r1]", 5, 5),
    ("ldmia r0, {r1-r7}\nadd r10, r10, r3", 5, 5),
    ("stmia r0, {r1-r7}\nadd r6, r10, r11", 5, 5),
    ("addne r1, r5, r6\nldreq r1, [r8]", 2, 2),
    ("ldreq r1, [r8]\naddne r1, r5, r6", 2, 4),
    ("qdaddne r1, r5, r6\nstreq r1, [r8]", 2, 3),
    # From the tables of the same chapter.
    ("mul r1, r2, r3\nadd r4, r1, r5", 5, 5),
    ("mla r1, r2, r3, r4\nmla r5, r2, r3, r1", 5, 6),
    ("muls r1, r2, r3\nadd r4, r5, r6", 6, 6),
    ("umull r1, r2, r3, r4\nadd r5, r1, r6", 5, 6),
    ("umull r2, r1, r3, r4\nadd r5, r1, r6", 6, 6),
    ("ldr r0, [r1], #4\nldr r2, [r1]", 2, 2),
    ("ldr r0, [r1, #4]!\nadd r2, r1, #1", 2, 2),
    ("add r0, r1, r2, lsl r3\nadd r4, r0, r5", 3, 3),
    ("add r3, r1, r2\nadd r0, r1, r2, lsl r3", 4, 4),
    ("ldr r1, [r5]\nadd r0, r1, r2, lsl r3", 4, 5),
    ("add r1, r2, r3\nuxtb r4, r1", 3, 3),
    ("ldrb r1, [r2]\nadd r6, r5, r1", 4, 5),
    ("ldr r1, [r2, -r3]\nadd r6, r5, r1", 5, 5),
    ("ldmia r0, {r1-r7}\nldr r9, [r10]", 5, 5),
    ("ldrd r2, r3, [r0]\nadd r6, r5, r3", 4, 4),
    ("mrc p15, 0, r0, c1, c0, 0\nadd r1, r0, r2", 4, 10),
]  # fmt: skip
ALIGNED = 0xF0020000


def abstract(text: str, profile: CoreProfile) -> int:
    core = load_core("arm1136", profile)
    stepper = BlockStepper(IDLE, profile, core.row("FLAGS_TO_TARGET").latency[0])
    for insn in pool(text):
        stepper.run(demand(core, insn, aligned=True, aligned8=True))
    return stepper.at


def concrete(text: str, passed: str) -> int:
    """Cycles with warm caches; only conditions in ``passed`` hold."""
    geometry, random = CacheGeometry(16384, 4, 32), Random(0)
    caches = [SimulatedCache(geometry, ReplacementPolicy.ROUND_ROBIN, random) for _ in range(2)]
    caches[0].load(0)
    caches[1].load(ALIGNED // 32)
    chip = FetchAndCaches(caches[0], caches[1], 0, random)
    machine = PipelineMachine(load_core("arm1136", CoreProfile.NOMINAL), MemoryBus(LATENCIES), chip)
    machine.start(0)
    for i, insn in enumerate(pool(text)):
        holds = not insn.conditional or insn.cond.name == passed
        address = None if insn.memory is None else ALIGNED
        machine.execute(ExecutedInsn(at(insn, 4 * i), holds, False, address))
    return machine.clock


@pytest.mark.parametrize(("text", "nominal", "wcet"), TABLE, ids=[t for t, *_ in TABLE])
def test_worked_examples(text: str, nominal: int, wcet: int) -> None:
    assert abstract(text, CoreProfile.NOMINAL) == nominal
    assert abstract(text, CoreProfile.WCET) == wcet
    # Of two opposite conditions one holds; the longer case is the example's.
    assert max(concrete(text, "NE"), concrete(text, "EQ")) == nominal


def test_the_bounds_are_never_below_the_examples() -> None:
    assert all(wcet >= nominal for _, nominal, wcet in TABLE)


LISTS = [(n, 3 + (n - 1) // 2, (n + 1) // 2) for n in range(1, 15)]


@pytest.mark.parametrize(("count", "latency", "memory"), LISTS)
def test_lists_follow_the_aligned_table(count: int, latency: int, memory: int) -> None:
    """16.12: M = ceil(n/2) memory cycles, latency 3 + floor(k/2) of register k."""
    registers = [*range(count - 1), 14]
    listed = ", ".join(f"r{r}" for r in registers)
    text = f"ldmia r13, {{{listed}}}\n"
    assert abstract(text + "add r0, lr, #1", CoreProfile.NOMINAL) == latency + 1
    assert abstract(text + "str sp, [sp]", CoreProfile.NOMINAL) >= memory + 1
