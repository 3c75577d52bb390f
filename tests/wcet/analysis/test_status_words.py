"""Mode, order of bytes and instruction set by status writes (rules 45 and 46), end to end."""

import pytest

from quoll.errors import ControlFlowError
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound

BODY = """
.text
.arm
.global main
.type main, %function
main: mov r6, lr
    mrs r4, cpsr
    {code}
    bx r6
"""


def outcome(code: str, cpu: str = "arm1136jf-s") -> tuple[str, ...]:
    """The assumptions of a bound."""
    text = BODY.format(code="\n    ".join(code.split("; ")))
    elf = build(text, language="asm", cpu=cpu, link=(CODE,))
    platform = "kzm" if cpu.startswith("arm") else "cubieboard"
    return tuple(map(str, bound(elf, platform=platform).assumptions))


BIG = (
    "mov r1, #0x200; msr cpsr_x, r1",
    "ldr r1, =0x6d3; msr cpsr_fsxc, r1",
    "msr cpsr_x, #0x200",
    "cmp r0, #0; msreq cpsr_x, #0x200",
    "orr r1, r4, #0x200; msr cpsr_fsxc, r1",
    "orr r1, r4, #0x200; msr cpsr_sx, r1",
    "eor r1, r4, #0x200; msr cpsr_xc, r1",
    "add r1, r4, #0x200; msr cpsr_xc, r1",
    "mov r2, #0x200; orr r1, r4, r2; msr cpsr_fx, r1",
    "mov r1, r4; orr r1, r1, #0x80; orr r1, r1, #0x200; msr cpsr_fsxc, r1",
    "mov r1, #0x200; msr spsr_x, r1",
    "cmp r0, #0; moveq r1, #0; movne r1, #0x200; msr cpsr_x, r1",
)
LITTLE = (
    "msr cpsr_fsxc, r4",
    "orr r1, r4, #0x80; msr cpsr_fsxc, r1",
    "bic r1, r4, #0x1f; orr r1, r1, #0x13; orr r1, r1, #0xc0; msr cpsr_fsxc, r1",
    "ldr r1, =0x1d3; msr cpsr_fsxc, r1",
    "mov r1, #0xd3; msr cpsr_c, r1",
    "mov r1, #0x200; msr cpsr_f, r1",
    "eor r1, r4, #0x80; msr cpsr_fsxc, r1",
)


@pytest.mark.parametrize("code", BIG)
@pytest.mark.parametrize("cpu", ["arm1136jf-s", "cortex-a8"])
def test_big_endian_data_is_refused(code: str, cpu: str) -> None:
    with pytest.raises(ControlFlowError, match=r"0xf00100.*big-endian \(bit E\)"):
        outcome(code, cpu)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("code", LITTLE)
def test_words_that_keep_bit_e_need_no_assumption(code: str) -> None:
    found = outcome(code)
    assert not [text for text in found if text.startswith(("data: the status", "mode: the"))]


def test_words_of_unknown_bits_are_listed() -> None:
    found = outcome("msr cpsr_fsxc, r0")
    assert any(text.startswith("data: the status word that msr cpsr_fsxc, r0") for text in found)
    assert any(text.startswith("mode: the status word that msr cpsr_fsxc, r0") for text in found)


@pytest.mark.parametrize(
    "code",
    [
        "cps #0x10",
        "cpsid i, #0x10",
        "msr cpsr_c, #0xd0",
        "mov r1, #0x10; msr cpsr_c, r1",
        "bic r1, r4, #0x1f; orr r1, r1, #0x10; msr cpsr_c, r1",
    ],
)
def test_user_mode_is_refused(code: str) -> None:
    with pytest.raises(ControlFlowError, match="enters User mode"):
        outcome(code)


def test_the_other_instruction_set_is_refused_before_version_7() -> None:
    with pytest.raises(ControlFlowError, match="bit T of the other"):
        outcome("orr r1, r4, #0x20; msr cpsr_c, r1")


@pytest.mark.slow("several whole analyses")
def test_status_writes_leave_the_instruction_set_from_version_7_on() -> None:
    """B9.3.11: a word without bit T is plain in Thumb code (and with it in ARM code)."""
    outcome("orr r1, r4, #0x20; msr cpsr_c, r1", "cortex-a8")
    text = """.text
.thumb
.global main
.type main, %function
.thumb_func
main: mov r4, lr
    mov r3, #0xd2
    msr cpsr_c, r3
    mov r3, #0xd3
    msr cpsr_c, r3
    bx r4
"""
    bound(build(text, language="asm", cpu="cortex-a8", link=(CODE,)), platform="cubieboard")


USER_BANK = """
.text
.arm
.global main
.type main, %function
main: push {{r4, r5, lr}}
    mov r5, sp
    ldr r4, =words
    cps #0x13
    cps #0x1f
    mov r1, #3
    mov lr, r1
    cps #0x13
    {load}
    nop
    cps #0x1f
    mov r1, lr
    cps #0x13
1:  subs r1, r1, #1
    bne 1b
    mov sp, r5
    pop {{r4, r5, pc}}
.section .rodata, "a"
.balign 4
words: .word 40, 50
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("load", "turns"), [("nop", 3), ("ldm r4, {lr}^", 40), ("ldm r4, {sp, lr}^", 50)]
)
def test_user_registers_are_those_of_system_mode(load: str, turns: int) -> None:
    """Rule 45: ldm of User registers writes the bank that System mode shares."""
    text = USER_BANK.format(load=load)
    result = bound(build(text, language="asm", cpu="arm1136jf-s", link=(CODE,)))
    (loop,) = result.entries["main"].bounds
    assert loop.bound == turns
