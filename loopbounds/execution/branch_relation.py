"""The words that a conditional branch leaves to two registers that the block has compared.

A comparison or a subtraction sets the flags ``V = sborrow(a, b)`` and ``C = b <= a``; other
instructions set only Z and N by their result. An execution takes a way only with words that satisfy
its condition. If no words satisfy it, no execution takes the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from loopbounds.execution.value import ConcreteValue
from loopbounds.execution.word_range import WordRange, range_of, word_of
from quoll.arm.insn import Condition, Insn
from quoll.semantics.ops import FLAGS, C, Op, OpCode, Space, V, Var, Z, const

__all__ = ["BranchRelation", "branch_relation"]

SIZE = 4
EQUALITIES = (Condition.EQ, Condition.NE)
UNSIGNED = (Condition.CS, Condition.CC, Condition.HI, Condition.LS)
LESS = {Condition.CC: 1, Condition.LT: 1, Condition.LS: 0, Condition.LE: 0}  # the least difference
MIRRORED = {
    Condition.HI: Condition.CC, Condition.CS: Condition.LS,
    Condition.GT: Condition.LT, Condition.GE: Condition.LE,
}  # fmt: skip
DECIDED = frozenset((*EQUALITIES, *LESS, *MIRRORED))


@dataclass(frozen=True, slots=True)
class BranchRelation:
    """The branch is taken if ``condition`` holds for the words of ``a`` and ``b``."""

    condition: Condition
    a: Var
    b: Var

    def limited(
        self, registers: Sequence[ConcreteValue], *, taken: bool
    ) -> dict[int, ConcreteValue] | None:
        """Registers with fewer words, where the branch is taken or not; None: it cannot be so."""
        values = [_value(var, registers) for var in (self.a, self.b)]
        ranges = [range_of(value, SIZE) for value in values]
        if ranges[0] is None or ranges[1] is None:
            return {}
        condition = self.condition if taken else Condition(self.condition ^ 1)
        found = limited(condition, ranges[0], ranges[1])
        if found is None:
            return None
        changes: dict[int, ConcreteValue] = {}
        for var, old, new in zip((self.a, self.b), values, found, strict=True):
            if var.space is Space.REG and not isinstance(old, int):
                changes[var.offset] = word_of(new.low, new.high, new.stride, SIZE)
        return changes


def limited(condition: Condition, a: WordRange, b: WordRange) -> tuple[WordRange, WordRange] | None:
    """The words of ``a`` and ``b`` that satisfy a condition with others; None: there are none."""
    if condition is Condition.NE:
        return _unequal(a, b)
    if condition not in MIRRORED:
        return _ordered(condition, a, b)
    found = _ordered(MIRRORED[condition], b, a)
    return None if found is None else (found[1], found[0])


def _ordered(
    condition: Condition, a: WordRange, b: WordRange
) -> tuple[WordRange, WordRange] | None:
    """The same for a condition of ``LESS``, or for equality."""
    view = WordRange.unsigned if condition in UNSIGNED else WordRange.signed
    if condition is Condition.EQ and a.unsigned(SIZE).high - a.unsigned(SIZE).low <= a.high - a.low:
        view = WordRange.unsigned
    x, y = view(a, SIZE), view(b, SIZE)
    if condition is Condition.EQ:
        low, high = max(x.low, y.low), min(x.high, y.high)
        return _pair(_between(x, low, high, a), _between(y, low, high, b))
    gap = LESS[condition]
    return _pair(_between(x, x.low, y.high - gap, a), _between(y, x.low + gap, y.high, b))


def _unequal(a: WordRange, b: WordRange) -> tuple[WordRange, WordRange] | None:
    one = _without(a, b.low) if b.low == b.high else a
    return _pair(one, _without(b, a.low) if a.low == a.high else b)


def _without(a: WordRange, word: int) -> WordRange | None:
    """``a`` without a word at one of its ends."""
    modulus = 1 << 8 * SIZE
    low, high = a.low, a.high
    if (low - word) % modulus == 0:
        low += a.stride or 1
    if (high - word) % modulus == 0:
        high -= a.stride or 1
    return WordRange(low, high, a.stride) if low <= high else None


def _between(a: WordRange, low: int, high: int, old: WordRange) -> WordRange | None:
    """The words of ``a`` within limits, or ``old`` if these are fewer."""
    step = a.stride or 1
    least = max(low, a.low)
    least += (a.low - least) % step
    most = min(high, a.high)
    most -= (most - a.low) % step
    if least > most:
        return None
    return WordRange(least, most, a.stride) if most - least < old.high - old.low else old


def _pair(a: WordRange | None, b: WordRange | None) -> tuple[WordRange, WordRange] | None:
    return None if a is None or b is None else (a, b)


def _value(var: Var, registers: Sequence[ConcreteValue]) -> ConcreteValue:
    return var.offset if var.space is Space.CONST else registers[var.offset]


def branch_relation(insns: Sequence[Insn], ops: Sequence[Sequence[Op]]) -> BranchRelation | None:
    """The relation that decides the last of some instructions; None if it is of another kind."""
    condition = insns[-1].cond
    written = {op.out for op in ops[-1] if op.out is not None}
    if condition not in DECIDED:
        return None
    for insn, effect in zip(insns[-2::-1], ops[-2::-1], strict=True):
        results = {op.out: op for op in effect if op.out is not None}
        if results.keys() & set(FLAGS):
            if insn.cond is not Condition.AL:
                return None
            return _of_operands(condition, results, written) or _of_result(
                condition, results.get(Z), written
            )
        written |= results.keys()
    return None


def _of_operands(
    condition: Condition, results: Mapping[Var, Op], written: Set[Var]
) -> BranchRelation | None:
    """The relation of two operands that have been subtracted, and still have their words."""
    overflow, carry = results.get(V), results.get(C)
    if overflow is None or carry is None or overflow.code is not OpCode.INT_SBORROW:
        return None
    a, b = overflow.ins
    if carry.code is not OpCode.INT_LESSEQUAL or carry.ins != (b, a):
        return None
    lost = any(var.space is Space.TEMP or var in written or var in results for var in (a, b))
    return None if lost else BranchRelation(condition, a, b)


def _of_result(condition: Condition, zero: Op | None, written: Set[Var]) -> BranchRelation | None:
    """The relation of a result and 0."""
    if condition not in EQUALITIES or zero is None or zero.code is not OpCode.INT_EQUAL:
        return None
    result, other = zero.ins
    if result.space is not Space.REG or other != const(0) or result in written:
        return None
    return BranchRelation(condition, result, other)
