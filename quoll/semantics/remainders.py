"""Instructions that leave the remainder of a division by a constant.

Compilers multiply by a reciprocal instead: ``q`` is the upper part of ``a * m``, shifted, and the
last instruction computes ``a - d * q``. If ``q`` is ``a / d`` for all words ``a``, the instruction
has the ops of a remainder instead: the same word, whose range is known, though ``a`` is not.

With k the bits that are shifted out of ``a * m``, q is a / d for all unsigned words of N bits if

    2^k <= m d <= 2^k + 2^(k - N)

and for signed words, rounded towards zero by adding 1 where a is negative, if

    2^k < m d <= 2^k + 2^(k - 31)

(Granlund, Montgomery: Division by invariant integers using multiplication, PLDI 1994, theorems 4.2
and 5.1). An even divisor may be halved before: a is shifted right by t, and has 32 - t bits.

Words of a block are sums of symbols, each with a factor, modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from quoll.arm.insn import PC, SP, Condition, ControlFlow, Insn, Remainder
from quoll.semantics.lift import lift
from quoll.semantics.operations import OPERATIONS, evaluate
from quoll.semantics.ops import Op, OpCode, Space, Var, general

__all__ = ["multiplies_long", "with_remainders"]

WORD = 1 << 32
SIGN = 1 << 31
LONG = 8  # bytes of a product
BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)


class _Sum(NamedTuple):
    """``constant`` plus each symbol times its factor, modulo 2^32; no factor is 0."""

    factors: tuple[tuple[int, int], ...]  # sorted by symbol
    constant: int = 0

    @property
    def symbol(self) -> int | None:
        """The symbol that this is."""
        alone = len(self.factors) == 1 and not self.constant and self.factors[0][1] == 1
        return self.factors[0][0] if alone else None

    def plus(self, other: _Sum, times: int = 1) -> _Sum:
        """This plus ``times`` the other."""
        factors = dict(self.factors)
        for symbol, factor in other.factors:
            factors[symbol] = (factors.get(symbol, 0) + times * factor) % WORD
        left = tuple(sorted((s, f) for s, f in factors.items() if f))
        return _Sum(left, (self.constant + times * other.constant) % WORD)


class _Long(NamedTuple):
    """A word extended to eight bytes; or, if ``factor`` is not 1, times a constant."""

    word: _Sum
    signed: bool
    factor: int = 1


class _Quotient(NamedTuple):
    """floor(word of ``symbol`` * ``factor`` / 2^``shift``), of a word that may be ``signed``."""

    symbol: int
    factor: int
    shift: int
    signed: bool


_Value = _Sum | _Long
ZERO = _Sum(())


def multiplies_long(insns: Sequence[Insn]) -> bool:
    """Whether any of the instructions may compute a reciprocal's product."""
    return any(insn.mnemonic in ("umull", "smull") for insn in insns)


def with_remainders(
    insns: Sequence[Insn],
    known: Mapping[int, int],
    constant: Callable[[int, int], int | None],
) -> tuple[Insn, ...]:
    """Instructions in sequence, with those marked that leave a remainder.

    ``known``: words of registers before them. ``constant``: bytes of constant memory by address and
    size. Raises ControlFlowError for an instruction without semantics.
    """
    block = _Words(constant)
    for register in range(PC):
        word = known.get(register)
        block.values[general(register)] = block.fresh() if word is None else _Sum((), word)
    return tuple(map(block.marked, insns))


@dataclass(slots=True)
class _Words:
    """The words of registers along a block."""

    constant: Callable[[int, int], int | None]
    values: dict[Var, _Value] = field(default_factory=dict)
    _symbols: int = 0
    _named: dict[_Sum, int] = field(default_factory=dict)  # sums that have a symbol
    _sums: dict[int, _Sum] = field(default_factory=dict)  # symbol -> that sum
    _quotients: dict[int, _Quotient] = field(default_factory=dict)
    _known: dict[_Quotient, _Sum] = field(default_factory=dict)
    _signs: dict[int, int] = field(default_factory=dict)  # 0 or -1 -> the symbol with that sign
    _halves: dict[int, tuple[int, int]] = field(default_factory=dict)  # (a - t) / 2 -> a, t

    def fresh(self) -> _Sum:
        """A word of which nothing is known."""
        self._symbols += 1
        return _Sum(((self._symbols, 1),))

    def marked(self, insn: Insn) -> Insn:
        """Execute an instruction; it is marked if it leaves a remainder."""
        before = dict(self.values)
        ops = lift(insn)
        if any(op.code in BRANCHES for op in ops):
            for op in ops:
                if op.out is not None:
                    self.values[op.out] = self.fresh()
            return insn
        for op in ops:
            if op.out is not None:
                self.values[op.out] = self._result(op)
        plain = insn.cond is Condition.AL and insn.flow is ControlFlow.NEXT
        if not plain or insn.memory is not None or len(insn.writes) != 1:
            return insn
        (target,) = insn.writes
        found = (
            self._remainder(self.values.get(general(target)))
            if target != SP and target < PC
            else None
        )
        if found is None:
            return insn
        word, divisor, signed = found
        holders = (r for r in sorted(insn.reads) if r < PC and before.get(general(r)) == word)
        dividend = next(holders, None)
        if dividend is None:
            return insn
        self.values[general(target)] = self.fresh()
        return insn._replace(remainder=Remainder(dividend, divisor, signed=signed))

    def _remainder(self, value: _Value | None) -> tuple[_Sum, int, bool] | None:
        """The dividend, the divisor and whether they are signed, of a word that is a remainder."""
        if not isinstance(value, _Sum):
            return None
        for symbol, factor in value.factors:
            quotient, divisor = self._quotients.get(symbol), WORD - factor
            if quotient is None or not 1 < divisor < SIGN:
                continue
            for base, halved in self._divided(quotient):
                word = self._word_of(base)
                rest = value.plus(word, -1).plus(_Sum(((symbol, 1),)), divisor)
                if not quotient.signed and rest == ZERO and _divides(quotient, divisor, halved):
                    return word, divisor, False
                if quotient.signed and _divides_signed(quotient, divisor):
                    signs = [s for s, of in self._signs.items() if of == base]
                    if any(rest == ZERO.plus(_Sum(((s, 1),)), divisor) for s in signs):
                        return word, divisor, True
        return None

    def _divided(self, quotient: _Quotient) -> Iterator[tuple[int, int]]:
        """The symbols that were divided, and by how many bits each was shifted before."""
        yield quotient.symbol, 0
        before = self._quotients.get(quotient.symbol)
        if before is not None and before.factor == 1 and not (quotient.signed or before.signed):
            yield before.symbol, before.shift

    def _result(self, op: Op) -> _Value:
        """The result of an op."""
        if op.code is OpCode.LOAD:
            return self._loaded(op)
        values = [self._value(var) for var in op.ins]
        assert op.out is not None
        if op.out.size == LONG:
            return self._long(op, values)
        if op.out.size != 4 or not values:
            return self.fresh()
        if op.code is OpCode.SUBPIECE and isinstance(values[0], _Long):
            return self._upper(values[0]) if op.ins[1].offset == 4 else self.fresh()
        words = [value for value in values if isinstance(value, _Sum)]
        return self._word(op, words) if len(words) == len(values) else self.fresh()

    def _word(self, op: Op, words: Sequence[_Sum]) -> _Sum:
        if op.code in OPERATIONS and not any(word.factors for word in words):
            sizes = [var.size for var in op.ins]
            return _Sum((), evaluate(op.code, [word.constant for word in words], sizes, 4))
        match op.code, words:
            case OpCode.COPY, [a]:
                return a
            case OpCode.INT_2COMP, [a]:
                return ZERO.plus(a, -1)
            case OpCode.INT_ADD, [a, b]:
                return a.plus(b)
            case OpCode.INT_SUB, [a, b]:
                return a.plus(b, -1)
            case OpCode.INT_MULT, [a, b] if not a.factors:
                return ZERO.plus(b, a.constant)
            case OpCode.INT_MULT, [a, b] if not b.factors:
                return ZERO.plus(a, b.constant)
            case OpCode.INT_LEFT, [a, b] if not b.factors and b.constant < 32:
                return ZERO.plus(a, 1 << b.constant)
            case OpCode.INT_AND, [a, b] if not b.factors:
                return self._masked(a, b.constant)
            case OpCode.INT_RIGHT, [a, b] if not b.factors and b.constant < 32:
                return self._right(a, b.constant)
            case OpCode.INT_SRIGHT, [a, b] if not b.factors and b.constant < 32:
                return self._right_signed(a, b.constant)
        return self.fresh()

    def _masked(self, a: _Sum, mask: int) -> _Sum:
        """``a & mask``; with its low bits cleared, it is shifted down and up again."""
        cleared = WORD - mask
        if a.symbol is None or cleared & cleared - 1 or not 1 < cleared < WORD:
            return self.fresh()
        return ZERO.plus(self._right(a, cleared.bit_length() - 1), cleared)

    def _value(self, var: Var) -> _Value:
        if var.space is Space.CONST:
            return _Sum((), var.offset % WORD)
        if var not in self.values:
            self.values[var] = self.fresh()
        return self.values[var]

    def _loaded(self, op: Op) -> _Sum:
        at = self._value(op.ins[0])
        known = isinstance(at, _Sum) and not at.factors and op.out is not None
        word = self.constant(at[1], 4) if known and op.out and op.out.size == 4 else None
        return self.fresh() if word is None else _Sum((), word)

    def _long(self, op: Op, values: Sequence[_Value]) -> _Value:
        """The result of an op of eight bytes."""
        match op.code, values:
            case ((OpCode.INT_ZEXT | OpCode.INT_SEXT), [_Sum() as a]):
                return _Long(a, op.code is OpCode.INT_SEXT)
            case OpCode.INT_MULT, [_Long() as a, _Long() as b] if a.signed is b.signed:
                one, other = (a, b) if a.word.factors else (b, a)
                if not other.word.factors and one.factor == other.factor == 1:
                    number = other.word.constant
                    wraps = a.signed and number >= SIGN
                    return _Long(one.word, a.signed, number - WORD if wraps else number)
        return self.fresh()

    def _upper(self, product: _Long) -> _Sum:
        """The upper word of a product."""
        symbol = self._name(product.word)
        return self._quotient(_Quotient(symbol, product.factor, 32, product.signed))

    def _name(self, word: _Sum) -> int:
        """The symbol of a word, a new one if it has none."""
        symbol = word.symbol or self._named.get(word)
        if symbol is None:
            (symbol, _), *_ = self.fresh().factors
            self._named[word], self._sums[symbol] = symbol, word
        return symbol

    def _word_of(self, symbol: int) -> _Sum:
        return self._sums.get(symbol, _Sum(((symbol, 1),)))

    def _quotient(self, quotient: _Quotient) -> _Sum:
        """The word; equal quotients have one symbol."""
        if quotient not in self._known:
            self._known[quotient] = found = self.fresh()
            self._quotients[found.factors[0][0]] = quotient
        return self._known[quotient]

    def _right(self, a: _Sum, by: int) -> _Sum:
        if a.symbol is not None:
            known = self._quotients.get(a.symbol)
            if known is None:
                return self._quotient(_Quotient(a.symbol, 1, by, signed=False))
            if not known.signed:
                return self._quotient(known._replace(shift=known.shift + by))
            return self.fresh()
        return self._right_of_two(a, by) or self._quotient(
            _Quotient(self._name(a), 1, by, signed=False)
        )

    def _right_of_two(self, a: _Sum, by: int) -> _Sum | None:
        """Of a factor of 33 bits: t is the product with its lower 32, (((a - t) / 2) + t) / 2^n.

        The sum is (a + t) / 2, which does not wrap around because t is at most a.
        """
        for symbol, _ in a.factors:
            quotient, t = self._quotients.get(symbol), _Sum(((symbol, 1),))
            if quotient is None or quotient.signed or quotient.shift != 32:
                continue
            if by == 1 and a == self._word_of(quotient.symbol).plus(t, -1):
                half = self.fresh()
                self._halves[half.factors[0][0]] = quotient.symbol, symbol
                return half
            rest = a.plus(t, -1).symbol
            if rest is not None and self._halves.get(rest) == (quotient.symbol, symbol):
                factor = quotient.factor + WORD
                return self._quotient(_Quotient(quotient.symbol, factor, 33 + by, signed=False))
        return None

    def _right_signed(self, a: _Sum, by: int) -> _Sum:
        known = None if a.symbol is None else self._quotients.get(a.symbol)
        if known is not None and known.signed:
            return self._quotient(known._replace(shift=known.shift + by))
        if by == 31:
            found = self.fresh()
            self._signs[found.factors[0][0]] = self._name(a)
            return found
        for symbol, factor in a.factors:
            quotient = self._quotients.get(symbol)
            if quotient is None or not quotient.signed or quotient.shift != 32 or factor != 1:
                continue
            base = self._word_of(quotient.symbol)
            if a.plus(base, -1) == _Sum(((symbol, 1),)) and quotient.factor < 0:
                more = quotient._replace(factor=quotient.factor + WORD, shift=32 + by)
                return self._quotient(more)
        return self.fresh()


def _divides(quotient: _Quotient, divisor: int, halved: int) -> bool:
    """Whether this is the quotient of every unsigned word and ``divisor``."""
    if divisor % (1 << halved):
        return False
    product, power = quotient.factor * (divisor >> halved), 1 << quotient.shift
    over = (product - power) << 32 - halved
    return 0 <= over <= power


def _divides_signed(quotient: _Quotient, divisor: int) -> bool:
    """Whether this is the quotient of every signed word and ``divisor``, rounded down."""
    power = 1 << quotient.shift
    over = (quotient.factor * divisor - power) << 31
    return 0 < over <= power
