"""Lines of data accesses: every line that a concrete access touches is among the candidates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.data_accesses import DataAccessModel
from cache.lines import ANY_SET
from quoll.image.memory_map import Cacheability
from quoll.intervals.strided_interval import ValueSet, progression
from tests.testing.cache.graphs import DATA, DEVICE, pool
from tests.testing.cache.walks import L1, hierarchy

INSNS = """
    ldr r3, [r4]
    ldrb r3, [r4]
    ldrh r3, [r4]
    str r3, [r4]
    ldrd r2, r3, [r4]
    ldm r4, {r0-r3, r5-r9}
    stm r4, {r0-r3, r5-r12, lr}
"""


@st.composite
def aligned_sets(draw: st.DrawFn, align: int) -> ValueSet:
    base = draw(st.sampled_from([DATA, DATA + 4064, DEVICE - 64]))
    low = base + align * draw(st.integers(0, 40))
    stride = align * draw(st.sampled_from([1, 2, 8, 32, 1024]))
    return progression(low, low + stride * draw(st.integers(0, 40)), stride)


@pytest.mark.slow("many random programs")
@given(st.sampled_from(range(7)), st.data())
def test_candidates_cover_concrete_accesses(which: int, data: st.DataObject) -> None:
    insn = pool(INSNS)[which]
    assert insn.memory is not None
    align = 4 if insn.memory.count > 1 else insn.memory.size
    values = data.draw(aligned_sets(align))
    accesses = DataAccessModel(hierarchy(0)).accesses(insn, values)
    addr = data.draw(st.sampled_from(list(values)))
    size = insn.memory.size * insn.memory.count
    lines = L1.lines(addr, size)
    assert len(lines) <= len(accesses)
    words = (addr + size - 1) // 4 - addr // 4 + 1
    assert words <= sum(a.words for a in accesses)
    for line in lines:
        assert any(
            (a.candidates is None or line in a.candidates) and a.sets >> L1.index_set_of(line) & 1
            for a in accesses
        )
    cached = addr + size <= DEVICE
    wrong = Cacheability.NEVER if cached else Cacheability.ALWAYS
    assert all(a.memory is not wrong for a in accesses if a.low is not None and a.low <= addr)
    certain = [a for a in accesses if a.certain]
    assert all(a.candidates is not None and a.candidates[0] in lines for a in certain)


def test_sets_of_addresses_that_are_aligned() -> None:
    """An object of 512 bytes: word 68 of it is in the third line of one of its 8 places."""
    model, load = DataAccessModel(hierarchy(0)), pool(INSNS)[0]
    (access,) = model.accesses(load, ValueSet(DATA + 68, DATA + 68 + (512 << 10), 512))
    assert access.candidates is None
    assert access.sets == sum(1 << n for n in range(2, 128, 16))
    (access,) = model.accesses(load, ValueSet(DATA + 68, DATA + 68 + (16 << 10), 16))
    assert access.sets == ANY_SET


def test_generator_reaches_exact_and_unknown() -> None:
    model = DataAccessModel(hierarchy(0))
    load = pool(INSNS)[0]
    assert model.accesses(load, ValueSet.of(DATA))[0].certain
    assert model.accesses(load, ValueSet(DATA, DATA + 28, 4))[0].certain
    assert model.accesses(load, ValueSet(DATA, DATA + 32, 4))[0].candidates is not None
    assert model.accesses(load, ValueSet(DATA, DATA + 8192, 4))[0].candidates is None
    assert model.accesses(load, None)[0].memory is Cacheability.MAYBE
    assert model.accesses(load, ValueSet(0, 0xFFFFFFFF, 1))[0].candidates is None
