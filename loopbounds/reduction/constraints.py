"""Constraints of a model: ranges and conditions that hold when the loop is entered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import combinations
from random import Random

from loopbounds.budgets import table
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import TRUE, Term, const
from loopbounds.terms.evaluate import compile_terms
from quoll.image.memory_map import MemoryMap
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["UnknownWords", "conjuncts", "relevant", "says_all", "within"]


def within(term: Term, values: ValueSet) -> list[Term]:
    """Conditions that ``term`` lies in a strided interval: its bounds, and a power of two."""
    if values == ANY or term.constant is not None or term.width != 32:
        return []
    if values.exact is not None:
        return [terms.eq(term, const(values.low, 32))]
    found = [terms.ule(const(values.low, 32), term), terms.ule(term, const(values.high, 32))]
    step = values.stride & -values.stride
    if step > 1:
        offset = terms.operation("and", term, const(step - 1, 32))
        found.append(terms.eq(offset, const(values.low & (step - 1), 32)))
    return [c for c in found if c is not TRUE]


def relevant(conditions: list[Term], wanted: set[Term]) -> list[Term]:
    """Conditions that share symbols with ``wanted``, directly or through other conditions."""
    wanted = set(wanted)
    chosen: list[Term] = []
    small = [c for whole in conditions for c in terms.conjuncts(whole)]
    left = [c for c in small if c.constant is None and rewrite.size(c) <= table.WAY_IN_TERMS]
    for _ in range(2):
        for c in list(left):
            used = rewrite.symbols([c])
            if used & wanted and len(chosen) < table.WAY_IN_CONDITIONS:
                chosen.append(c)
                left.remove(c)
                wanted |= used
    return chosen


def says_all(
    constraints: Set[Term],
    way_in: Iterable[Term],
    deciding: Mapping[Term, Term],
    parameters: Set[Term],
    tried: Set[Term],
    words: UnknownWords,
) -> bool:
    """Whether ``constraints`` contain every condition on ``parameters`` on the way into a loop.

    ``deciding``: the conditions that may fail, each with its form in the first iteration of the
    enclosing loops. None of them may be about a word that the analysis lost, which may depend on
    anything (rule 39). Conditions without a word of ``tried``, for which runs of the model are
    known, must be satisfiable: words that satisfy them are searched.
    """
    if rewrite.symbols(conjuncts(way_in) - constraints) & parameters:
        return False
    moved = {c for raw, c in deciding.items() if c is not raw}
    at_first = conjuncts(deciding.values())
    used = rewrite.symbols(at_first)
    if not all(map(words.is_given, used)) or rewrite.symbols(conjuncts(moved)) & parameters:
        return False
    others = [c for c in at_first - {TRUE} if not rewrite.symbols([c]) & tried]
    return words.are_apart(used | parameters, used) and _are_possible(others)


def conjuncts(conditions: Iterable[Term]) -> set[Term]:
    """The conjuncts of ``conditions``."""
    return {c for condition in conditions for c in terms.conjuncts(condition)}


@dataclass(frozen=True, slots=True)
class UnknownWords:
    """The unknown words of a graph: whether they may be any word, and their addresses in memory."""

    is_given: Callable[[Term], bool]
    loaded: Mapping[Term, Term]  # loaded word -> address
    cells: Mapping[Term, tuple[Term, int]]  # word in memory at the start -> address, bytes
    memory: MemoryMap

    def are_apart(self, used: Set[Term], limited: Set[Term]) -> bool:
        """Whether the words ``used`` from memory do not overlap.

        Two loaded words may be one and the same, and a loaded word is not free if conditions
        restrict its address (a word of ``limited``).
        """
        read = used & self.loaded.keys()
        cells = [self.cells[word] for word in used & self.cells.keys()]
        if read:
            where = rewrite.symbols([self.loaded[word] for word in read])
            return len(read) + len(cells) == 1 and not where & (limited | read)
        return all(self._is_apart(a, b) for a, b in combinations(cells, 2))

    def _is_apart(self, a: tuple[Term, int], b: tuple[Term, int]) -> bool:
        (at, size), (other, length) = a, b
        distance = terms.sub(other, at).constant
        if distance is None or not size <= distance <= (1 << 32) - length:
            return False
        if at.constant is None:
            return not self.memory.meets_at((distance, distance), length, size)
        first, second = (at.value, at.value + size - 1), (other.value, other.value + length - 1)
        return not self.memory.meets(first, second)


def _are_possible(conditions: Iterable[Term]) -> bool:
    """Whether some words satisfy all conditions; those without a common word are tried apart."""
    groups: list[tuple[list[Term], set[Term]]] = []
    for condition in conditions:
        symbols = rewrite.symbols([condition])
        near = [group for group in groups if group[1] & symbols]
        groups = [group for group in groups if not group[1] & symbols]
        together = [condition, *(c for group in near for c in group[0])]
        groups.append((together, symbols.union(*(group[1] for group in near))))
    return all(_is_possible(*group) for group in groups)


def _is_possible(conditions: list[Term], symbols: Set[Term]) -> bool:
    order = sorted(symbols, key=lambda s: s.serial)
    run = compile_terms(conditions, order)
    numbers = {t.value for t in rewrite.walk(conditions) if t.op in ("const", "linear")}
    near = sorted({(n + d) % (1 << 32) for n in numbers | {0} for d in (-1, 0, 1)})
    chance = Random(1)
    best = [chance.choice(near) & terms.mask(s.width) for s in order]
    most = sum(run(best))
    for _ in range(table.WITNESS_TRIES):
        if most == len(conditions):
            return True
        at = chance.randrange(len(order)) if order else 0
        tried = list(best)
        if order:
            word = chance.choice(near) if chance.random() < 0.7 else chance.getrandbits(32)
            tried[at] = word & terms.mask(order[at].width)
        holding = sum(run(tried))
        if holding >= most:
            best, most = tried, holding
    return most == len(conditions)
