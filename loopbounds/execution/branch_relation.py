"""The words that a conditional branch leaves to two registers that the block has compared.

A comparison or a subtraction sets the flags ``V = sborrow(a, b)`` and ``C = b <= a``; other
instructions set only Z and N by their result. An execution takes a way only with words that satisfy
its condition. If no words satisfy it, no execution takes the way.

A comparison may be made only if an earlier one gave a result (``cmp``, ``cmpne``, ``beq``): on one
way both have given the same, on the other nothing is known. A register that was loaded in the
block, with no store since, leaves its words to memory, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from loopbounds.execution.value import ConcreteValue
from loopbounds.execution.word_range import WordRange, range_of, word_of
from quoll.arm.insn import PC, Condition, Insn
from quoll.semantics.ops import FLAGS, C, N, Op, OpCode, Space, V, Var, Z, const, general

__all__ = [
    "ONE_FLAG",
    "BranchRelation",
    "LoadedWord",
    "branch_relation",
    "condition_groups",
    "condition_relation",
    "decided_condition",
    "parting_places",
]

SIZE = 4
BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)
CHANGING = (OpCode.STORE, OpCode.DISCARD, OpCode.RETRANSLATE)
EQUALITIES = (Condition.EQ, Condition.NE)
UNSIGNED = (Condition.CS, Condition.CC, Condition.HI, Condition.LS)
LESS = {Condition.CC: 1, Condition.LT: 1, Condition.LS: 0, Condition.LE: 0}  # the least difference
MIRRORED = {
    Condition.HI: Condition.CC, Condition.CS: Condition.LS,
    Condition.GT: Condition.LT, Condition.GE: Condition.LE,
}  # fmt: skip
ONE_FLAG = {0: Z, 1: C, 2: N, 3: V}  # by half of the conditions: the even one needs 1
DECIDED = frozenset((*EQUALITIES, *LESS, *MIRRORED))


@dataclass(frozen=True, slots=True)
class LoadedWord:
    """A word of memory: ``offset`` bytes above the address in a register; None: above 0."""

    base: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class BranchRelation:
    """The branch is taken if ``condition`` holds for the words of ``a`` and ``b``.

    ``earlier``: these were compared only where it holds. ``loaded``: registers that still hold a
    word of memory.
    """

    condition: Condition
    a: Var
    b: Var
    earlier: BranchRelation | None = None
    loaded: Mapping[int, LoadedWord] = field(default_factory=dict)

    def limited(
        self, registers: Sequence[ConcreteValue], *, taken: bool
    ) -> dict[int, ConcreteValue] | None:
        """Registers with fewer words, where the branch is taken or not; None: it cannot be so."""
        if self.earlier is None:
            return self._of_words(registers, taken=taken)
        if taken is not (self.earlier.condition is self.condition):
            return {}
        first = self.earlier.limited(registers, taken=True)
        if first is None:
            return None
        left = [first.get(register, word) for register, word in enumerate(registers)]
        then = self._of_words(left, taken=taken)
        return None if then is None else first | then

    def _of_words(
        self, registers: Sequence[ConcreteValue], *, taken: bool
    ) -> dict[int, ConcreteValue] | None:
        """The same, of two words that were surely compared."""
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
    found = _compared(insns[-1].cond, insns[:-1], ops[:-1], {o.out for o in ops[-1]})
    return None if found is None else _with_loaded(found, ops)


def condition_relation(
    condition: Condition, insns: Sequence[Insn], ops: Sequence[Sequence[Op]]
) -> BranchRelation | None:
    """The relation that a condition has behind some instructions; None if of another kind."""
    found = _compared(condition, insns, ops, set())
    return None if found is None else _with_loaded(found, ops)


def parting_places(insns: Sequence[Insn]) -> frozenset[int]:
    """The instructions before which executions part, if one flag decides them and is not known.

    These are the last ones, if the flag decides the branch, too; and those that compute the address
    of a store that the same flag decides: the store may hit anything if they did not act.
    """
    found = set(range(_predicated_tail(insns), len(insns) - 1))
    for last, store in enumerate(insns):
        if store.memory is None or store.cond >> 1 not in ONE_FLAG:
            continue
        for at in reversed(range(last)):
            if insns[at].sets_flags:
                break
            if insns[at].cond >> 1 == store.cond >> 1 and insns[at].writes & store.reads:
                found.add(at)
    return frozenset(found)


def condition_groups(insns: Sequence[Insn]) -> dict[int, int]:
    """The instructions with a condition, each with the end of its group.

    All instructions of a group with a condition have the same one or the opposite, until flags are
    set again. An instruction that may do more than write registers is not listed, but ends no
    group; the branch at the end of a block may belong to one.
    """
    found, ends = {}, dict[int, int]()
    for at in reversed(range(len(insns))):
        insn = insns[at]
        if insn.sets_flags:
            ends = {}
            continue
        if insn.cond is not Condition.AL:
            end = ends.setdefault(insn.cond >> 1, at + 1)
            if at < len(insns) - 1 and insn.memory is None and PC not in insn.writes:
                found[at] = end
    return found


def decided_condition(condition: Condition, registers: Sequence[ConcreteValue]) -> bool | None:
    """Whether a condition holds; None if flags that decide it are not known."""
    z, c, n, v = (_flag(registers[var.offset]) for var in (Z, C, N, V))
    signed = None if n is None or v is None else n is v
    holds = {
        Condition.EQ: z, Condition.CS: c, Condition.MI: n, Condition.VS: v,
        Condition.HI: _both(c, _not(z)), Condition.GE: signed,
        Condition.GT: _both(_not(z), signed), Condition.AL: True,
    }[Condition(condition & ~1)]  # fmt: skip
    return _not(holds) if condition & 1 else holds


def _flag(word: ConcreteValue) -> bool | None:
    return bool(word) if isinstance(word, int) else None


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _both(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _predicated_tail(insns: Sequence[Insn]) -> int:
    """The index of the first of the last instructions that all depend on one flag.

    Their conditions are the condition of the last one or the opposite. The number of instructions
    if more flags decide, or none.
    """
    last = insns[-1].cond
    if last >> 1 not in ONE_FLAG:
        return len(insns)
    other = (at for at in reversed(range(len(insns))) if insns[at].cond >> 1 != last >> 1)
    return next(other, -1) + 1


def _with_loaded(found: BranchRelation, ops: Sequence[Sequence[Op]]) -> BranchRelation:
    """``found``, with the registers that still hold a word of memory behind ``ops``."""
    relations = (found,) if found.earlier is None else (found, found.earlier)
    operands = {v for one in relations for v in (one.a, one.b) if v.space is Space.REG}
    loaded = {v.offset: word for v in operands if (word := _loaded(v, ops)) is not None}
    return replace(found, loaded=loaded)


def _compared(
    condition: Condition,
    insns: Sequence[Insn],
    ops: Sequence[Sequence[Op]],
    written: Set[Var | None],
) -> BranchRelation | None:
    """The relation that a condition has behind some instructions, before others are written."""
    if condition not in DECIDED:
        return None
    found, at, changed = _by_last(condition, insns, ops, written)
    if found is None or insns[at].cond is Condition.AL:
        return found
    when = insns[at].cond
    if when not in (condition, condition ^ 1):
        return None
    first, before, _ = _by_last(when, insns[:at], ops[:at], changed)
    always = first is not None and insns[before].cond is Condition.AL
    return replace(found, earlier=first) if always else None


def _by_last(
    condition: Condition,
    insns: Sequence[Insn],
    ops: Sequence[Sequence[Op]],
    written: Set[Var | None],
) -> tuple[BranchRelation | None, int, Set[Var | None]]:
    """The relation by the last instruction that sets flags, its index, and all written from it."""
    changed = set(written)
    for at in reversed(range(len(insns))):
        results = {op.out: op for op in ops[at] if op.out is not None}
        if results.keys() & set(FLAGS):
            found = _of_operands(condition, results, changed)
            found = found or _of_result(condition, results.get(Z), changed)
            return found, at, changed | results.keys()
        changed |= results.keys()
    return None, 0, changed


def _loaded(register: Var, ops: Sequence[Sequence[Op]]) -> LoadedWord | None:
    """The word of memory that a register holds behind instructions, if one of them loaded it."""
    changed: set[Var | None] = set()
    for effect in reversed(ops):
        if any(op.code in CHANGING for op in effect):
            return None
        outs = {op.out for op in effect}
        if register in outs:
            found = _word_of(register, effect)
            base = None if found is None or found.base is None else general(found.base)
            return None if base is not None and base in changed | outs else found
        changed |= outs
    return None


def _word_of(register: Var, ops: Sequence[Op]) -> LoadedWord | None:
    """The word that an instruction loads, which has no condition and loads nothing else."""
    if any(op.code in BRANCHES for op in ops):
        return None
    places: dict[Var, LoadedWord] = {}
    found = None
    for op in ops:
        first = op.ins[0]
        place = _place(first, places)
        if op.code is OpCode.LOAD:
            if op.out != register or register.size != SIZE:
                return None
            found = place
        elif op.out is not None and op.out.space is Space.TEMP and place is not None:
            moved = op.ins[1] if op.code is OpCode.INT_ADD else const(0)
            if op.code in (OpCode.INT_ADD, OpCode.COPY) and moved.space is Space.CONST:
                places[op.out] = replace(place, offset=place.offset + moved.offset)
        elif op.out == register:
            return None
    return found


def _place(var: Var, places: Mapping[Var, LoadedWord]) -> LoadedWord | None:
    """The address that a variable holds, as a distance from a general register, or from 0."""
    if var.space is Space.CONST:
        return LoadedWord(None, var.offset)
    if var.space is Space.REG:
        return LoadedWord(var.offset, 0) if var.offset < PC else None
    return places.get(var)


def _of_operands(
    condition: Condition, results: Mapping[Var, Op], written: Set[Var | None]
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


def _of_result(
    condition: Condition, zero: Op | None, written: Set[Var | None]
) -> BranchRelation | None:
    """The relation of a result and 0."""
    if condition not in EQUALITIES or zero is None or zero.code is not OpCode.INT_EQUAL:
        return None
    result, other = zero.ins
    if result.space is not Space.REG or other != const(0) or result in written:
        return None
    return BranchRelation(condition, result, other)
