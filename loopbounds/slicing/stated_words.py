"""Invariants that hold when paths start, as terms over words of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import reduce

from loopbounds.slicing.cell import MemoryCell
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, const
from quoll.facts.entry_invariants import LocatedInvariant
from quoll.facts.predicate import Comparison, MemoryWord, WordSum
from quoll.image.image import Image

__all__ = ["about", "invariant_term", "words_of"]

RELATIONS: dict[str, Callable[[Term, Term], Term]] = {
    "<=": terms.ule,
    "<": terms.ult,
    ">=": lambda a, b: terms.ule(b, a),
    ">": lambda a, b: terms.ult(b, a),
    "=": terms.eq,
    "!=": lambda a, b: terms.negate(terms.eq(a, b)),
}
SIGNED = {
    **RELATIONS,
    "<=": terms.sle,
    "<": terms.slt,
    ">=": lambda a, b: terms.sle(b, a),
    ">": lambda a, b: terms.slt(b, a),
}
Read = Callable[[MemoryWord], Term]


def words_of(invariant: LocatedInvariant, image: Image) -> dict[MemoryWord, MemoryCell]:
    """The cell of each word of a predicate, at the home address of the word."""
    return {
        word: MemoryCell(const(image.home(invariant.address(word), word.size), 32), word.size)
        for word in invariant.fact.predicate.words
    }


def about(symbols: Set[Term], invariants: Iterable[Term]) -> list[Term]:
    """The invariants that read one of ``symbols``, or a word of another such invariant."""
    wanted, found = set(symbols), list[Term]()
    left: Sequence[Term] = [one for one in invariants if one is not TRUE]
    while more := [one for one in left if rewrite.symbols([one]) & wanted]:
        found += more
        wanted |= rewrite.symbols(more)
        left = [one for one in left if one not in more]
    return found


def invariant_term(invariant: LocatedInvariant, read: Read) -> Term:
    """The predicate over the terms that ``read`` gives for its words."""
    ways = (
        reduce(terms.both, (compared(one, read) for one in way), TRUE)
        for way in invariant.fact.predicate.ways
    )
    return reduce(terms.either, ways, FALSE)


def compared(one: Comparison, read: Read) -> Term:
    """A comparison as a term of one bit."""
    left, right = (summed(side, read, signed=one.signed) for side in (one.left, one.right))
    return (SIGNED if one.signed else RELATIONS)[one.relation](left, right)


def summed(side: WordSum, read: Read, *, signed: bool) -> Term:
    """The sum of words of 32 bits."""
    total = const(side.constant, 32)
    for word in side.words:
        term = terms.operation("and", read(word), const(word.mask, 8 * word.size))
        total = terms.add(total, (terms.sext if signed else terms.zext)(term, 32))
    return total
