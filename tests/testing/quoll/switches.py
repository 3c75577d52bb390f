"""Programs with a context switch in every common form, and their executions.

Each saves a context at r0 and loads the one at r1. Called with the same place twice, it comes back
at once: a function that returns.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import unicorn
from unicorn import arm_const as uc

from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow
from quoll.image.image import Image
from tests.testing.quoll.building import address, build

CPU = "cortex-a8"
STACK, STATUS = 0x200000, 0x1D3  # supervisor mode, interrupts masked
STEPS = 10_000

ARM = {
    "stack pointer": """
        push {r4-r11, lr}
        str sp, [r0]
        ldr sp, [r1]
        pop {r4-r11, pc}""",
    "list with sp and pc": """
        stmia r0, {r4-r11, sp, lr}
        ldmia r1, {r4-r11, sp, pc}""",
    "longjmp": """
        stmia r0, {r4-r11, sp, lr}
        ldmia r1, {r4-r11, sp, lr}
        bx lr""",
    "user list and saved status": """
        push {r0-r12, lr}
        mrs r2, cpsr
        push {r2}
        str sp, [r0]
        ldr sp, [r1]
        pop {r2}
        msr spsr_cxsf, r2
        ldm sp!, {r0-r12, pc}^""",
    "rfe": """
        mrs r2, cpsr
        push {r2}
        push {lr}
        str sp, [r0]
        ldr sp, [r1]
        rfeia sp!""",
    "saved status and movs": """
        str lr, [r0]
        mrs r3, cpsr
        str r3, [r0, #4]
        ldr r3, [r1, #4]
        msr spsr_cxsf, r3
        ldr lr, [r1]
        movs pc, lr""",
    "by a global": """
        ldr r2, =current
        str r1, [r2]
        push {r4-r11, lr}
        str sp, [r0]
        ldr r3, [r2]
        ldr sp, [r3]
        pop {r4-r11, lr}
        bx lr""",
    "status of the mode": """
        mrs r2, cpsr
        stmfd sp!, {r2, r4-r11, lr}
        str sp, [r0]
        ldr sp, [r1]
        ldmfd sp!, {r2}
        msr cpsr_cxsf, r2
        ldmfd sp!, {r4-r11, pc}""",
    "pc alone": """
        str lr, [r0, #36]
        str sp, [r0, #32]
        ldr sp, [r1, #32]
        ldr pc, [r1, #36]""",
    "by a register": """
        push {lr}
        str sp, [r0]
        ldr r1, [r1]
        mov sp, r1
        ldr r12, [sp], #4
        bx r12""",
    "with the floating-point unit": """
        push {r4-r11, lr}
        vpush {d8-d15}
        vmrs r2, fpscr
        push {r2, r3}
        str sp, [r0]
        ldr sp, [r1]
        pop {r2, r3}
        vmsr fpscr, r2
        vpop {d8-d15}
        pop {r4-r11, pc}""",
}
THUMB = {
    "stack pointer": """
        push {r4-r7, lr}
        mov r2, sp
        str r2, [r0]
        ldr r2, [r1]
        mov sp, r2
        pop {r4-r7, pc}""",
    "longjmp": """
        stmia r0!, {r4-r7}
        mov r2, sp
        str r2, [r0]
        str lr, [r0, #4]
        ldmia r1!, {r4-r7}
        ldr r2, [r1]
        ldr r3, [r1, #4]
        mov sp, r2
        bx r3""",
    "rfe": """
        mrs r2, cpsr
        orr r2, r2, #0x20
        push {r2}
        push {lr}
        str.w sp, [r0]
        ldr.w sp, [r1]
        rfeia sp!""",
    "saved status and subs": """
        str.w lr, [r0]
        mrs r3, cpsr
        orr r3, r3, #0x20
        str r3, [r0, #4]
        ldr r3, [r1, #4]
        msr spsr_cxsf, r3
        ldr.w lr, [r1]
        subs pc, lr, #0""",
}
HEAD = """
.syntax unified
.arch armv7-a
.fpu neon
.macro begin name
.global \\name
.type \\name, %function
\\name:
.endm
"""
CALLER = """
begin main
    push {r4, lr}
    ldr r0, =place
    mov r1, r0
    bl switch
    bl after
    pop {r4, pc}
.size main, . - main
begin after
    bx lr
.size after, . - after
.ltorg
.data
.align 3
place: .space 128
current: .word place
"""


def switching(shape: str, *, thumb: bool) -> Path:
    """A program of which ``main`` calls ``switch``, and then ``after``."""
    body = (THUMB if thumb else ARM)[shape]
    mode = ".thumb" if thumb else ".arm"
    text = f"{HEAD}{mode}\nbegin switch\n{body}\n.size switch, . - switch\n.ltorg\n{CALLER}"
    return build(text, language="asm", cpu=CPU, thumb=thumb)


IN_C = """
typedef struct {{ int words[32]; }} context;
context place; context *current = &place; volatile int sink;
__attribute__((naked, noinline)) void switch_to(context *from, context *to) {{
    __asm__(".syntax unified\\n" {body});
}}
__attribute__((noinline)) void after(void) {{ sink++; }}
int main(void) {{ switch_to(&place, current); after(); return sink; }}
"""
COMPILERS = {
    "gcc": ("arm-none-eabi-gcc",),
    "clang": ("clang", "--target=arm-none-eabi"),
}


def compiled(shape: str, compiler: str, optimise: str, *, thumb: bool) -> Path:
    """The same in C, where ``switch_to`` is a function of one assembly statement."""
    lines = (THUMB if thumb else ARM)[shape].strip().splitlines()
    body = " ".join(f'"{line.strip()}\\n"' for line in [*lines, ".ltorg"])
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    (folder / "prog.c").write_text(IN_C.format(body=body))
    flags = [f"-mcpu={CPU}", "-mthumb" if thumb else "-marm", optimise, "-ffreestanding", "-w"]
    command = [
        *COMPILERS[compiler],
        *flags,
        "-mfloat-abi=softfp",
        "-mfpu=neon",
        "-c",
        "prog.c",
        "-o",
        "prog.o",
    ]
    link = ["arm-none-eabi-gcc", "-nostdlib", "-Wl,-Ttext=0x8000", "-Wl,-e,main", "prog.o"]
    for words in (command, [*link, "-Wl,--no-warn-rwx-segments", "-o", "prog.elf"]):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    return folder / "prog.elf"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="quoll-switches-")


def returning(elf: Path) -> frozenset[int]:
    """The functions that came back in an execution of ``main`` by QEMU's core."""
    image = Image.load(elf)
    core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
    core.mem_map(0, 4 << 20)
    for segment in image.segments:
        core.mem_write(segment.addr, segment.data)
    core.reg_write(uc.UC_ARM_REG_C1_C0_2, 0xF << 20)
    core.reg_write(uc.UC_ARM_REG_FPEXC, 1 << 30)
    start = address(image, "main")
    thumb = image.thumb_at(start) is True
    core.reg_write(uc.UC_ARM_REG_CPSR, STATUS | thumb << 5)
    core.reg_write(uc.UC_ARM_REG_SP, STACK)
    stop = 0x3F0000
    core.reg_write(uc.UC_ARM_REG_LR, stop | thumb)
    calls: list[tuple[int, int, int]] = []  # return address, its sp, callee
    found: set[int] = set()

    def executed(_core: unicorn.Uc, pc: int, size: int, _data: object) -> None:
        sp = core.reg_read(uc.UC_ARM_REG_SP)
        while calls and calls[-1][:2] == (pc, sp):
            found.add(calls.pop()[2])
        code = image.read(pc, size)
        assert code is not None
        insn = decode(code, pc, thumb)
        if insn.flow is ControlFlow.CALL and insn.target is not None:
            calls.append((insn.next, sp, insn.target))

    core.hook_add(unicorn.UC_HOOK_CODE, executed)
    core.emu_start(start | thumb, stop, count=STEPS)
    assert core.reg_read(uc.UC_ARM_REG_PC) == stop, "the program did not end"
    return frozenset(found)
