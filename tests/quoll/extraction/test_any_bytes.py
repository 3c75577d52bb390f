"""For any bytes, an instruction has semantics or an error with the reason."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow
from quoll.arm.unpredictable import has_meaning
from quoll.errors import ControlFlowError
from quoll.semantics.lift import lift
from tests.testing.harness.cases import cases

USER_BANK_STORE = 0xE86F0003  # stmda pc!, {r0, r1}^
VECTOR_STORE = 0xECAFEA04  # vstmia pc!, {s28 to s31}
RETURN_FROM_EXCEPTION = 0xF93F6154  # rfedb pc!
PC_SHIFTED = 0x304FEA5E  # orrs.w r0, lr, pc, lsl #13


@pytest.mark.slow("many random words as code")
@given(word=st.integers(0, 2**32 - 1), thumb=st.booleans())
@settings(max_examples=cases(300), deadline=None, derandomize=True)
def test_any_word_lifts_or_is_refused(word: int, thumb: bool) -> None:
    insn = decode(struct.pack("<I", word), 0x8000, thumb)
    assert insn.size in (2, 4)
    with suppress(ControlFlowError):
        assert isinstance(lift(insn), tuple)


@pytest.mark.parametrize("word", [USER_BANK_STORE, VECTOR_STORE])
def test_a_store_that_writes_the_pc_back_is_unpredictable(word: int) -> None:
    insn = decode(struct.pack("<I", word), 0x8000, False)
    assert insn.flow is ControlFlow.INDIRECT
    assert not has_meaning(insn)
    assert [op.code.name for op in lift(insn)] == ["TRAP"]


def test_a_shifted_pc_is_unpredictable() -> None:
    insn = decode(struct.pack("<I", PC_SHIFTED), 0x8000, True)
    assert insn.mnemonic == "orr"
    assert not has_meaning(insn)


def test_a_return_from_exception_that_writes_the_pc_back_is_unpredictable() -> None:
    insn = decode(struct.pack("<I", RETURN_FROM_EXCEPTION), 0x8000, False)
    assert insn.flow is ControlFlow.EXCEPTION_RETURN
    assert not has_meaning(insn)
