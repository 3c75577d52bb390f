"""The table of system effects covers every encoding, and names code that is there."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from random import Random

import pytest

from campaigns.documented import inside
from campaigns.system_effects import table
from campaigns.system_instructions import SystemInstruction, rows
from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.unpredictable import has_meaning
from tests.testing.harness import build

SAMPLES = 3  # words of each form

# Instructions that compute with registers, flags and ordinary memory only As text, not as a list:
# seventy names would take a line each when formatted
COMPUTES = frozenset(
    """adc add and bfc bfi bic clz cmn cmp eor mls mov movt mvn orn orr pkhbt pkhtb rbit rev rev16
    revsh rsb rsc sbc sbfx sdiv sel ssat ssat16 sub sxtab sxtab16 sxtah sxtb sxtb16 sxth teq tst
    ubfx udiv usad8 usada8 usat usat16 uxtab uxtab16 uxtah uxtb uxtb16 uxth b bl cbz cbnz ldm ldr
    ldrb ldrd ldrh ldrsb ldrsh stm str strb strd strh""".split()  # noqa: SIM905
)
STEMS = ("mla", "mul", "q", "sadd", "sasx", "shadd", "shasx", "shsax", "shsub", "smla", "smls",
         "smml", "smmu", "smua", "smul", "smus", "ssax", "ssub", "uadd", "uasx", "uhadd", "uhasx",
         "uhsax", "uhsub", "umaal", "umlal", "umull", "uqadd", "uqasx", "uqsax", "uqsub", "usax",
         "usub", "aes", "sha", "crc32")  # fmt: skip


def computes(insn: Insn) -> bool:
    """Whether ``insn`` changes registers, flags and ordinary memory only."""
    if insn.flow not in (ControlFlow.NEXT, ControlFlow.JUMP, ControlFlow.CALL):
        return False
    if insn.memory is not None and insn.memory.user:
        return False
    vector = insn.mnemonic[0] in "fv" and insn.mnemonic not in ("vmrs", "vmsr")
    return vector or insn.mnemonic in COMPUTES or insn.mnemonic.startswith(STEMS)


def encodings() -> Iterator[Insn]:
    """Words of every value of bits 31 to 20 and 7 to 4, every halfword, every first half."""
    choice = Random(46)

    def arm(word: int) -> Insn:
        return decode(word.to_bytes(4, "little"), 0x8000, False)

    def thumb(*halves: int) -> Insn:
        return decode(b"".join(h.to_bytes(2, "little") for h in halves), 0x8000, True)

    for high in (*range(0xE00, 0xF00), *range(0xF00, 0x1000)):
        for low in range(16):
            for _ in range(SAMPLES):
                yield arm(
                    high << 20 | choice.getrandbits(12) << 8 | low << 4 | choice.getrandbits(4)
                )
    for half in range(0xE800):
        if half >> 11 not in (0b11100, 0b11010) or half % 16 == 0:
            yield thumb(half)
    for first in range(0xE800, 0x10000):
        yield thumb(first, choice.getrandbits(16))
    for row in rows():  # few random words are one of these
        if row.example:
            yield arm(row.example)
            if row.example >> 24 == 0xEE or row.example >> 24 == 0xEC:
                yield thumb(row.example >> 16, row.example & 0xFFFF)


def uncovered(found: list[Insn], among: tuple[SystemInstruction, ...]) -> list[str]:
    return [
        insn.text
        for insn in found
        if not computes(insn) and not any(row.applies(insn) for row in among)
    ]


@pytest.fixture(scope="module")
def system_encodings() -> list[Insn]:
    """Instructions that do more than compute, one of each text without numbers and registers."""
    known: dict[tuple[object, ...], Insn] = {}
    for insn in encodings():
        if insn.flow is not ControlFlow.UNDEFINED and has_meaning(insn) and not computes(insn):
            known[(insn.encoding,) if insn.mnemonic in KEPT else _shape(insn)] = insn
    return list(known.values())


KEPT = frozenset(["mcr", "mcrr", "mrc", "mrrc", "msr", "mrs", "cps"])


def _shape(insn: Insn) -> tuple[object, ...]:
    return insn.mnemonic, insn.thumb, insn.flow, insn.memory is None, insn.size


@pytest.mark.slow("executes thousands of instructions in Unicorn or the interpreter")
def test_every_encoding_is_in_a_row(system_encodings: list[Insn]) -> None:
    assert len(system_encodings) > 200
    assert uncovered(system_encodings, rows()) == []


@pytest.mark.slow("executes thousands of instructions in Unicorn or the interpreter")
def test_no_row_can_be_taken_out(system_encodings: list[Insn]) -> None:
    """Without any one row, something is in none; registers of coprocessor 15 lose their own row."""
    first = {id(row_of(insn)) for insn in system_encodings}
    assert not [row.name for row in rows() if id(row) not in first]


def row_of(insn: Insn) -> SystemInstruction | None:
    """The first row that ``insn`` is in."""
    return next((row for row in rows() if row.applies(insn)), None)


def example(row: SystemInstruction) -> Insn:
    return decode(row.example.to_bytes(4, "little"), 0x8000, False)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_row_describes_its_example_and_names_code(row: SystemInstruction) -> None:
    if row.example:
        assert row_of(example(row)) is row
    for treatment in row.treatments.values():
        module, _, name = treatment.code.partition(":")
        assert hasattr(importlib.import_module(module), name), treatment.code
    assert row.treatments


def test_the_document_is_the_table() -> None:
    page = (build.ROOT / "docs/system-effects.md").read_text("utf-8")
    assert inside(page, "system effects") == table().strip()
