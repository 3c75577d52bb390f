"""Results of ops on partly unknown words hold for every place of the stack."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from loopbounds.execution.value import (
    NEAR,
    ConcreteValue,
    LowBytes,
    StackAddress,
    WordRange,
    mixed,
)
from quoll.semantics.operations import OPERATIONS, evaluate
from quoll.semantics.ops import OpCode

WORD = 1 << 32
ONE = (
    OpCode.COPY,
    OpCode.INT_2COMP,
    OpCode.INT_NEGATE,
    OpCode.INT_ZEXT,
    OpCode.INT_SEXT,
    OpCode.BOOL_NEGATE,
    OpCode.POPCOUNT,
    OpCode.LZCOUNT,
)
FLAGS = {
    OpCode.INT_EQUAL,
    OpCode.INT_NOTEQUAL,
    OpCode.INT_LESS,
    OpCode.INT_LESSEQUAL,
    OpCode.INT_SLESS,
    OpCode.INT_SLESSEQUAL,
    OpCode.INT_CARRY,
    OpCode.INT_SCARRY,
    OpCode.INT_SBORROW,
}
TWO = tuple(
    code
    for code in OPERATIONS
    if code not in ONE and "BOOL" not in code.name and code not in (OpCode.PIECE, OpCode.SUBPIECE)
)
offsets = st.integers(-NEAR, NEAR - 1) | st.integers(-40, 40)
values = (
    st.none()
    | offsets.map(StackAddress)
    | st.integers(-WORD // 2, WORD // 2 - 1).map(StackAddress)
    | st.integers(0, WORD - 1)
    | st.integers(0, 40)
    | st.builds(
        lambda low, stride, count: WordRange(low, low + stride * count, stride),
        st.integers(-40, 300),
        st.integers(1, 9),
        st.integers(1, 40),
    )
    | st.integers(1, 3).flatmap(
        lambda count: st.integers(0, (1 << 8 * count) - 1).map(partial(LowBytes, count))
    )
)
places = st.integers(NEAR, WORD - NEAR) | st.integers(WORD // 2 - 99, WORD // 2 + 99)


def word(value: ConcreteValue, sp: int, unknown: int) -> int:
    """A word that the value stands for, where sp is ``sp`` at the entry; ``unknown`` if it may."""
    if isinstance(value, WordRange):
        distance = (unknown - value.low) % WORD
        here = distance <= value.high - value.low and distance % value.stride == 0
        return unknown if here else value.low % WORD
    if isinstance(value, LowBytes):
        return (unknown & -(1 << 8 * value.count) | value.value) % WORD
    if isinstance(value, StackAddress):
        return (sp + value.offset) % WORD
    return unknown if value is None else value


@given(st.sampled_from(TWO), values, values, places, st.data())
def test_two_words(
    code: OpCode, a: ConcreteValue, b: ConcreteValue, sp: int, data: st.DataObject
) -> None:
    size = 1 if code in FLAGS else 4
    if isinstance(a, int) and isinstance(b, int):
        return
    found = mixed(code, (a, b), size)
    some = [word(v, sp, data.draw(st.integers(0, WORD - 1))) for v in (a, b)]
    if found is not None:
        right = evaluate(code, some, [4, 4], size)
        assert word(found, sp, right) == right


@given(st.sampled_from(ONE), values, places)
def test_one_word(code: OpCode, a: ConcreteValue, sp: int) -> None:
    found = mixed(code, (a,), 4)
    if found is not None and a is not None:
        right = evaluate(code, [word(a, sp, 0xA5A5A5A5)], [4], 4)
        assert word(found, sp, right) == right


@given(values, places, st.integers(1, 4), st.integers(0, 3))
def test_part_of_a_word(a: ConcreteValue, sp: int, size: int, first: int) -> None:
    found = None if isinstance(a, int) else mixed(OpCode.SUBPIECE, (a, first), size)
    if found is not None and size + first <= 4:
        right = evaluate(OpCode.SUBPIECE, [word(a, sp, 0xA5A5A5A5), first], [4, 4], size)
        assert word(found, sp, right) == right


def test_what_is_said() -> None:
    """Enough for pointers into frames."""
    assert mixed(OpCode.INT_ADD, (4, StackAddress(-16)), 4) == StackAddress(-12)
    assert mixed(OpCode.INT_SUB, (StackAddress(-16), 4), 4) == StackAddress(-20)
    assert mixed(OpCode.INT_SUB, (StackAddress(-16), StackAddress(-20)), 4) == 4
    assert mixed(OpCode.INT_SUB, (4, StackAddress(-20)), 4) is None
    assert mixed(OpCode.INT_EQUAL, (StackAddress(-16), 0), 1) == 0
    assert mixed(OpCode.INT_EQUAL, (StackAddress(-16), 1), 1) is None
    assert mixed(OpCode.INT_EQUAL, (StackAddress(-NEAR - 1), 0), 1) is None
    assert mixed(OpCode.INT_LESS, (StackAddress(-16), StackAddress(4)), 1) == 1
    assert mixed(OpCode.INT_LESS, (StackAddress(-NEAR - 1), StackAddress(4)), 1) is None
    assert mixed(OpCode.INT_SLESS, (StackAddress(-16), StackAddress(4)), 1) is None
    assert mixed(OpCode.INT_AND, (None, 0), 4) == 0
