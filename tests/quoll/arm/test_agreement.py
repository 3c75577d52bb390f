"""Decoding and register sets on library code: a sample; the campaign does all of it."""

from collections import Counter

import pytest

from quoll.arm.insn import Flow
from quoll.arm.semantics import identity, lift_afresh
from tests.testing.arm.agreement import disagreements, register_disagreements
from tests.testing.arm.corpus import sample


@pytest.mark.slow
def test_sample_is_varied() -> None:
    kinds = Counter((item.insn.thumb, item.insn.size, item.it) for item in sample())
    assert min(kinds[False, 4, False], kinds[True, 2, False], kinds[True, 4, False]) > 500
    assert min(kinds[True, 2, True], kinds[True, 4, True]) > 50
    flows = Counter(item.insn.flow for item in sample())
    assert min(flows[flow] for flow in (Flow.JUMP, Flow.CALL, Flow.INDIRECT)) > 10


@pytest.mark.slow
def test_agrees_with_objdump() -> None:
    wrong = [
        (item.insn.text, item.objdump, why) for item in sample() for why in disagreements(item)
    ]
    assert wrong == []


@pytest.mark.slow
def test_registers_agree_with_ops() -> None:
    wrong = [
        (item.insn.text, why) for item in sample() for why in register_disagreements(item.insn)
    ]
    assert wrong == []


@pytest.mark.slow
def test_identity_decides_the_ops() -> None:
    """An instruction at two addresses has the same ops whenever its identity is the same."""
    for item in sample():
        insn = item.insn
        if insn.flow in (Flow.JUMP, Flow.CALL):
            continue  # decoding gives them another target
        there = insn._replace(addr=insn.addr + 0x1234568)
        if identity(insn) == identity(there):
            assert lift_afresh(insn) == lift_afresh(there), insn.text
