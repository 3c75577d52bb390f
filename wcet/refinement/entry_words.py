"""Words of the state at an entry, as symbols with values that satisfy a growing set of conditions.

A word of an execution is its value, and if it depends on the state, a term over these symbols. A
condition that the values do not satisfy yet is given to an SMT solver, with all conditions that are
connected to it by symbols. So the values change, and the terms stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from loopbounds.budgets.budget import StepLimits
from loopbounds.slicing.op_terms import OP_TERMS
from loopbounds.smt.solver import SearchFailed, SmtResult, SmtSolver
from loopbounds.smt.translation import SmtTranslation
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, const, eq, ite, negate, sym
from loopbounds.terms.evaluate import compile_terms
from loopbounds.terms.well_typed import IllTyped
from quoll.semantics.operations import evaluate
from quoll.semantics.ops import OpCode

__all__ = ["EntryWords", "NotDirected", "Word", "chosen", "computed"]

CHECK = StepLimits(steps=20_000, seconds=2)
NEWEST = (1, 4)  # symbols whose values are changed first
LARGE = 4_000  # nodes of the terms of a check; a larger one is not made


class NotDirected(Exception):
    """The execution cannot be continued."""


class Word(NamedTuple):
    """A word; ``term``: over the symbols of the entry, None if its value never changes."""

    value: int
    term: Term | None = None

    def as_term(self, width: int) -> Term:
        """The word as a term of ``width`` bits."""
        return const(self.value, width) if self.term is None else self.term


def computed(code: OpCode, inputs: Sequence[Word], sizes: Sequence[int], out: int) -> Word:
    """The result of an op on words of ``sizes`` bytes; ``out`` in bytes.

    Raises NotDirected where no term expresses the result.
    """
    value = evaluate(code, [word.value for word in inputs], list(sizes), out)
    if all(word.term is None for word in inputs):
        return Word(value)
    terms = [word.as_term(8 * size) for word, size in zip(inputs, sizes, strict=True)]
    term = OP_TERMS[code](terms[0], terms[-1], 8 * out)
    if term is None:
        raise NotDirected("an operation has no term")
    return Word(value) if term.constant is not None else Word(value, term)


def chosen(condition: Word, then: Word, other: Word, size: int) -> Word:
    """``then`` unless the condition is 0, else ``other``; ``size`` in bytes."""
    if condition.term is None:
        return then if condition.value else other
    holds = negate(eq(condition.term, const(0, condition.term.width)))
    term = ite(holds, then.as_term(8 * size), other.as_term(8 * size))
    return Word(then.value if condition.value else other.value, term)


@dataclass(slots=True)
class EntryWords:
    """The symbols with their values; ``given``: values by name that never change.

    ``end``: the processor time after which no query is made.
    """

    given: Mapping[str, int] | None = None
    end: float = float("inf")
    values: dict[Term, int] = field(default_factory=dict)
    conditions: dict[Term, None] = field(default_factory=dict)
    version: int = 0  # of the values
    _changed: set[Term] = field(default_factory=set)  # symbols, since words were made present

    def symbol(self, name: str, width: int, value: int = 0) -> Word:
        """A word of the state, or one that the execution may choose."""
        if self.given is not None:
            return Word(self.given.get(name, value))
        term = sym(name, width)
        self.values[term] = value
        return Word(value, term)

    def named(self) -> dict[str, int]:
        """The values of all symbols by name."""
        return {term.name: value for term, value in self.values.items()}

    def present(self, words: Sequence[Word]) -> list[Word]:
        """The words with the present values of their symbols; all words of the execution."""
        every = dict.fromkeys(word.term for word in words if word.term is not None)
        terms = [t for t in every if not self._changed.isdisjoint(rewrite.symbols_of(t))]
        self._changed.clear()
        order = sorted(rewrite.symbols(terms), key=lambda s: s.serial)
        found = compile_terms(terms, order)([self.values[s] for s in order])
        values = dict(zip(terms, found, strict=True))
        return [w if w.term is None else Word(values.get(w.term, w.value), w.term) for w in words]

    def demand(self, wanted: Sequence[Term], *, holds: bool) -> bool:
        """Add conditions that the values satisfy, now or by other values; False: not added.

        ``holds``: the present values satisfy them.
        """
        new = [term for term in wanted if term is not TRUE]
        if FALSE in new or (not holds and not self._solved(new)):
            return False
        self.conditions.update(dict.fromkeys(new))
        return True

    def _solved(self, wanted: Sequence[Term]) -> bool:
        """Change the values so that ``wanted`` holds with all conditions.

        Of few symbols: the newest ones, then all in ``wanted``, then all that are connected.
        """
        few = rewrite.symbols(wanted)
        order = sorted(few, key=lambda s: s.serial)
        tries = dict.fromkeys(frozenset(order[-count:]) for count in (*NEWEST, len(order)))
        if any(self._solved_for(one, self._about(one, wanted)) for one in tries):
            return True
        group = self._connected(wanted)
        every = rewrite.symbols(group)
        return every != few and self._solved_for(every, group)

    def _about(self, symbols: Set[Term], wanted: Sequence[Term]) -> list[Term]:
        """``wanted``, and the conditions that other values of ``symbols`` may violate."""
        about = (c for c in self.conditions if not symbols.isdisjoint(rewrite.symbols_of(c)))
        return [*wanted, *about]

    def _solved_for(self, symbols: Set[Term], group: Sequence[Term]) -> bool:
        """Change the values of ``symbols`` so that the conditions ``group`` hold."""
        if time.process_time() > self.end or rewrite.size(*group) > LARGE:
            return False
        solver = SmtSolver()
        order = sorted(rewrite.symbols(group), key=lambda s: s.serial)
        known = {
            s: solver.symbol(f"{s.name}.{s.serial}", s.width)
            if s in symbols
            else solver.value(self.values[s], s.width)
            for s in order
        }
        try:
            found = solver.check(SmtTranslation(solver, known).of(group), CHECK)
        except (SearchFailed, IllTyped):
            return False
        if found.result is not SmtResult.SAT:
            return False
        new = {s: found.value(known[s]) for s in order if s in symbols}
        self._changed |= {s for s, value in new.items() if self.values[s] != value}
        self.values |= new
        self.version += 1
        return True

    def _connected(self, wanted: Sequence[Term]) -> list[Term]:
        """``wanted``, and all conditions that share symbols with it, also through others."""
        group, symbols = list(wanted), rewrite.symbols(wanted)
        left: Iterable[tuple[Term, frozenset[Term]]] = [
            (one, frozenset(rewrite.symbols_of(one))) for one in self.conditions
        ]
        while True:
            near = [(one, of) for one, of in left if not symbols.isdisjoint(of)]
            if not near:
                return group
            left = [(one, of) for one, of in left if symbols.isdisjoint(of)]
            group += [one for one, _ in near]
            symbols = symbols.union(*(of for _, of in near))
