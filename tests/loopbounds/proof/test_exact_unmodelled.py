"""Exactness where instructions are not modelled, against Unicorn on all of few inputs."""

from __future__ import annotations

from random import Random

import pytest
import unicorn
from unicorn import arm_const as uc

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.image.image import Image
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import address, build

COUNT = "count: subs r0, r0, #1\n  bpl count\n  bx lr\n  .ltorg\n"
STACK, RETURN = 0x2_0000, 0x3_0000
INPUTS = [(r0, r1) for r0 in range(16) for r1 in range(16)]

WAYS = {  # code before a loop over the lowest four bits of r0, and the bound if it is exact
    "saturating arithmetic": ("qadd r2, r0, r0; cmp r2, #5; bxhi lr", None),
    "saturation": ("ssat r2, #3, r0; cmp r2, r0; bxne lr", None),
    "sums of differences": ("mov r3, #0; usad8 r2, r0, r3; cmp r2, #7; bxhi lr", None),
    "a floating-point register": ("vmov s0, r0; vmov r2, s0; cmp r2, #7; bxhi lr", None),
    "a byte that is loaded as part of a word": (
        "mov r3, #0; push {r3}; strb r0, [sp]; pop {r2}; cmp r2, #7; bxhi lr",
        None,
    ),
    "a byte of a word that is loaded": (
        "ldr r2, [sp]; ldrb r3, [sp]; and r0, r2, #15; cmp r3, #7; bxhi lr",
        None,
    ),
    "an exclusive store": ("ldrex r2, [sp]; strex r3, r0, [sp]; cmp r3, #0; bxne lr", None),
    "a coprocessor": ("mrc p15, 0, r2, c13, c0, 3; cmp r2, r0; bxne lr", None),
    "the status": ("mrs r2, cpsr; tst r2, r0; bxne lr", None),
    "a conditional instruction": ("qadd r2, r0, r0; cmp r2, #5; movhi r0, #0", None),
    "conditions that exclude each other": (
        "cmp r1, r2; bxhi lr; cmp r2, r3; bxhi lr; cmp r3, r1; bxhs lr",
        None,
    ),
    "a constant count behind such conditions": (
        "cmp r1, r2; bxhi lr; cmp r2, r3; bxhi lr; cmp r3, r1; bxhs lr; mov r0, #7",
        None,
    ),
    "a pointer to a constant": (
        "ldr r3, =table; cmp r1, r3; bxne lr; ldr r0, [r1]; and r0, r0, #15",
        4,
    ),
    "lanes, which are modelled": ("usub8 r3, r0, r0; sel r2, r0, r1; cmp r2, #7; bxhi lr", 8),
    "conditions that are possible": ("cmp r1, #9; bxhi lr; tst r1, #6; bxeq lr", 16),
    "a loop with one way out": ("and r1, r1, #3\nodd: subs r1, r1, #1; bpl odd", 16),
}


def program(before: str) -> Program:
    head = ".syntax unified\n.arch armv7-a\n.fpu vfpv3\n.global main\nmain: and r0, r0, #15"
    source = f"{head}\n{before}\n{COUNT}table: .word 3\n"
    return load(build(source, language="asm", cpu="cortex-a8"))


def most(image: Image) -> int:
    """Most executions of the loop in Unicorn, over all inputs."""
    core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
    for page in (0x8000, STACK - 0x1000, STACK, RETURN):
        core.mem_map(page, 0x1000)
    for segment in image.segments:
        core.mem_write(segment.addr, bytes(segment.data))
    core.reg_write(uc.UC_ARM_REG_C1_C0_2, 0xF << 20)
    core.reg_write(uc.UC_ARM_REG_FPEXC, 1 << 30)
    found = [0]

    def counted(*_: object) -> None:
        found[0] += 1

    header, best = address(image, "count"), 0
    core.hook_add(unicorn.UC_HOOK_CODE, counted, begin=header, end=header)
    pointers = [(r0, address(image, "table")) for r0 in range(16)]
    for r0, r1 in [*INPUTS, *pointers]:
        found[0] = 0
        for register, value in ((0, r0), (1, r1), (2, r1), (3, r0)):
            core.reg_write(uc.UC_ARM_REG_R0 + register, value)
        core.mem_write(STACK, r0.to_bytes(4, "little"))
        core.reg_write(uc.UC_ARM_REG_SP, STACK)
        core.reg_write(uc.UC_ARM_REG_LR, RETURN)
        core.emu_start(address(image, "main"), RETURN, count=2000)
        best = max(best, found[0])
    return best


OPTIONS = BoundOptions(Budget(seconds=20), workers=1)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_modelled_decides_nothing_that_is_exact(way: str) -> None:
    """Held: a condition about an unmodelled value was lost, and the bound called exact."""
    before, exact = WAYS[way]
    code = program(before)
    bound = max(code.bounds(options=OPTIONS), key=code.header)
    assert bound.bound is not None
    assert most(code.image) <= bound.bound
    assert bound.exact == (None if exact is None else True)
    assert exact is None or most(code.image) == bound.bound == exact


OPERATIONS = (
    "qadd {a}, {b}, {c}",
    "qsub {a}, {b}, {c}",
    "ssat {a}, #4, {b}",
    "usat {a}, #3, {b}",
    "usad8 {a}, {b}, {c}",
    "vmov s0, {b}; vmov {a}, s0",
    "push {{{b}}}; strb {c}, [sp]; pop {{{a}}}",
    "mul {a}, {b}, {c}",
    "eor {a}, {b}, {c}",
    "clz {a}, {b}; rsb {a}, {a}, #32",
)


def way_in(random: Random) -> str:
    """Some operations and ways out, on r0 to r3."""

    def register() -> str:
        return f"r{random.randrange(1, 4)}"

    lines = ["and r1, r1, #15; lsr r2, r1, #2; and r3, r1, #3"]
    for _ in range(random.randint(1, 3)):
        b, c = random.choice(["r0", register()]), random.choice(["r0", register()])
        lines.append(random.choice(OPERATIONS).format(a=register(), b=b, c=c))
        other = random.choice([f"#{random.randrange(9)}", "r0", register()])
        out = random.choice(["hi", "lo", "eq", "ne"])
        if random.random() < 0.7:
            lines.append(f"cmp {random.choice(['r0', register()])}, {other}; bx{out} lr")
        elif random.random() < 0.5:
            lines.append(f"cmp {register()}, {other}; mov{out} r0, #{random.randrange(9)}")
    return "; ".join(lines)


@pytest.mark.slow("NuSMV proves each bound")
def test_exact_bounds_are_reached() -> None:
    random = Random(10)
    exact = 0
    for _ in range(cases(8)):
        before = way_in(random)
        code = program(before)
        for bound in code.bounds(options=OPTIONS):
            assert bound.bound is not None
            reached = most(code.image)
            assert reached <= bound.bound, before
            assert not bound.exact or reached == bound.bound, before
            exact += bool(bound.exact)
    assert exact >= 1
