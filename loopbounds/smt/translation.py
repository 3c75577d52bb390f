"""Terms as formulas of the SMT solver.

A term of one bit is a Boolean. Logical operators map to the solver's; every other operator on
Booleans is computed on words of one bit. Two operators differ from SMT-LIB and are spelled out: a
quotient by 0 is 0, and the amount of a shift has a width of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from loopbounds.smt.solver import Formula, SmtSolver
from loopbounds.terms.bit_vectors import Term
from loopbounds.terms.rewrite import walk
from loopbounds.terms.well_typed import IllTyped, check_type

__all__ = ["SmtTranslation"]

LOGICAL = {"and": "AND", "or": "OR", "xor": "XOR", "not": "NOT", "eq": "EQUAL", "ite": "ITE"}
WORDS = {"and": "BV_AND", "or": "BV_OR", "xor": "BV_XOR", "mul": "BV_MUL"}
PREDICATES = {
    "ult": "BV_ULT",
    "slt": "BV_SLT",
    "sborrow": "BV_SSUB_OVERFLOW",
    "scarry": "BV_SADD_OVERFLOW",
}
SHIFTS = {"shl": "BV_SHL", "lshr": "BV_SHR", "ashr": "BV_ASHR"}


class SmtTranslation:
    """Formulas of terms over ``symbols``; each term is translated once."""

    def __init__(self, solver: SmtSolver, symbols: Mapping[Term, Formula]) -> None:
        self._solver = solver
        self._done = dict(symbols)

    def of(self, terms: Iterable[Term]) -> list[Formula]:
        """The formulas for ``terms``. Raises IllTyped."""
        terms = list(terms)
        missing = [t for t in terms if t not in self._done]
        for term in walk(missing) if missing else ():
            if term not in self._done:
                self._done[term] = self._formula(term)
        return [self._done[t] for t in terms]

    def _formula(self, term: Term) -> Formula:
        solver, op, width = self._solver, term.op, term.width
        if term.constant is not None:
            return solver.value(term.value, width) if width > 1 else solver.boolean(term.value)
        if op == "sym":
            raise IllTyped(f"symbol {term.name} is not part of the model")
        check_type(term)
        parts = [self._done[a] for a in term.args]
        if op in ("eq", "ite", "not"):
            return solver.apply(LOGICAL[op], *parts)
        if op in LOGICAL and width == 1:
            return reduce(lambda a, b: solver.apply(LOGICAL[op], a, b), parts)
        words = [self._word(f, a.width) for f, a in zip(parts, term.args, strict=True)]
        if op in PREDICATES:
            return solver.apply(PREDICATES[op], *words)
        found = self._computed(term, words)
        return found if width > 1 else solver.apply("EQUAL", found, solver.value(1, 1))

    def _word(self, formula: Formula, width: int) -> Formula:
        """A Boolean as a word of one bit."""
        if width > 1:
            return formula
        value = self._solver.value
        return self._solver.apply("ITE", formula, value(1, 1), value(0, 1))

    def _computed(self, term: Term, words: list[Formula]) -> Formula:
        """The word that an operator computes from words."""
        apply, op, width = self._solver.apply, term.op, term.width
        if op == "linear":
            return self._sum(term, words)
        if op in WORDS:
            return apply(WORDS[op], *words)
        if op in ("zext", "sext"):
            kind = "BV_ZERO_EXTEND" if op == "zext" else "BV_SIGN_EXTEND"
            return apply(kind, *words, indices=[width - term.args[0].width])
        if op == "extract":
            return self._bits(words[0], term.value, width)
        if op == "concat":
            return apply("BV_CONCAT", *words)
        if op in SHIFTS:
            return self._shift(op, words, width, term.args[1].width)
        if op == "udiv":
            none = self._solver.value(0, width)
            by_none = apply("EQUAL", words[1], none)
            return apply("ITE", by_none, none, apply("BV_UDIV", *words))
        if op == "urem":
            return apply("BV_UREM", *words)
        if op == "clz":
            return self._leading_zeros(words[0], width)
        if op == "popcount":
            return self._bit_count(words[0], width)
        raise IllTyped(f"no SMT for operator {op}")

    def _sum(self, term: Term, words: list[Formula]) -> Formula:
        """``value + sum(c * a)`` modulo 2**width."""
        apply, value = self._solver.apply, self._solver.value
        products = [
            a if c == 1 else apply("BV_MUL", value(c, term.width), a)
            for c, a in zip(term.factors, words, strict=True)
        ]
        constant = [value(term.value, term.width)] if term.value or not products else []
        return reduce(lambda a, b: apply("BV_ADD", a, b), [*products, *constant])

    def _bits(self, word: Formula, low: int, width: int) -> Formula:
        return self._solver.apply("BV_EXTRACT", word, indices=[low + width - 1, low])

    def _bit(self, word: Formula, place: int) -> Formula:
        """Bit ``place`` of a word, as a Boolean."""
        return self._solver.apply("EQUAL", self._bits(word, place, 1), self._solver.value(1, 1))

    def _shift(self, op: str, words: list[Formula], width: int, places: int) -> Formula:
        """A shift, computed in words that hold the value and the amount of ``places`` bits."""
        apply, (value, amount) = self._solver.apply, words
        if places < width:
            amount = apply("BV_ZERO_EXTEND", amount, indices=[width - places])
        if places > width:
            extension = "BV_SIGN_EXTEND" if op == "ashr" else "BV_ZERO_EXTEND"
            value = apply(extension, value, indices=[places - width])
        shifted = apply(SHIFTS[op], value, amount)
        return self._bits(shifted, 0, width) if places > width else shifted

    def _leading_zeros(self, word: Formula, width: int) -> Formula:
        """The number of leading zeros, by the highest bit that is one."""
        apply, value = self._solver.apply, self._solver.value
        found = value(width, width)
        for place in range(width):
            found = apply("ITE", self._bit(word, place), value(width - 1 - place, width), found)
        return found

    def _bit_count(self, word: Formula, width: int) -> Formula:
        apply = self._solver.apply
        bits = (self._bits(word, place, 1) for place in range(width))
        words = (apply("BV_ZERO_EXTEND", b, indices=[width - 1]) if width > 1 else b for b in bits)
        return reduce(lambda a, b: apply("BV_ADD", a, b), words)
