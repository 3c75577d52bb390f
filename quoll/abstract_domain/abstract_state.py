"""Abstract states: registers, flags, banks, stack and constant memory.

A state is the set of machine states for which values of its existential symbols exist, within
``facts``, such that every register, flag and memory cell has the value of its term or condition
(see ``quoll.abstract_domain.terms``). States are never changed after construction and have common
substructures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from quoll.abstract_domain.condition import Condition, decide, symbols
from quoll.abstract_domain.terms import (
    MASK,
    RIGID,
    TAINTED,
    Fact,
    Facts,
    Term,
    covers,
    describe,
    entry_symbol,
    exact_term,
    is_marked,
    union,
    widen_facts,
)
from quoll.intervals.strided_interval import ANY

__all__ = [
    "BEFORE",
    "ENTRY_MODE",
    "FLAG",
    "MASKED",
    "MODE",
    "SLOTS",
    "AbstractState",
    "Cells",
    "SymbolNames",
    "aliases_between",
    "covered_by",
    "entry_register",
    "entry_state",
    "live_facts",
    "merge",
]

REGISTERS: Final = 15  # r0 to lr; then the flags N Z C V, then mode and interrupt mask
FLAG: Final = 15  # index of N
MODE: Final = 19
MASKED: Final = 20
SLOTS: Final = 21
ENTRY_MODE: Final = 32  # in the place of a mode's number: the mode at entry
ARGUMENTS: Final = (0, 1, 2, 3, 12)
EXISTENTIAL: Final = RIGID << 32  # terms from here on have existential symbols
BEFORE: Final = -1  # the position of symbols that exist at entry

Cells = Mapping[int, object]


class AbstractState(NamedTuple):
    """``registers`` are 15 terms, the conditions N Z C V, the mode, and the interrupt mask.

    The mode is its number, User for System, or ``ENTRY_MODE``; None if it is unknown. Interrupts
    are masked (True), not masked (False), or one of both (None).
    ``frames`` and ``globals`` map addresses, as terms, to stored values: the term of an aligned
    word, or (size, term) for one or two bytes. ``frames`` are cells of stacks (a store of unknown
    address spares them under S1, rule 1), ``globals`` cells at constant addresses of ordinary
    memory. ``banks`` maps ``mode << 4 | register`` to registers of other modes.
    """

    registers: tuple[object, ...]
    frames: Mapping[int, object]
    globals: Mapping[int, object]
    banks: Mapping[int, object]
    facts: Facts

    @property
    def words(self) -> tuple[Term, ...]:
        """The terms of r0 to lr."""
        return cast("tuple[Term, ...]", self.registers[:FLAG])

    @property
    def flags(self) -> tuple[Condition, ...]:
        """N, Z, C and V."""
        return cast("tuple[Condition, ...]", self.registers[FLAG:MODE])

    @property
    def known_mode(self) -> int | None:
        """The number of the processor mode, User for System; None if it is not known."""
        mode = self.registers[MODE]
        return mode if isinstance(mode, int) and mode != ENTRY_MODE else None

    @property
    def known_mask(self) -> bool | None:
        """Whether interrupts are masked; None if they may be and may not be."""
        return cast("bool | None", self.registers[MASKED])

    def unmasked(self) -> AbstractState:
        """The same state where interrupts are not masked."""
        registers = (*self.registers[:MASKED], False, *self.registers[MASKED + 1 :])
        return self._replace(registers=registers)

    def term(self, register: int) -> Term:
        """The term of ``register``, r0 to lr."""
        term = self.registers[register]
        assert type(term) is int
        return term

    def fact(self, register: int) -> Fact:
        """The words that ``register``, r0 to lr, may hold."""
        return describe(self.term(register), self.facts)


def entry_state(
    names: SymbolNames, mode: int | None = None, masked: bool | None = None
) -> AbstractState:
    """The state at an entry: nothing is known of registers and memory.

    Callee-saved registers hold their entry symbol, the others (r0 to r3, r12) an existential one,
    so that branches refine the facts of arguments. ``mode`` and ``masked``: None if not known.
    """
    symbols = [names.of(BEFORE, r) if r in ARGUMENTS else entry_symbol(r) for r in range(REGISTERS)]
    terms = tuple(symbol << 32 for symbol in symbols)
    registers = (*terms, None, None, None, None, ENTRY_MODE if mode is None else mode, masked)
    return AbstractState(registers, {}, {}, {}, {})


def entry_register(symbol: int, names: SymbolNames) -> int | None:
    """The register that ``symbol`` stands for in ``entry_state``."""
    if symbol < RIGID:
        register = symbol - entry_symbol(0)
        return register if 0 <= register < REGISTERS else None
    known = {names.known.get((BEFORE, r)): r for r in ARGUMENTS}
    return known.get(symbol)


@dataclass(slots=True)
class SymbolNames:
    """Existential symbols, by the position in the weak order that creates them and a slot there.

    Freshness: a position's symbols are gone from a state before the position is reached again,
    because merging at the head of a component renames all symbols of the component.
    """

    known: dict[tuple[int, object], int] = field(default_factory=dict)
    owner: list[int] = field(default_factory=list)  # symbol - RIGID -> position

    def of(self, position: int, slot: object) -> int:
        """The symbol of ``slot`` at ``position``."""
        key = (position, slot)
        symbol = self.known.get(key)
        if symbol is None:
            symbol = RIGID + len(self.owner)
            self.known[key] = symbol
            self.owner.append(position)
        return symbol

    def renumbered(self, positions: Mapping[int, int]) -> SymbolNames:
        """The same symbols under other position numbers, which keep their order.

        Symbols of omitted positions must not be in use.
        """
        positions = {**positions, BEFORE: BEFORE}
        known = {(positions[p], slot): s for (p, slot), s in self.known.items() if p in positions}
        return SymbolNames(known, [positions.get(p, BEFORE) for p in self.owner])


def merge(
    a: AbstractState,
    b: AbstractState,
    names: SymbolNames,
    span: tuple[int, int],
    site: object = None,
    thresholds: Sequence[int] | None = None,
) -> AbstractState:
    """A state that covers both; ``a`` is the older one.

    ``span`` holds the positions of the component headed by the merge point (just that point if it
    heads none): the merge renames their symbols. Several merges at one position have different
    ``site``. With ``thresholds`` the result widens ``a``.
    """
    return _Merge(a, b, names, span, site, thresholds).run()


class _Merge:
    """Groups differing places into classes with equal differences in both states.

    Each class gets a symbol named after its first place; the fact of the symbol is the union of the
    facts of that place in both states.
    """

    def __init__(
        self,
        a: AbstractState,
        b: AbstractState,
        names: SymbolNames,
        span: tuple[int, int],
        site: object,
        thresholds: Sequence[int] | None,
    ) -> None:
        self.a, self.b, self.names, self.site = a, b, names, site
        self.low, self.high = span
        self.thresholds = thresholds
        self.classes: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.facts = self._common_facts()

    def run(self) -> AbstractState:
        a, b = self.a, self.b
        nothing_renamed = self.low == self.high
        registers: list[object] = [
            x if nothing_renamed and x == y else self._term(x, y, slot)
            for slot, (x, y) in enumerate(zip(a.words, b.words, strict=True))
        ]
        for p, q in zip(a.flags, b.flags, strict=True):
            registers.append(p if nothing_renamed and p == q else self._condition(p, q))
        for ours, theirs in zip(a.registers[MODE:], b.registers[MODE:], strict=True):
            registers.append(ours if ours == theirs else None)
        frames = self._cells(a.frames, b.frames)
        cells = self._cells(a.globals, b.globals)
        banks = self._cells(a.banks, b.banks)
        return AbstractState(tuple(registers), frames, cells, banks, self.facts)

    def _common_facts(self) -> dict[int, Fact]:
        a, b = self.a.facts, self.b.facts
        if a is b:
            return dict(a)
        if len(b) < len(a):
            symbols_in_both = [symbol for symbol in b if symbol in a]
        else:
            symbols_in_both = [symbol for symbol in a if symbol in b]
        common = {s: a[s] if a[s] is b[s] else self._fact(a[s], b[s]) for s in symbols_in_both}
        for one, other in ((a, b), (b, a)):
            # a symbol without a fact may be any unmarked word
            for symbol, fact in one.items():
                if symbol not in other and not covers(ANY, fact):
                    common[symbol] = TAINTED
        return common

    def _retained(self, symbol: int) -> bool:
        """Whether ``symbol`` may stay in the result."""
        if symbol < RIGID or self.low == self.high:
            return True
        return not self.low <= self.names.owner[symbol - RIGID] < self.high

    def _fact(self, old: Fact, new: Fact) -> Fact:
        if self.thresholds is None:
            return union(old, new)
        return widen_facts(old, new, self.thresholds)

    def _term(self, x: Term, y: Term, slot: object) -> Term:
        if x == y and self._retained(x >> 32):
            return x
        key = (x >> 32, y >> 32, (x - y) & MASK)
        known = self.classes.get(key)
        if known is None:
            fact = self._fact(describe(x, self.a.facts), describe(y, self.b.facts))
            exact = exact_term(fact)
            if exact is not None:
                return exact
            symbol = self.names.of(self.low, (self.site, slot))
            if fact is not ANY:
                self.facts[symbol] = fact
            elif symbol in self.facts:
                del self.facts[symbol]
            known = self.classes[key] = (symbol, x & MASK)
        symbol, offset = known
        return symbol << 32 | (x - offset) & MASK

    def _condition(self, x: Condition, y: Condition) -> Condition:
        if x == y and all(map(self._retained, symbols(x))):
            return x
        if type(x) is not bool and type(y) is not bool:
            return None  # nearly never are both decided
        known = decide(x, self.a.facts, {})
        return known if known is decide(y, self.b.facts, {}) else None

    def _cells(self, a: Mapping[int, object], b: Mapping[int, object]) -> Mapping[int, object]:
        nothing_renamed = self.low == self.high
        if a is b and nothing_renamed:
            return a
        result: dict[int, object] = {}
        for key, x in a.items():
            y = b.get(key)
            if not self._retained(key >> 32):
                continue
            if nothing_renamed and x == y:
                result[key] = x
            elif type(x) is int and type(y) is int:
                result[key] = self._term(x, y, (key, 0))
            elif type(x) is tuple and type(y) is tuple and x[0] == y[0]:
                result[key] = (x[0], self._term(x[1], y[1], (key, x[0])))
            elif is_marked(x, self.a.facts) or is_marked(y, self.b.facts):
                result[key] = self._marked(key)
        for key, y in b.items():
            if key not in a and is_marked(y, self.b.facts) and self._retained(key >> 32):
                result[key] = self._marked(key)
        return result

    def _marked(self, key: int) -> Term:
        """Any word, possibly a stack address; a place without a cell holds none."""
        symbol = self.names.of(self.low, (self.site, (key, 0)))
        self.facts[symbol] = TAINTED
        return symbol << 32


def covered_by(a: AbstractState, b: AbstractState) -> bool:
    """Whether every machine state of ``a`` is one of ``b``."""
    return a is b or _Cover(a, b).run()


def aliases_between(a: AbstractState, b: AbstractState) -> Mapping[int, Term]:
    """The term of ``a`` for each existential symbol of ``b``; ``b`` covers ``a``.

    Symbols that ``b`` does not mention have none, so their numbers may be used again.
    """
    cover = _Cover(a, b)
    if a is b or cover.same():
        return {s: s << 32 for s in _mentioned(b.registers, (b.frames, b.globals, b.banks))}
    cover.run()
    return cover.image


class _Cover:
    """Finds the term of ``a`` for each symbol of ``b``."""

    def __init__(self, a: AbstractState, b: AbstractState) -> None:
        self.a, self.b = a, b
        self.image: dict[int, Term] = {}
        self.unlike: set[int] = set()  # symbols of ``b`` without a term of ``a``

    def same(self) -> bool:
        """Whether registers, facts and cells of both states are the same objects or equal."""
        a, b = self.a, self.b
        return a.registers == b.registers and a.facts is b.facts and _same_cells(a, b)

    def run(self) -> bool:
        a, b = self.a, self.b
        if self.same():
            return True
        for x, y in zip(a.words, b.words, strict=True):
            if (x != y or y >= EXISTENTIAL) and not self._term(x, y):
                return False
        for ours, theirs in zip(a.registers[MODE:], b.registers[MODE:], strict=True):
            if theirs is not None and ours != theirs:
                return False
        for p, q in zip(a.flags, b.flags, strict=True):
            if (
                q is not None
                and p != q
                and (type(q) is not bool or decide(p, a.facts, {}) is not q)
            ):
                return False
        for condition in b.flags:
            if not all(self._same(symbol) for symbol in symbols(condition)):
                return False
        return (
            self._cells(a.frames, b.frames)
            and self._cells(a.globals, b.globals)
            and self._cells(a.banks, b.banks)
        )

    def _same(self, symbol: int) -> bool:
        return symbol < RIGID or self._term(symbol << 32, symbol << 32)

    def _term(self, x: Term, y: Term) -> bool:
        symbol = y >> 32
        if symbol < RIGID:
            return x == y or exact_term(describe(x, self.a.facts)) == y
        if symbol in self.unlike:
            return False
        if x == y and self.a.facts.get(symbol) is self.b.facts.get(symbol):
            return self.image.setdefault(symbol, symbol << 32) == symbol << 32
        base = x & ~MASK | (x - y) & MASK
        known = self.image.get(symbol)
        if known is not None:
            return known == base or self._same_word(known, base)
        self.image[symbol] = base
        fact = self.b.facts.get(symbol)
        if fact is None and (base <= MASK or base >> 32 not in self.a.facts):
            return base <= MASK or base >> 32 >= RIGID or covers(ANY, describe(base, {}))
        return covers(ANY if fact is None else fact, describe(base, self.a.facts))

    def _same_word(self, x: Term, y: Term) -> bool:
        """Whether two terms of ``a`` have one known value, and it is the same."""
        word = exact_term(describe(x, self.a.facts))
        return word is not None and word == exact_term(describe(y, self.a.facts))

    def _cells(self, a: Mapping[int, object], b: Mapping[int, object]) -> bool:
        if any(is_marked(a[key], self.a.facts) for key in a.keys() - b.keys()):
            return False
        ours, theirs, image = self.a.facts, self.b.facts, self.image
        for key, y in b.items():
            x = a.get(key)
            if x == y and type(y) is int and key < EXISTENTIAL:  # as ``_term`` decides, and often
                symbol = y >> 32
                if symbol < RIGID:
                    continue
                if symbol not in self.unlike and ours.get(symbol) is theirs.get(symbol):
                    if image.setdefault(symbol, symbol << 32) != symbol << 32:
                        return False
                    continue
            if key >= EXISTENTIAL and not self._same(key >> 32):
                return False
            if type(x) is not int and type(y) is int and self.b.facts.get(y >> 32) == TAINTED:
                if y >> 32 in self.image:  # another place of ``b`` holds the same word
                    return False
                self.unlike.add(y >> 32)
                continue
            if type(x) is int and type(y) is int:
                if (x != y or y >= EXISTENTIAL) and not self._term(x, y):
                    return False
            elif type(x) is tuple and type(y) is tuple and x[0] == y[0]:
                if not self._term(x[1], y[1]):
                    return False
            else:
                return False
        return True


def _same_cells(a: AbstractState, b: AbstractState) -> bool:
    return a.frames is b.frames and a.globals is b.globals and a.banks is b.banks


def live_facts(
    registers: Sequence[object], cells: Sequence[Cells], facts: Facts
) -> dict[int, Fact]:
    """The facts of symbols that a state still mentions."""
    live = _mentioned(registers, cells)
    return {symbol: fact for symbol, fact in facts.items() if symbol in live}


def _mentioned(registers: Sequence[object], cells: Sequence[Cells]) -> set[int]:
    live: set[int] = set()
    for value in registers:
        if type(value) is int:
            live.add(value >> 32)
        elif isinstance(value, tuple):
            live.update(symbols(value))  # type: ignore[arg-type]
    for mapping in cells:
        for key, value in mapping.items():
            live.add(key >> 32)
            live.add((value if type(value) is int else value[1]) >> 32)  # type: ignore[index]
    return live
