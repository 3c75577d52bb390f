"""The quick proof of frames: values prove the same, and it refuses false frames."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from quoll.abstract_domain.function_values import CALLEE_SAVED
from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Cfg
from quoll.extraction.extract import extract
from quoll.facts.contract import STANDARD
from quoll.image.image import Image
from quoll.indirect import stack_frames
from quoll.indirect.returns import ReturnConfirmer, UnresolvedReason
from quoll.indirect.stack_frames import FrameContract, FrameProofFailure, prove_frame
from tests.testing.harness.cases import cases
from tests.testing.quoll.sketch import assemble, extracted

pytestmark = [
    pytest.mark.slow("builds functions at several levels"),
    pytest.mark.xdist_group("frames"),
]

FUNCTIONS = cases(4)  # entries of each library build: with callees some 70 functions


def returns_of(cfg: Cfg) -> set[int]:
    """Indirect transfers that were found to return."""
    return {b.last.addr for b in cfg.blocks if b.returns and b.last.flow is ControlFlow.INDIRECT}


@pytest.mark.slow("compiles and extracts many programs")
@pytest.mark.parametrize(
    "flags",
    [
        ("-marm", "-mcpu=arm1136jf-s"),
        ("-mthumb", "-march=armv7-a", "-mfloat-abi=soft"),
        ("-mthumb", "-mcpu=arm7tdmi"),
    ],
)
def test_library_functions_against_values(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    command = ["arm-none-eabi-gcc", *flags, "main.c", "-nostartfiles", "-nostdlib", "-o", "lib.elf"]
    command += ["-Wl,--whole-archive", "-lc", "-Wl,--no-whole-archive", "-lgcc", "-Wl,-e,main"]
    command += ["-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    image = Image.load(tmp_path / "lib.elf")
    symbols = [s for s in image.symbols.symbols if s.kind == "func" and s.size]
    step = len(symbols) // FUNCTIONS
    program = extract(image, [s.addr | s.thumb for s in symbols[::step]])
    seen: Counter[str] = Counter()
    confirmer = ReturnConfirmer(image)
    for cfg in program.functions.values():
        returns = returns_of(cfg)
        try:
            frame = prove_frame(cfg, returns, confirmer.contract_of_any)
        except FrameProofFailure:
            seen["gave up"] += 1
            continue
        seen["proved"] += 1
        confirmed = confirmer(cfg, returns)
        if isinstance(confirmed, str):
            continue
        for block in cfg.blocks:
            if block.last.addr in returns:
                answer = confirmed.endings[block.index].effect
                proved = (
                    answer.dead
                    if isinstance(answer, UnresolvedReason)
                    else answer and answer[0].returns
                )
                assert proved, image.place(block.last.addr)
                seen["returns"] += 1
        assert frame.preserved <= confirmer.left_by(cfg, confirmed, set()).preserved, cfg.name
    assert seen["proved"] > 4 * seen["gave up"]
    assert seen["returns"] > FUNCTIONS


def proved(text: str, *, thumb: bool = False) -> FrameContract:
    """The proof of ``main``, all its candidates for returns included."""
    image = assemble(text, thumb=thumb, cpu="cortex-a8" if thumb else "arm1136jf-s")
    cfg = extracted(image).functions[0x8000]
    last = {b.last.addr for b in cfg.blocks if b.last.flow is ControlFlow.INDIRECT}
    return prove_frame(cfg, last, lambda _: STANDARD)


STATUS_SPILLED = (  # as where interrupts are masked during a call
    "main: push {{r4, lr}}\n sub sp, sp, #8\n mrs r3, cpsr\n cpsid i\n str r3, [sp, #4]\n {}\n"
    " bl x\n ldr r3, [sp, #4]\n msr cpsr_c, r3\n add sp, sp, #8\n pop {{r4, pc}}\n"
    ".type x, %function\nx: bx lr"
)


@pytest.mark.parametrize(
    "text",
    [
        "main: bx lr",
        "main: push {r4, lr}\n mov r4, #1\n pop {r4, pc}",
        "main: str lr, [sp, #-4]!\n sub sp, sp, #20\n str r0, [sp, #8]\n add sp, sp, #20\n"
        " ldr pc, [sp], #4",
        "main: push {r4, fp, lr}\n add fp, sp, #8\n sub sp, sp, #64\n str r0, [fp, #-16]\n"
        " sub sp, fp, #8\n pop {r4, fp, pc}",
        "main: push {r0-r3}\n push {r4, lr}\n pop {r4, lr}\n add sp, sp, #16\n bx lr",
        "main: mov ip, sp\n push {fp, ip, lr, pc}\n sub fp, ip, #4\n ldmdb fp, {fp, sp, pc}",
        "main: cmp r0, #0\n bxeq lr\n push {r4, r5, lr}\nx: subs r0, r0, #1\n bne x\n"
        " popne {r4, r5, pc}\n pop {r4, r5, pc}",
        "main: push {r4, lr}\n mrs r4, cpsr\n cpsid i\n str r0, [r1]\n cpsie if\n pop {r4, pc}",
        "main: push {r4, lr}\n mrs r4, cpsr\n cpsid i\n bl x\n msr cpsr_c, r4\n pop {r4, pc}\n"
        ".type x, %function\nx: bx lr",
        "main: push {r4, lr}\n sub sp, sp, #8\n mrs r4, cpsr\n str r4, [sp, #4]\n"
        " orr r4, r4, #0x80\n msr cpsr_c, r4\n ldr r0, [sp, #4]\n msr cpsr_c, r0\n"
        " add sp, sp, #8\n pop {r4, pc}",
        "main: push {r4, lr}\n cmp r0, #0\n mrs r4, cpsr\n bne x\n mrs r4, cpsr\n cpsid i\n"
        "x: msrne cpsr_c, r4\n msr cpsr_f, r0\n pop {r4, pc}",
        STATUS_SPILLED.format("mov r0, #4"),
        STATUS_SPILLED.format("str r0, [r1]"),
    ],
)
def test_frames_that_are_kept(text: str) -> None:
    assert proved(text).preserved == CALLEE_SAVED


def test_a_frame_of_thumb_code_and_what_is_not_given_back() -> None:
    text = "main: push {r7, lr}\n sub sp, #16\n add r7, sp, #0\n str r0, [r7, #4]\n"
    text += " adds r7, #16\n mov sp, r7\n movs r5, #1\n pop {r7, pc}"
    frame = proved(text, thumb=True)
    assert frame.preserved == CALLEE_SAVED - {5}
    assert not frame.assumes


def test_a_store_of_unknown_address_needs_s1() -> None:
    frame = proved("main: push {r4, lr}\n str r0, [r1]\n pop {r4, pc}")
    assert frame.assumes


@pytest.mark.parametrize(
    "text",
    [
        "main: push {r4, lr}\n str r0, [sp, #4]\n pop {r4, pc}",  # the return address itself
        "main: push {r4, lr}\n strb r0, [sp, #6]\n pop {r4, pc}",  # a byte of it
        "main: push {r4, lr}\n strd r2, [sp]\n pop {r4, pc}",
        "main: push {r4, lr}\n pop {pc}",  # the wrong word
        "main: push {r4, lr}\n str r0, [sp, r1]\n pop {r4, pc}",  # some word of the frame
        "main: push {r4, lr}\n add r2, sp, r1\n str r0, [r2]\n pop {r4, pc}",
        "main: push {r4, lr}\n mov r2, sp\n add r2, r2, r1\n str r0, [r2]\n pop {r4, pc}",
        "main: push {r4, lr}\n cmp r0, #0\n pusheq {r4}\n pop {r4, pc}",
        "main: push {r4, lr}\n cmp r0, #0\n streq r0, [sp, #4]\n pop {r4, pc}",
        "main: cmp r0, #0\n moveq lr, r1\n bx lr",
        "main: push {r4, lr}\n mov sp, r0\n pop {r4, pc}",
        "main: push {r4, lr}\n bic sp, sp, #7\n pop {r4, pc}",
        "main: push {r4, lr}\n .word 0xe24ddf01\n add sp, sp, #30\n pop {r4, pc}",  # 1 ror 30
        "main: push {r4, lr}\n cps #0x12\n pop {r4, pc}",
        "main: push {r4, lr}\n cpsid i, #0x12\n pop {r4, pc}",
        "main: push {r4, lr}\n msr cpsr_c, r0\n pop {r4, pc}",
        "main: push {r4, lr}\n msr cpsr_c, #0x12\n pop {r4, pc}",
        "main: push {r4, lr}\n mrs r4, spsr\n msr cpsr_c, r4\n pop {r4, pc}",
        "main: push {r4, lr}\n mrs r4, cpsr\n orr r4, r4, #0x90\n msr cpsr_c, r4\n pop {r4, pc}",
        "main: push {r4, lr}\n mrs r4, cpsr\n add r4, r4, #1\n msr cpsr_c, r4\n pop {r4, pc}",
        "main: push {r4, lr}\n cmp r0, #0\n mrsne r4, cpsr\n msr cpsr_c, r4\n pop {r4, pc}",
        "main: push {r4, lr}\n mrs r1, cpsr\n bl x\n msr cpsr_c, r1\n pop {r4, pc}\n"
        ".type x, %function\nx: bx lr",
        "main: push {lr}\nx: push {r0}\n subs r0, r0, #1\n bne x\n pop {pc}",  # sp grows
        "main: push {lr}\n bl x\n bx lr\nx: bx lr",  # lr is the call's
        "main: push {r4, lr}\n swp r0, r1, [sp]\n ldr r0, [sp, #4]\n ldr pc, [sp], #8",
        STATUS_SPILLED.format("add r0, sp, #4"),  # the callee may write there
        STATUS_SPILLED.format("mov r2, sp\n str r2, [r0]"),
        STATUS_SPILLED.format("mov r2, sp\n str r2, [sp]\n mov r2, #0"),
        STATUS_SPILLED.format("mov r2, sp\n mcr p15, 0, r2, c13, c0, 2\n mov r2, #0"),
        STATUS_SPILLED.format("cmp r0, #0\n addeq r0, sp, #4"),
        "main: push {r4, lr}\n mrs r3, cpsr\n str r3, [sp, #8]\n bl x\n ldr r3, [sp, #8]\n"
        " msr cpsr_c, r3\n pop {r4, pc}\n.type x, %function\nx: bx lr",  # the caller's word
    ],
)
def test_frames_that_are_not_kept(text: str) -> None:
    with pytest.raises(FrameProofFailure):
        proved(text)


@pytest.mark.slow("compiles and extracts many programs")
def test_constants_added_to_sp_are_what_the_encoding_says() -> None:
    """Of each number that an ARM instruction can hold, in each of its encodings (A5.2.4)."""
    before: list[int | None] = [stack_frames.entry(r) for r in range(15)]
    followed = 0
    for field in range(1 << 12):
        number, rotation = field & 0xFF, field >> 7 & 30
        number = (number >> rotation | number << (32 - rotation)) & 0xFFFFFFFF
        for opcode, amount in ((0xE28D4000, number), (0xE24D4000, -number)):
            insn = decode((opcode | field).to_bytes(4, "little"), 0, thumb=False)
            after = stack_frames._computed(insn, before)
            assert after in (stack_frames.entry(13, amount), stack_frames.STACK), insn.text
            followed += after != stack_frames.STACK
    assert followed > 1 << 12


def test_callees_that_do_not_give_sp_back() -> None:
    image = assemble("main: push {r4, lr}\n bl x\n pop {r4, pc}\n .type x, %function\nx: bx lr")
    cfg = extracted(image).functions[0x8000]
    assert prove_frame(cfg, returns_of(cfg), lambda _: STANDARD).assumes
    with pytest.raises(FrameProofFailure):
        prove_frame(cfg, returns_of(cfg), lambda _: STANDARD.preserving(CALLEE_SAVED - {13}))
    frame = prove_frame(cfg, returns_of(cfg), lambda _: STANDARD.preserving(CALLEE_SAVED - {6}))
    assert frame.preserved == CALLEE_SAVED - {6}
