"""Decoding and register sets on library code: a sample; the campaign does all of it."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow
from quoll.semantics.lift import identity, lift_afresh
from tests.testing.arm.agreement import disagreements, register_disagreements
from tests.testing.arm.corpus import sample
from tests.testing.harness.cases import spread


@pytest.mark.slow("decodes thousands of instructions")
def test_sample_is_varied() -> None:
    kinds = Counter((item.insn.thumb, item.insn.size, item.it) for item in sample())
    assert min(kinds[False, 4, False], kinds[True, 2, False], kinds[True, 4, False]) > 500
    assert min(kinds[True, 2, True], kinds[True, 4, True]) > 50
    flows = Counter(item.insn.flow for item in sample())
    assert (
        min(flows[flow] for flow in (ControlFlow.JUMP, ControlFlow.CALL, ControlFlow.INDIRECT)) > 10
    )


@pytest.mark.slow("decodes thousands of instructions")
def test_agrees_with_objdump() -> None:
    wrong = [
        (item.insn.text, item.objdump, why) for item in sample() for why in disagreements(item)
    ]
    assert wrong == []


@pytest.mark.slow("decodes thousands of instructions")
def test_registers_agree_with_ops() -> None:
    wrong = [
        (item.insn.text, why) for item in sample() for why in register_disagreements(item.insn)
    ]
    assert wrong == []


@pytest.mark.slow("decodes thousands of instructions")
def test_identity_decides_the_ops() -> None:
    """An instruction at two addresses has the same ops whenever its identity is the same."""
    for item in spread(sample(), 3_000):
        insn = item.insn
        if insn.flow in (ControlFlow.JUMP, ControlFlow.CALL):
            continue  # decoding gives them another target
        there = insn._replace(addr=insn.addr + 0x1234568)
        if identity(insn) == identity(there):
            assert lift_afresh(insn) == lift_afresh(there), insn.text


def everywhere() -> Iterator[tuple[bytes, bool]]:
    """A sample of the encoding space; every table branch by a register is in it."""
    choice = Random(42)
    yield from ((half.to_bytes(2, "little"), True) for half in range(0, 0xE800, 29))
    for first in range(0xE8D0, 0xE8E0):  # with tbb and tbh
        for second in (0xF000, 0xF003, 0xF010, 0xF013, 0x0502, 0x2304):
            yield first.to_bytes(2, "little") + second.to_bytes(2, "little"), True
    for first in range(0xE800, 0x10000, 3):
        yield first.to_bytes(2, "little") + choice.randbytes(2), True
    for high in range(0, 1 << 16, 19):
        word = high >> 4 << 20 | choice.getrandbits(20) & ~0xF0 | (high & 15) << 4
        yield word.to_bytes(4, "little"), False


@pytest.mark.slow("decodes thousands of instructions")
def test_equal_identity_means_equal_ops_everywhere() -> None:
    """Rule 42: the cache key of an instruction has every input, including its address."""
    tables = 0
    for raw, thumb in everywhere():
        here, there = (
            decode(raw, 0x8000, thumb),
            decode(raw, 0x12_3456 & ~(1 if thumb else 3), thumb),
        )
        if identity(here) == identity(there):
            assert lift_afresh(here) == lift_afresh(there), here.text
        tables += here.mnemonic in ("tbb", "tbh")
    assert tables > 20
