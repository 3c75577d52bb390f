"""Which extension an instruction needs, against the assembler's opinion (rule 47)."""

from random import Random

import pytest

from campaigns.decode_forms import ALWAYS, arm_words, thumb_words
from campaigns.encodings import UNCONDITIONAL, instructions, written
from quoll.arm.architecture import Extension, needed_extension
from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.unpredictable import has_meaning

V6 = {Extension.VFP2}
V6K = V6 | {Extension.V6K}
V7 = V6K | {
    Extension.SECURITY, Extension.THUMB2, Extension.V7, Extension.VFP3, Extension.NEON,
}  # fmt: skip
V7VE = V7 | {
    Extension.VIRTUALIZATION, Extension.MULTIPROCESSING, Extension.DIVISION,
    Extension.HALF_PRECISION, Extension.VFP4,
}  # fmt: skip
HAS = {"v6": V6, "v6k": V6K, "v7": V7, "v7ve": V7VE, "v8": set(Extension)}
HEADS = {
    "v6": (".arch armv6", ".fpu vfpv2"),
    "v6k": (".arch armv6k", ".fpu vfpv2"),
    "v7": (".arch armv7-a", ".arch_extension sec", ".fpu neon"),
    "v7ve": (".arch armv7ve", ".arch_extension sec", ".fpu neon-vfpv4"),
    "v8": (".arch armv8-a", ".arch_extension crc", ".fpu crypto-neon-fp-armv8"),
}


def removed_or_relative(insn: Insn) -> bool:
    """Instructions that ARMv8 or the disassembler's text removes, not the core."""
    listed = insn.mnemonic in ("ldm", "stm") and insn.size == 2
    by_pc = insn.mnemonic.startswith("str") and 15 in insn.reads
    low = insn.mnemonic == "add" and insn.size == 2  # of low registers without flags: ARMv6T2
    return insn.mnemonic in ("b", "setend", "hint", "nop") or listed or by_pc or low


@pytest.mark.slow("decodes thousands of instructions")
@pytest.mark.parametrize("thumb", [False, True], ids=["ARM", "Thumb"])
def test_agrees_with_the_assembler(thumb: bool) -> None:
    choice = Random(6)
    if thumb:
        words = [w for w, *_ in thumb_words(choice, 1) if len(w) == 4][::2]
        words += [half.to_bytes(2, "little") + b"\x00\xbf" for half in range(0, 0xE800, 53)]
    else:
        words = [w for w, *_ in arm_words(choice, [*ALWAYS, *UNCONDITIONAL], 1)]
        words += [word for word in written(thumb=False) if len(word) == 4]
    wrong, compared = [], 0
    for raw, text, accepted in instructions(words, thumb, HEADS):
        insn = decode(raw, 0x1000, thumb)
        if insn.flow is ControlFlow.UNDEFINED or not has_meaning(insn) or removed_or_relative(insn):
            continue
        compared += 1
        needed = needed_extension(insn)
        for name, extensions in HAS.items():
            if (needed is None or needed in extensions) != (name in accepted):
                wrong.append((name, text, needed))
    assert compared > 1500
    lax = ("vmaxnm", "vminnm", "fldm", "fstm")  # of the assembler: any FPU, any number of registers
    assert [found for found in wrong if not found[1].startswith(lax)] == []


def arm(word: int) -> Insn:
    return decode(word.to_bytes(4, "little"), 0x8000, False)


@pytest.mark.parametrize(
    ("word", "needed"),
    [
        (0xE1910C9F, Extension.V8),  # lda r0, [r1]
        (0xE320F005, None),  # sevl: ARMv7 executes hints that it does not know as nop
        (0xFE800A81, Extension.V8),  # vmaxnm.f32 s0, s1, s2
        (0xF57FF059, Extension.V8),  # dmb ishld
        (0xEEA00A81, Extension.VFP4),  # vfma.f32 s0, s1, s2
        (0xE160006E, Extension.VIRTUALIZATION),  # eret
        (0xE1000200, Extension.VIRTUALIZATION),  # mrs r0, r8_usr
        (0xE1600070, Extension.SECURITY),  # smc
        (0xE710F211, Extension.DIVISION),  # sdiv r0, r1, r2
        (0xF590F000, Extension.MULTIPROCESSING),  # pldw [r0]
        (0xEEB20AE0, Extension.HALF_PRECISION),  # vcvtt.f32.f16 s0, s1
        (0xF2022DC4, Extension.NEON),  # vadd.f32
        (0xEEB70A00, Extension.VFP3),  # vmov.f32 s0, #1.0
        (0xEE300A81, Extension.VFP2),  # vadd.f32 s0, s1, s2
        (0xE30004D2, Extension.THUMB2),  # movw r0, #1234
        (0xE0F100B2, Extension.THUMB2),  # ldrht r0, [r1], #2
        (0xF57FF05F, Extension.V7),  # dmb sy
        (0xF57FF01F, Extension.V6K),  # clrex
        (0xE1910F9F, None),  # ldrex r0, [r1]
        (0xF1020013, None),  # cps #19
        (0xE1010092, None),  # swp r0, r2, [r1]
    ],
)
def test_extensions_of_single_instructions(word: int, needed: Extension | None) -> None:
    assert needed_extension(arm(word)) is needed


def test_a_return_of_thumb_needs_no_virtualization() -> None:
    """subs pc, lr, #0 is the encoding that the Virtualization Extensions call eret (B9.3.19)."""
    insn = decode(bytes.fromhex("def3008f"), 0x8000, True)
    assert needed_extension(insn) is Extension.THUMB2


def test_instructions_of_the_m_profile_are_undefined() -> None:
    for halves in ((0x4704,), (0x4784,), (0xE97F, 0xE97F), (0xE840, 0xF000)):  # bxns, blxns, sg, tt
        raw = b"".join(half.to_bytes(2, "little") for half in halves)
        assert decode(raw.ljust(4, b"\0"), 0x8000, True).flow is ControlFlow.UNDEFINED
