"""UNPREDICTABLE forms, by the manual and by the assembler (rule 47)."""

from random import Random

import pytest

from campaigns.decode_forms import ALWAYS, arm_words, thumb_words
from campaigns.encodings import UNCONDITIONAL, instructions
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.arm.unpredictable import RULES, has_meaning
from quoll.semantics.lift import lift
from quoll.semantics.ops import OpCode

# One word for each row of RULES, in its order
ARM_WORDS = (
    0xE01F0391,  # muls pc, r1, r3
    0xE3530FF0 | 0x5000,  # cmp r3, #960 with a destination
    0xE300F000,  # movw pc, #0
    0xED2F0A01,  # vpush-like: vstmdb pc!, {s0}
    0xEE00FA10,  # vmov s0, pc
)
THUMB_WORDS = (0xFB0DF001,)  # mul r0, sp, r1
MORE_ARM = (
    0xE0811392,  # umull r1, r1, r2, r3
    0xE7C21190,  # bfi r1, r0, #3, #0
    0xE5B11004,  # ldr r1, [r1, #4]!
    0xE791000F,  # ldr r0, [r1, pc]
    0xE5D1F000,  # ldrb pc, [r1]
)
MORE_THUMB = (
    0xF8C1F000,  # str.w pc, [r1]
)
LAST_ARM = (
    0xE4B11004,  # ldrt r1, [r1], #4
    0xE1C130D0,  # ldrd r3, r4, [r1]
)
PAIR_THUMB = (0xE9D12200,)  # ldrd r2, r2, [r1]
REST_ARM = (
    0xE18120D2,  # ldrd r2, r3, [r1, r2]
    0xE89F0003,  # ldm pc, {r0, r1}
    0xE8B10006,  # ldm r1!, {r1, r2}
)
LIST_THUMB = (0xE8912000,)  # ldm.w r1, {sp}
SYSTEM_ARM = (
    0xE8F10006,  # ldm r1!, {r1, r2}^
    0xE1811F92,  # strex r1, r2, [r1]
    0xE1011092,  # swp r1, r2, [r1]
    0xE10FF000,  # mrs pc, cpsr
    0xEE07FF15,  # mcr p15, 0, pc, c7, c5, 0
    0xE12FFF3F,  # blx pc
)
TABLE_THUMB = (0xE8DDF001,)  # tbb [sp, r1]
END_ARM = (
    0xF1000000,  # cps without effect
    0xF8BF0A00,  # rfeia pc!
)


def insns() -> list[Insn]:
    groups = (
        (ARM_WORDS, False), (THUMB_WORDS, True), (MORE_ARM, False), (MORE_THUMB, True),
        (LAST_ARM, False), (PAIR_THUMB, True), (REST_ARM, False), (LIST_THUMB, True),
        (SYSTEM_ARM, False), (TABLE_THUMB, True), (END_ARM, False),
    )  # fmt: skip
    found = []
    for words, thumb in groups:
        for word in words:
            halves = (word >> 16, word & 0xFFFF) if thumb else (word & 0xFFFF, word >> 16)
            raw = b"".join(half.to_bytes(2, "little") for half in halves)
            found.append(decode(raw, 0x8000, thumb))
    return found


def test_every_rule_has_an_example() -> None:
    applied = {rule.what for insn in insns() for rule in RULES if rule.applies(insn)}
    assert [rule.what for rule in RULES if rule.what not in applied] == []


def test_unpredictable_forms_take_no_part_in_semantics() -> None:
    for insn in insns():
        assert [op.code for op in lift(insn)][-1] is OpCode.TRAP, insn.text


# The manual forbids these; the assembler takes them (binutils 2.40)
LAX = (
    "bfi",
    "ldrd",
    "pld",
    "sbfx",
    "strex",
    "ubfx",
    "umaal",
    "umlal",
    "umull",
    "smull",
    "vmov",
    "asr",
    "lsl",
    "lsr",
    "ror",
)


@pytest.mark.slow("decodes thousands of instructions")
@pytest.mark.parametrize("thumb", [False, True], ids=["ARM", "Thumb"])
def test_what_the_assembler_takes_has_a_meaning(thumb: bool) -> None:
    choice = Random(7)
    if thumb:
        words = [w for w, *_ in thumb_words(choice, 1) if len(w) == 4][::2]
    else:
        words = [w for w, *_ in arm_words(choice, [*ALWAYS, *UNCONDITIONAL], 1)]
    taken = [decode(raw, 0x1000, thumb) for raw, *_ in instructions(words, thumb)]
    assert len(taken) > 1000
    refused = [i.text for i in taken if not has_meaning(i)]
    assert [t for t in refused if not t.startswith((*LAX, "smlal", "smlsld"))] == []
