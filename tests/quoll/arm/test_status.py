"""Modes, masks and coprocessor registers, against the disassembler's text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from quoll.arm.coprocessor import coprocessor_operation
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.arm.status import (
    StatusField,
    leaves_mode,
    reads_current_status,
    state_change,
    status_written,
    switches_mode,
    writes_saved_status,
)

CPS = re.compile(r"cps(ie|id|)(?:\.w)? ?(a?i?f?|none)(?:, )?(?:#(0x[0-9a-f]+|\d+))?")
MCR = re.compile(r"(?:mcr|mrc)2?\w* p(\d+), #(\w+), \w+, c(\d+), c(\d+), #(\w+)")
ARM = (0xE1000000, 0xE1200000, 0xE3200000, 0xF1000000, 0xEE000010)
THUMB = (0xF3AF8000, 0xF3808000, 0xF3EF8000, 0xEE000010)


def instructions(count: int) -> Iterator[Insn]:
    random = Random(3)
    for _ in range(count):
        bits = random.getrandbits(24) & random.choice((0xFFFFF, 0xFFFFFF, 0xF07FF))
        word = random.choice(ARM) | bits
        yield decode(word.to_bytes(4, "little"), 0, thumb=False)
        halves = (random.choice(THUMB) | bits).to_bytes(4, "big")
        yield decode(bytes((halves[1], halves[0], halves[3], halves[2])), 0, thumb=True)
    for half in range(0xB600, 0xB700):
        yield decode(half.to_bytes(2, "little"), 0, thumb=True)


@pytest.mark.slow("decodes thousands of instructions")
def test_as_it_is_printed() -> None:
    seen: Counter[str] = Counter()
    for insn in instructions(30_000):
        name, text = insn.text.split()[0] if insn.text else "", insn.text
        if name.startswith("cps"):
            seen["cps"] += 1
            change, printed = state_change(insn), CPS.fullmatch(text)
            assert change is not None
            assert printed is not None, text
            assert change.enables == {"ie": True, "id": False, "": None}[printed[1]], text
            assert change.enables is None or change.interrupts == ("i" in printed[2]), text
            if change.enables is not None or change.mode is not None:  # else UNPREDICTABLE
                assert change.mode == (int(printed[3], 0) if printed[3] else None), text
        if name.startswith("mrs"):
            seen["mrs"] += 1
            assert reads_current_status(insn) == text.endswith(("apsr", "cpsr")), text
        if name.startswith("msr"):
            seen["msr"] += 1
            field = re.search(r"(?:cpsr|apsr)_(\w+)", text)
            written = field is not None and re.fullmatch("f?s?x?c?", field[1]) is not None
            assert (StatusField.CONTROL in status_written(insn)) == (
                written and field is not None and "c" in field[1]
            ), text
            assert writes_saved_status(insn) == ("spsr" in text), text
        printed = MCR.match(text)
        if printed is not None:
            seen["mcr"] += 1
            found = coprocessor_operation(insn)
            assert found is not None
            assert found.register is not None
            numbers = (found.coprocessor, *found.register)
            assert numbers == tuple(int(n, 0) for n in printed.groups()), text
            assert (found.written is not None) == name.startswith("mcr")
    assert min(seen.values()) > 100
    assert seen.keys() == {"cps", "mrs", "msr", "mcr"}


@pytest.mark.parametrize(
    ("word", "mode", "state"),
    [
        (0xF1080080, True, True),  # cpsie i
        (0xE129F000, True, True),  # msr cpsr_fc, r0
        (0xF8BD0A00, True, True),  # rfeia sp!
        (0xF96D0513, True, True),  # srsdb sp!, #19
        (0xEF000000, False, True),  # svc #0
        (0xE1600070, False, True),  # smc #0
        (0xF1010200, False, True),  # setend be
        (0xE10F0000, False, False),  # mrs r0, apsr
        (0xF57FF04F, False, False),  # dsb
    ],
)
def test_modes(word: int, mode: bool, state: bool) -> None:
    insn = decode(word.to_bytes(4, "little"), 0, thumb=False)
    assert (switches_mode(insn), leaves_mode(insn)) == (mode, state), insn.text
