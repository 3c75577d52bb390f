"""That one instruction of a form stands for all: against the disassembler's word on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.decode_forms import ALWAYS, arm_words, compared, thumb_words
from quoll.arm.decode import decode, disassembled
from quoll.arm.forms import form_of
from quoll.arm.insn import Insn
from quoll.errors import ControlFlowError
from quoll.semantics.lift import OpsForm, lift, lift_afresh, lifted
from quoll.semantics.ops import Op
from tests.testing.harness.cases import cases, spread

WORDS = st.builds(
    lambda cond, high, registers, low: cond << 28 | high << 20 | registers << 8 | low,
    st.sampled_from([0, 10, 14]),
    st.integers(0, 0x7F),
    st.integers(0, 0xFFF),
    st.integers(0, 0xFF),
)


@pytest.mark.slow("many random instructions")
@settings(max_examples=cases(400), deadline=None)
@given(WORDS)
def test_a_form_decodes_as_each_of_its_instructions(word: int) -> None:
    raw = word.to_bytes(4, "little")
    assert decode(raw, 0, thumb=False) == disassembled(raw, False, ())


@pytest.mark.slow("every form of instruction")
def test_every_form_and_place() -> None:
    """A campaign compares a million words with every condition."""
    random = Random(7)
    for words in (arm_words(random, ALWAYS, 1), islice(thumb_words(random, 1), 0, None, 31)):
        count, wrong = compared(words)
        assert count > 2000
        assert wrong == []


@pytest.mark.slow("many random instructions")
@settings(max_examples=cases(400), deadline=None)
@given(WORDS)
def test_a_form_computes_what_each_of_its_instructions_does(word: int) -> None:
    insn = decode(word.to_bytes(4, "little"), 0x8000, thumb=False)
    assert outcome(lift, insn) == outcome(lift_afresh, insn)


@pytest.mark.slow("every form of instruction")
def test_every_form_computes_the_same() -> None:
    for raw, addr, thumb, _ in arm_words(Random(11), ALWAYS, 1):
        insn = decode(raw, addr, thumb)
        assert outcome(lift, insn) == outcome(lift_afresh, insn), insn.text


def test_branches_and_literals_are_of_one_form() -> None:
    """Conditional and not, near and far, at several addresses."""
    random = Random(5)
    for opcode in (0x0A000000, 0x0B000000, 0x051F0000, 0x059F0000):
        forms = set()
        for _ in range(200):
            rest = random.getrandbits(24) if opcode >> 24 != 5 else random.getrandbits(16) % 0xD000
            word = random.choice((0, 9, 14)) << 28 | opcode | rest
            insn = decode(word.to_bytes(4, "little"), 0x8000 + 4 * random.getrandbits(16), False)
            assert lift(insn) == lift_afresh(insn), insn.text
            forms.add(lifted(insn).form)
        assert len(forms) == 3  # one for each condition


@pytest.mark.slow("every number of each form")
@pytest.mark.parametrize(
    ("opcode", "most"),
    spread(
        [
            (0xE3A00000, 4096 - 16),  # mov: all but 0, in each of its rotations
            (0xE5910000, 4096 - 1),  # ldr: all but 0
            (0xE3B00000, 256 - 1),  # movs: the carry flag depends on how the number is rotated
        ],
        2,
    ),
)
def test_a_number_stands_for_others_of_its_form(opcode: int, most: int) -> None:
    forms: Counter[OpsForm] = Counter()
    for number in range(0x1000):
        insn = decode((opcode | number).to_bytes(4, "little"), 0, thumb=False)
        assert lift(insn) == lift_afresh(insn), insn.text
        forms[lifted(insn).form] += 1
    assert max(forms.values()) == most


def outcome(lifting: Callable[[Insn], tuple[Op, ...]], insn: Insn) -> tuple[Op, ...] | str:
    """The ops, or why there are none."""
    try:
        return lifting(insn)
    except ControlFlowError as fault:
        return str(fault)


def test_few_forms_stand_for_many_instructions() -> None:
    """Every register and number of a load, an addition and a comparison."""
    words = [
        opcode | n % 13 << 16 | (0 if compares else n % 11 << 12) | n
        for opcode, compares in ((0xE5900000, False), (0xE2800000, False), (0xE3500000, True))
        for n in range(0x1000)
    ]
    forms = Counter(form[0] for form in map(form_of, words) if form)
    assert forms.total() == len(words)
    assert len(forms) == 2 * 3  # a number is zero or not


def test_what_shares_the_space_stands_for_itself() -> None:
    alone = (0xE12FFF1E, 0xE16F0F11, 0xE0000291, 0xE1C200D0, 0xE8BD8010, 0xF5D1F000)
    assert [form_of(word) for word in alone] == [None] * len(alone)  # bx clz mul ldrd pop pld
