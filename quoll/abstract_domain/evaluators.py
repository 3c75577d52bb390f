"""The abstract meaning of each op: an evaluator per opcode.

An evaluator is called with the machine, the slot of the result, the slots of the inputs (equal
if there is only one), and ``extra``: the site of the op, or a tuple that starts with it. A site
names the symbols that the op creates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from quoll.abstract_domain.abstract_machine import AbstractMachine
from quoll.abstract_domain.abstract_state import MASKED
from quoll.abstract_domain.terms import (
    BIAS,
    MASK,
    RIGID,
    TAINT,
    TAINTED,
    AnchoredTerm,
    Fact,
    RotatedTerm,
    StatusWord,
    Term,
    add_facts,
    covers,
    describe,
    exact_term,
    is_stack,
    known_bits,
    on_stack,
    plain,
    scale_fact,
    subtract_facts,
)
from quoll.arm.status import MODE_BITS
from quoll.arm.system_registers import LINE
from quoll.intervals import interval_arithmetic, masked_words
from quoll.intervals.masked_words import MaskedWords, Words
from quoll.intervals.strided_interval import ANY, REMEMBERED, ValueSet, join
from quoll.semantics.operations import OPERATIONS
from quoll.semantics.ops import OpCode

__all__ = [
    "Evaluator",
    "add",
    "binary",
    "bit_and",
    "copy_any",
    "copy_sp",
    "copy_word",
    "discard",
    "forget_globals",
    "load",
    "piece",
    "restrict",
    "restrict_unknown",
    "retranslate",
    "shift_left",
    "sign_extend",
    "store",
    "subpiece",
    "subtract",
    "unary",
    "unknown_word",
    "widen",
]

Evaluator = Callable[[AbstractMachine, int, int, int, Any], None]

TABLE_LIMIT = 64  # largest address set whose constants are read one by one
SMALL = 1 << 12  # no stack is below this address
BYTE = 0xFF


def copy_word(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """COPY, and INT_ZEXT to at most four bytes."""
    value = m.v[a]
    m.v[out] = value if type(value) is int else m.term(value, site)


def copy_any(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """COPY of one, two or eight bytes."""
    m.v[out] = m.v[a]


def copy_sp(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """COPY to sp."""
    m.write_sp(m.term(m.v[a], site))


def unknown_word(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """UNKNOWN of up to four bytes; ``extra`` is the site and the number of bits."""
    site, bits = extra
    m.v[out] = m.fresh(site, interval_arithmetic.any_word(bits))


def add(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """INT_ADD of words."""
    p, q = m.v[a], m.v[b]
    if type(p) is not int:
        p = m.term(p, (site, "a"))
    if type(q) is not int:
        q = m.term(q, (site, "b"))
    if p <= MASK:
        p, q = q, p
    if q > MASK:
        fact = describe(q, m.facts)
        exact = exact_term(fact)
        if exact is None or exact > MASK:
            m.v[out] = _combined(m, site, (p, q, 1), _sum(describe(p, m.facts), fact))
            return
        q = exact
    m.v[out] = p & ~MASK | (p + q) & MASK


def _sum(a: Fact, b: Fact) -> Fact:
    if isinstance(b, AnchoredTerm):
        a, b = b, a
    if not isinstance(a, AnchoredTerm):
        return add_facts(a, b)
    if isinstance(b, AnchoredTerm) or a.base == TAINT:
        return _mixture(a, b)
    return AnchoredTerm(a.base, plain(add_facts(a.offsets, b)))


def subtract(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """INT_SUB of words; ``extra`` is the site and a slot that keeps the operands (0: none)."""
    site, operands = extra
    p, q = m.v[a], m.v[b]
    if type(p) is not int:
        p = m.term(p, (site, "a"))
    if type(q) is not int:
        q = m.term(q, (site, "b"))
    if operands:
        m.v[operands] = (p, q)
    if p >> 32 == q >> 32:
        m.v[out] = (p - q) & MASK
        return
    if q > MASK:
        fact = describe(q, m.facts)
        exact = exact_term(fact)
        if exact is None or exact > MASK:
            m.v[out] = _combined(m, site, (p, q, -1), _difference(describe(p, m.facts), fact))
            return
        q = exact
    m.v[out] = p & ~MASK | (p - q) & MASK


def _combined(m: AbstractMachine, site: Any, terms: tuple[Term, Term, int], fact: Fact) -> Term:
    """A word plus a sign times another, within ``fact``; exact where both are multiples of one."""
    p, q, sign = terms
    symbol, factor, constant = m.multiple(p)
    other, times, more = m.multiple(q)
    if symbol != other or factor + sign * times < 0:
        return m.fresh(site, fact)
    return m.fresh_multiple(
        site, (symbol, factor + sign * times, constant + sign * more & MASK), fact
    )


def _difference(a: Fact, b: Fact) -> Fact:
    if not isinstance(a, AnchoredTerm) and not isinstance(b, AnchoredTerm):
        return subtract_facts(a, b)
    if isinstance(a, AnchoredTerm) and a.base != TAINT:
        if not isinstance(b, AnchoredTerm):
            return AnchoredTerm(a.base, plain(subtract_facts(a.offsets, b)))
        if a.base == b.base:
            return subtract_facts(a.offsets, b.offsets)
    return _mixture(a, b)


def _mixture(a: Fact, b: Fact) -> Fact:
    """An unknown result that keeps the mark of a stack address."""
    stacks = [f for f in (a, b) if isinstance(f, AnchoredTerm) and _is_stack(f.base)]
    return TAINTED if stacks else ANY


def _is_stack(base: int) -> bool:
    return base == TAINT or is_stack(base)


def load(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """LOAD; ``extra`` is the site, the size in bytes, and the key of the access."""
    site, size, access = extra
    address = m.v[a]
    if type(address) is not int:
        address = m.term(address, (site, "a"))
    if m.accesses is not None:
        m.note_access(access, address)
    if size > 4:
        m.v[out] = None
        return
    cell = m.memory.load(address, m.facts)
    if type(cell) is tuple and cell[0] == size:
        m.v[out] = cell[1]
        return
    if type(cell) is int:
        m.v[out] = cell if size == 4 else _low_bytes(m, cell, size, site)
        return
    marked = (size == 4 or m.environment.use.scattered) and m.memory.is_marked(address, m.facts)
    value = m.fresh(site, TAINTED if marked else _loaded(m, address, size))
    m.memory.remember(address, size, value, m.facts)
    m.v[out] = value


def _loaded(m: AbstractMachine, address: Term, size: int) -> Fact:
    """The constants that a load may read, if all of its addresses are read-only."""
    where = m.words(address)
    if size == 4 and where.size == 1:
        m.environment.loaded.setdefault(m.position, set()).add(where.low)
        given = m.environment.given.get(where.low)
        if given is not None:
            return given
    result: ValueSet | None = None
    if where.size <= TABLE_LIMIT:
        for addr in where:
            constant = m.environment.read(addr, size)
            if constant is None:
                return interval_arithmetic.any_word(8 * size)
            value = ValueSet(constant, constant, 0)
            result = value if result is None else join(result, value)
    return interval_arithmetic.any_word(8 * size) if result is None else result


def store(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """STORE of slot ``b`` at slot ``a``; ``extra`` as for ``load``."""
    site, size, access = extra
    address = m.v[a]
    if type(address) is not int:
        address = m.term(address, (site, "a"))
    if m.accesses is not None:
        m.note_access(access, address)
    value = m.v[b]
    if type(value) is not int:
        value = m.term(value, (site, "b"))
    saved = m.memory.saved_at(address, size, m.facts) if address > MASK else ()
    for at in m.memory.store(address, size, value, m.v[13], m.facts):
        m.memory.mark(at, m.fresh((site, at), TAINTED))
    for at in saved:
        _lose(m, at, site)


def _lose(m: AbstractMachine, at: Term, site: Any) -> None:
    """Forget the word at ``at`` on a stack, and record its symbol as lost, for diagnostics."""
    word = m.fresh((site, at), TAINTED)
    m.environment.lost.add(word >> 32)
    m.memory.mark(at, word)


def discard(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """DISCARD of the line at slot ``a``: store any bytes to all of it; ``extra`` as for LOAD.

    If the position of the address in its line is unknown, store to all bytes that the line may
    hold.
    """
    site, size, access = extra
    address = m.v[a]
    if type(address) is not int:
        address = m.term(address, (site, "a"))
    exact = exact_term(describe(address, m.facts))
    if exact is not None and exact <= MASK:
        first, size = exact & -LINE, LINE
    else:
        first = address & ~MASK | (address - LINE + 1) & MASK
    if m.accesses is not None:
        m.note_access(access, first)
    before = tuple(m.memory.frames)
    for at in m.memory.store(first, size, m.fresh((site, "lost")), m.v[13], m.facts):
        m.memory.mark(at, m.fresh((site, at), TAINTED))
    if is_stack(first >> 32):
        for at in before:
            if (at - first) & MASK < size and at >> 32 == first >> 32 and not at & 3:
                _lose(m, at, site)


def retranslate(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """RETRANSLATE: forget memory without a fixed translation."""
    m.memory.retranslate(m.v[13], m.facts)


def forget_globals(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Forget ordinary memory outside live frames, unless interrupts are masked.

    Where they are not, a handler may run, and store there.
    """
    if m.v[MASKED] is not True:
        m.memory.forget_globals()


def _low_bytes(m: AbstractMachine, term: Term, size: int, site: Any) -> Term:
    words = m.words(term)
    if words.high < 1 << 8 * size:
        return term
    low = interval_arithmetic.subpiece(words, 0, 8 * size)
    fact = describe(term, m.facts)
    if _is_scattered(m, fact):
        return m.fresh(site, TAINTED)
    if isinstance(fact, MaskedWords | StatusWord):
        return m.fresh(site, _fields(OpCode.INT_AND, fact, ValueSet.of((1 << 8 * size) - 1), low))
    return m.fresh(site, low)


def _is_scattered(m: AbstractMachine, fact: Fact) -> bool:
    """Whether a part of a word with ``fact`` counts as a stack address (``MemoryUsage``)."""
    m.environment.use.scatters |= on_stack(fact)
    return m.environment.use.scattered and on_stack(fact)


def subpiece(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """SUBPIECE; ``extra`` is the site, the lowest bit taken, and the number of bits."""
    site, low_bit, bits = extra
    value = m.v[a]
    if isinstance(value, ValueSet):
        m.v[out] = m.fresh(site, interval_arithmetic.subpiece(value, low_bit, bits))
    elif type(value) is not int:
        m.v[out] = m.fresh(site, interval_arithmetic.any_word(bits))
    elif low_bit == 0:
        m.v[out] = _low_bytes(m, value, bits // 8, site)
    elif _is_scattered(m, describe(value, m.facts)):
        m.v[out] = m.fresh(site, TAINTED)
    else:
        m.v[out] = m.fresh(site, interval_arithmetic.subpiece(m.words(value), low_bit, bits))


def widen(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """INT_ZEXT to eight bytes."""
    m.v[out] = m.words(m.v[a])


def piece(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """PIECE of two words to eight bytes."""
    high = interval_arithmetic.shift_left(m.words(m.v[a]), ValueSet.of(32), 64)
    m.v[out] = interval_arithmetic.add(high, m.words(m.v[b]), 64)


def sign_extend(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """INT_SEXT; ``extra`` is the site and the number of bits before and after."""
    site, source, bits = extra
    extended = interval_arithmetic.sign_extend(m.words(m.v[a]), source, bits)
    m.v[out] = extended if bits == 64 else m.fresh(site, extended)


def unary(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """A unary op; ``extra`` is the site, the code of the operation, and the bits of the input."""
    site, code, bits = extra
    words = m.words(m.v[a])
    result = OPERATIONS[code].intervals(words, words, bits, bits)
    if m.environment.given and bits == 32:
        m.v[out] = m.fresh(site, _by_fields(m, code, m.v[a], m.v[a], result))
        return
    m.v[out] = m.fresh(site, _marked(m, result, bits, m.v[a], None))


def binary(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """A binary op; ``extra`` is the site, the code of the operation, and the number of bits."""
    site, code, bits = extra
    p, q = m.v[a], m.v[b]
    if bits == 64:
        m.v[out] = OPERATIONS[code].intervals(_wide(m, p), _wide(m, q), 64, 64)
        return
    result = _applied(code, m.words(p), m.words(q), bits)
    if bits == 32 and m.environment.knows_bits:
        m.v[out] = m.fresh(site, _by_fields(m, code, p, q, result))
        return
    m.v[out] = m.fresh(site, _marked(m, result, bits, p, q))


def _by_fields(m: AbstractMachine, code: OpCode, p: Any, q: Any, result: ValueSet) -> Fact:
    """``result``, marked if need be, or less of it where bits of an input are known."""
    facts = tuple(describe(x, m.facts) if type(x) is int else m.words(x) for x in (p, q))
    known = code in FIELDS and any(isinstance(fact, MaskedWords | StatusWord) for fact in facts)
    marked = _marked(m, result, 32, p, q)
    return _fields(code, *facts, result) if known and marked is result else marked


@lru_cache(maxsize=REMEMBERED)
def _fields(code: OpCode, a: Fact, b: Fact, result: ValueSet) -> Fact:
    found = FIELDS[code](known_bits(a), known_bits(b))
    words = found if found is not None and covers(result, found) else result
    mode = _mode_in(code, a, b) or _mode_in(code, b, a)
    return words if mode is None else StatusWord(mode, words)


def _mode_in(code: OpCode, status: Fact, other: Fact) -> int | None:
    """The mode in the result of ``code``, if it is the mode in ``status``."""
    if not isinstance(status, StatusWord):
        return None
    low = masked_words.hull(masked_words.bit_and(known_bits(other), ValueSet.of(MODE_BITS)))
    return status.mode if low.exact is not None and low.exact == UNCHANGED_BY.get(code) else None


# Operation -> the five lowest bits of one operand with which the other keeps its five lowest bits.
UNCHANGED_BY = {OpCode.INT_AND: MODE_BITS, OpCode.INT_OR: 0, OpCode.INT_XOR: 0}


def _shifted(shift: Callable[[Words, int], Words]) -> Callable[[Words, Words], Words | None]:
    def apply(a: Words, b: Words) -> Words | None:
        amount = b.exact if isinstance(b, ValueSet) else None
        return None if amount is None else shift(a, amount)

    return apply


FIELDS: dict[OpCode, Callable[[Words, Words], Words | None]] = {
    OpCode.INT_AND: masked_words.bit_and,
    OpCode.INT_OR: masked_words.bit_or,
    OpCode.INT_XOR: masked_words.bit_xor,
    OpCode.INT_NEGATE: lambda a, b: masked_words.bit_not(a),
    OpCode.INT_LEFT: _shifted(masked_words.shift_left),
    OpCode.INT_RIGHT: _shifted(masked_words.shift_right),
}


@lru_cache(maxsize=REMEMBERED)
def _applied(code: OpCode, a: ValueSet, b: ValueSet, bits: int) -> ValueSet:
    return OPERATIONS[code].intervals(a, b, bits, bits)


def bit_and(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """INT_AND of words; clearing low bits of a stack address moves it down by less than 2**n.

    n is the number of low bits that the mask clears. A mask that changes no possible word leaves
    the word itself.
    """
    p, q = m.v[a], m.v[b]
    if _is_constant(q) and type(p) is int and interval_arithmetic.preserves_bits(m.words(p), q):
        m.v[out] = p
        return
    if m.tainted(p) and type(q) is int and q <= MASK:
        fact = describe(p, m.facts)
        cleared = (1 << 32) - q
        known = isinstance(fact, AnchoredTerm) and fact.base in m.environment.stacks
        if isinstance(fact, AnchoredTerm) and not known and q and cleared & (cleared - 1) == 0:
            below = ValueSet(0, cleared - 1, 1) if cleared > 1 else ValueSet.of(0)
            m.v[out] = m.fresh(site, _difference(fact, below))
            return
    binary(m, out, a, b, (site, OpCode.INT_AND, 32))
    result = m.v[out]
    if _is_constant(q) and type(p) is int and not p & MASK and min(p, result) >> 32 >= RIGID:
        m.fields[result >> 32] = (p >> 32, q)


def bit_or(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """INT_OR of words; bits that are already set leave the word itself."""
    p, q = m.v[a], m.v[b]
    if _is_constant(q) and type(p) is int and interval_arithmetic.has_bits(m.words(p), q):
        m.v[out] = p
        return
    binary(m, out, a, b, (site, OpCode.INT_OR, 32))


def _is_constant(value: Any) -> bool:
    return type(value) is int and value <= MASK


def shift_left(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """INT_LEFT of words."""
    p, q = m.v[a], m.v[b]
    fact = describe(p, m.facts) if type(p) is int else ANY
    constant = type(q) is int and q < 32
    if isinstance(fact, RotatedTerm) and constant:
        m.v[out] = m.fresh(site, scale_fact(fact, q))
    else:
        binary(m, out, a, b, (site, OpCode.INT_LEFT, 32))
    result = m.v[out]
    if constant and type(p) is int and p >> 32 >= RIGID and result >> 32 >= RIGID:
        symbol, factor, more = m.multiple(p)
        m.multiples[result >> 32] = (symbol, factor << q, (more << q) - result & MASK)


def _wide(m: AbstractMachine, value: Any) -> ValueSet:
    if isinstance(value, ValueSet):
        return value
    return WIDE if value is None else m.words(value)


WIDE = ValueSet(0, (1 << 64) - 1, 1)


def _marked(m: AbstractMachine, result: ValueSet, bits: int, p: Any, q: Any) -> Fact:
    """``result``, marked if it may be an address computed from a stack address."""
    if bits < 32 or not (m.tainted(p) or m.tainted(q)):
        return result
    if result.high < SMALL:
        return TAINTED if result.high == BYTE and _is_part(m, p) else result
    if type(p) is int and not m.tainted(q):
        fact = describe(p, m.facts)
        base = m.environment.stacks.get(fact.base) if isinstance(fact, AnchoredTerm) else None
        if base is not None and isinstance(fact, AnchoredTerm):
            return AnchoredTerm(
                fact.base, interval_arithmetic.subtract(result, ValueSet.of(base - BIAS))
            )
    return TAINTED


def _is_part(m: AbstractMachine, value: Any) -> bool:
    """Whether a byte of ``value`` counts as a stack address; code may store the others, too."""
    fact = describe(value, m.facts) if type(value) is int else ANY
    known = isinstance(fact, AnchoredTerm) and is_stack(fact.base)
    m.environment.use.scatters |= known
    return m.environment.use.scattered and on_stack(fact)


def restrict(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Apply a fact: the word in register ``a`` is in ``extra``, after the site."""
    site, known = extra
    m.restrict(m.term(m.v[a], site), known)


def restrict_unknown(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Apply a fact: the address in slot ``a``, if it is unknown, is in ``extra``.

    ``extra`` is the site, the addresses, and the instruction, which is recorded if the fact
    applies. An address counts as unknown if more than half of all words are possible.
    """
    site, known, insn = extra
    term = m.term(m.v[a], site)
    fact = describe(term, m.facts)
    if isinstance(fact, AnchoredTerm):
        return
    possible = plain(fact)
    if 2 * (possible.high - possible.low) > known.high - known.low:
        m.environment.unknown.add(insn)
        m.restrict(term, known)
