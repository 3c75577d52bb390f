"""Worked examples of the Cortex-A8's manual, on the abstract model and on the concrete twin.

Cortex-A8 TRM (DDI 0344), 16.2, 16.3 and 16.8: the cycle in which each instruction issues (the
last one of several), all accesses hitting. The nominal profile and the twin are exact; the bounds
of the wcet profile are at least as large, and stand here where they are larger.
"""

from __future__ import annotations

from random import Random

import pytest

from cache.cache_simulator import SimulatedCache
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy
from pipeline.core import load_core
from pipeline.demand import demand
from pipeline.dual_issue import IDLE, DualStepper
from pipeline.dual_issue_simulator import DualIssueMachine
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus
from pipeline.timing_model import CoreProfile, MemoryLatencies
from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import Condition, Insn
from quoll.image.image import Image
from tests.testing.cache.graphs import at, pool
from tests.testing.quoll.building import TEXT_BASE, build

LATENCIES = MemoryLatencies(228, None, 28, True, True, 8, 13)
HERE = 0xF0020004  # not a multiple of 8
# Text, cycles of the manual, cycles of the bound where they differ.
TABLE: list[tuple[str, list[int], list[int] | None]] = [
    ("add r1, r2, r3\nadd r4, r1, r6\nldr r7, [r4]", [1, 2, 4], None),
    ("ldr r0, [r6, #4]\nmov r1, #10\nldr r0, [r0]", [1, 1, 4], None),
    ("moveq r1, r2\nmovne r1, r3\nldr r5, [r6]", [1, 2, 2], None),
    ("ldr r0, [r1]\nstr r2, [r3]\nmov r4, r5", [1, 2, 2], None),
    # The example's MUL issues in one cycle, as the table says of SMULWy; MUL itself takes two.
    ("add r0, r1, r2\nsmulwb r3, r4, r5\nsmulwb r6, r7, r8", [1, 2, 3], None),
    ("add r0, r1, r2\nmul r3, r4, r5\nmul r6, r7, r8", [1, 3, 5], None),
    ("bx lr\nbeq .\nadd r0, r1, r2", [1, 2, 2], None),
    ("mov r0, r1\nldm r3, {r4-r7}\nadd r8, r9, r10", [1, 4, 4], None),
    # Data of a store are needed in E3; the bound gives no credit for more than E2.
    ("mov r3, r4\nstreq r3, [r5]", [1, 1], None),
    ("add r3, r4, r5\nstr r3, [r6]", [1, 1], [1, 2]),
    # From the tables of the same chapter.
    ("ldr r0, [r1]\nadd r2, r0, r3", [1, 3], None),
    ("ldr r0, [r1]\nadd r2, r3, r0, lsl #2", [1, 4], None),
    ("ldr r0, [r1]\nstr r0, [r2]", [1, 2], [1, 3]),
    ("mov r0, r1\nadd r2, r0, r3", [1, 1], None),
    ("mov r0, r1\nadd r2, r3, r0, lsl #2", [1, 2], None),
    ("mul r0, r1, r2\nadd r3, r0, r4", [2, 6], None),
    ("umull r0, r1, r2, r3\nadd r4, r5, r0, lsl #1", [3, 8], None),
    ("cmp r0, r1\nmoveq r2, r3", [1, 2], None),
    ("cmp r0, r1\nbeq .", [1, 1], [1, 2]),
    ("ldr r0, [r1], #4\nldr r2, [r1]", [1, 3], None),
    ("ldr r0, [r1, -r2]\nadd r3, r0, r4", [2, 4], None),
    ("add r0, r1, r2\nadd r3, r4, r5\nadd r6, r7, r8", [1, 1, 2], None),
    ("add r0, r1, r2\nadd r0, r4, r5", [1, 2], None),
]


def abstract(insns: tuple[Insn, ...], profile: CoreProfile) -> list[int]:
    core = load_core("cortex-a8", profile)
    stepper = DualStepper(IDLE)
    for insn in insns:
        stepper.run(demand(core, insn, aligned=True, aligned8=False))
    return [step.start + step.issue for step in stepper.steps]


def concrete(insns: tuple[Insn, ...]) -> list[int]:
    """With warm caches; every condition fails, which makes no difference here."""
    geometry, random = CacheGeometry(32768, 4, 64), Random(0)
    caches = [SimulatedCache(geometry, ReplacementPolicy.RANDOM, random) for _ in range(2)]
    caches[0].load(insns[0].addr // 64)
    caches[1].load(HERE // 64)
    core = load_core("cortex-a8", CoreProfile.NOMINAL)
    machine = DualIssueMachine(
        core, MemoryBus(LATENCIES), FetchAndCaches(caches[0], caches[1], 0, random)
    )
    machine.start(insns[0].addr)
    cycles = []
    for insn in insns:
        address = None if insn.memory is None else HERE
        machine.execute(ExecutedInsn(insn, not insn.conditional, False, address))
        cycles.append(machine.clock)
    return cycles


@pytest.mark.parametrize(("text", "nominal", "bound"), TABLE, ids=[t for t, *_ in TABLE])
def test_worked_examples(text: str, nominal: list[int], bound: list[int] | None) -> None:
    insns = tuple(at(insn, 4 * i) for i, insn in enumerate(pool(text + "\n")))
    assert abstract(insns, CoreProfile.NOMINAL) == concrete(insns) == nominal
    assert abstract(insns, CoreProfile.WCET) == (bound or nominal)
    assert all(b >= n for b, n in zip(bound or nominal, nominal, strict=True))


THUMB = """
    movw r0, #1234
    movt r0, #1
    ubfx r1, r0, #3, #4
    bfi r1, r0, #3, #4
    cbz r0, 1f
    cmp r0, r1
    it eq
    moveq r2, r3
1:  lsls r0, r1, #3
    orn r0, r1, r2
    rbit r0, r1
    mls r0, r1, r2, r3
    umull r8, r1, r2, r3
    dsb
    dmb
    isb
    msr cpsr_f, r0
    msr cpsr_c, r0
    mrs r0, cpsr
    cpsid i
    cps #19
    mcr p15, 0, r0, c7, c5, 0
    mrc p15, 0, r0, c1, c0, 0
    ldrex r0, [r1]
    strexd r0, r1, r2, [r3]
    clrex
    wfi
    ldrd r0, r1, [r2]
    push {r4, lr}
    ldmia r0!, {r1, r2}
    tbb [pc, r0]
    nop
    srsdb sp!, #19
    rfeia sp!
    ldr.w r0, [r1, r2, lsl #3]
    subs pc, lr, #4
    blx r3
    pop {r4, pc}
    bx lr
"""


def thumb() -> list[Insn]:
    source = f".syntax unified\n.text\n.thumb\n.global main\n.thumb_func\nmain:\n{THUMB}"
    image = Image.load(build(source, language="asm", thumb=True, cpu="cortex-a8"))
    found: list[Insn] = []
    addr = TEXT_BASE
    conditions: tuple[Condition, ...] = ()
    while code := image.read(addr, 4) or image.read(addr, 2):
        insn = decode(code, addr, True, conditions)
        conditions = it_conditions(insn) or conditions[1:]
        found.append(insn)
        addr = insn.next
    return found


def test_thumb_2_has_rows_and_its_own_fields() -> None:
    core = load_core("cortex-a8", CoreProfile.WCET)
    demands = {insn.text: demand(core, insn, aligned=True, aligned8=False) for insn in thumb()}
    assert len(demands) > 35
    assert demands["umull r8, r1, r2, r3"].results == ((8, 6), (1, 6))
    assert demands["msr apsr_nzcvq, r0"].issue == 4
    assert demands["msr cpsr_c, r0"].issue == 14
    assert demands["mcr p15, #0, r0, c7, c5, #0"].issue == 20
    assert demands["tbb [pc, r0]"].taken == 15
    assert demands["pop {r4, pc}"].taken == 14 + 2
    cbz = next(d for text, d in demands.items() if text.startswith("cbz"))
    assert (cbz.taken, cbz.not_taken) == (14, 1)
