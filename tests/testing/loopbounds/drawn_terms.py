"""Random terms of every operator on words of every width, with values of their symbols."""

from __future__ import annotations

import random

from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, const, mask, sym
from loopbounds.terms.evaluate import compile_terms
from loopbounds.terms.term import make

__all__ = ["Drawn", "equals"]

WIDTHS = (1, 2, 3, 5, 8, 13, 16, 24, 31, 32, 33, 48, 63, 64)
SAME = ("and", "or", "xor", "mul", "udiv", "urem")
COMPARE = ("eq", "ult", "slt", "sborrow", "scarry")
SHIFTS = ("shl", "lshr", "ashr")
COUNTS = ("clz", "popcount")
OTHERS = ("not", "ite", "linear", "zext", "sext", "extract", "concat")
OPERATORS = (*SAME, *COMPARE, *SHIFTS, *COUNTS, *OTHERS)
CORNERS = (0, 1, 2, 3, -1, -2)


class Drawn:
    """Random terms of every operator on words of every width, with their values."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.values = {
            sym(f"v{width}_{n}", width): self.word(width) for width in WIDTHS for n in range(3)
        }
        self.pool: dict[int, list[Term]] = {}
        for symbol in self.values:
            self.pool.setdefault(symbol.width, []).append(symbol)

    def word(self, width: int) -> int:
        corner = self.chance.choice((*CORNERS, 1 << (width - 1), mask(width) >> 1))
        return self.chance.choice((corner, self.chance.getrandbits(width))) & mask(width)

    def some(self, width: int) -> Term:
        """A known term, often one of the last; sometimes a constant."""
        if self.chance.random() < 0.12:
            return const(self.word(width), width)
        known = self.pool[width]
        return self.chance.choice(known[-6:] if self.chance.random() < 0.6 else known)

    def operation(self, op: str, width: int) -> Term:
        """The term with this operator, without the constructors' simplifications."""
        a, b, some = self.some(width), self.some(width), self.some
        if op in ("udiv", "urem"):
            return make(op, width, (a, const(self.word(width), width)))
        if op in SAME or op in COUNTS:
            return make(op, width, (a, b) if op in SAME else (a,))
        if op in COMPARE:
            return make(op, 1, (a, b))
        if op in SHIFTS:
            amount = some(self.chance.choice(WIDTHS))
            if self.chance.random() < 0.5:
                amount = const(self.chance.randrange(2 * width), max(8, width))
            return make(op, width, (a, amount))
        if op == "not":
            return make(op, 1, (some(1),))
        if op == "ite":
            return make(op, width, (some(1), a, b))
        if op == "linear":
            args = [some(width) for _ in range(self.chance.randint(1, 3))]
            factors = tuple(self.word(width) for _ in args)
            return make(op, width, tuple(args), self.word(width), factors)
        narrower = [w for w in WIDTHS if w < width]
        if op == "concat":
            pairs = [(w, width - w) for w in narrower if width - w in WIDTHS]
            high, low = self.chance.choice(pairs) if pairs else (1, 1)
            return make(op, high + low, (some(high), some(low)))
        if not narrower:
            width, narrower = 8, [1, 2, 3, 5]
        inner = self.chance.choice(narrower)
        if op == "extract":
            low = self.chance.randrange(width - inner + 1)
            return make(op, inner, (some(width),), low)
        return make(op, width, (some(inner),))

    def terms(self, rounds: int) -> list[Term]:
        """Every operator on every width, ``rounds`` times, over earlier terms."""
        asked = [(op, width) for _ in range(rounds) for op in OPERATORS for width in WIDTHS]
        self.chance.shuffle(asked)
        found = []
        for op, width in asked:
            term = self.operation(op, width)
            if rewrite.size(term) < 20:
                self.pool[term.width].append(term)
            found.append(term)
        return found

    def values_of(self, found: list[Term]) -> tuple[int, ...]:
        """The values of terms by our evaluator."""
        order = list(self.values)
        return compile_terms(found, order)([self.values[s] for s in order])


def equals(term: Term, value: int) -> Term:
    if term.width > 1:
        return make("eq", 1, (term, const(value, term.width)))
    return term if value else make("not", 1, (term,))
