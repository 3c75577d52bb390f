"""The abstract machine: registers, temporaries, facts and memory while a block is interpreted.

Values in its slots are terms (one to four bytes), conditions (flags and other truth values),
``ValueSet`` of 64 bits (eight bytes), or None (unknown).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quoll.abstract_domain import condition as cond
from quoll.abstract_domain.abstract_memory import AbstractMemory, MemoryUsage, OwnObject
from quoll.abstract_domain.abstract_state import SLOTS, AbstractState, SymbolNames, live_facts
from quoll.abstract_domain.condition import Condition, TermComparison
from quoll.abstract_domain.terms import (
    BIAS,
    MASK,
    RIGID,
    SIGN,
    STACKS,
    AnchoredTerm,
    Fact,
    Facts,
    Term,
    describe,
    exact_term,
    fewer,
    multiple_fact,
    on_stack,
)
from quoll.assumptions import Assumption
from quoll.image.cache_words import CacheWords
from quoll.image.memory_map import NO_MAP, MemoryMap, Span
from quoll.intervals import masked_words
from quoll.intervals.interval_comparison import ComparisonOperator
from quoll.intervals.masked_words import MaskedWords
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["AbstractMachine", "AnalysisEnvironment"]

SP = 13
MANY_FACTS = 32  # more facts than these are searched for unused ones


@dataclass(slots=True)
class AnalysisEnvironment:
    """The common inputs of all blocks of one analysis."""

    constant: Callable[[int, int], int | None]  # value of read-only memory
    ordinary: Callable[[int], bool]  # whether an address is in a writable section
    map: MemoryMap = NO_MAP
    names: SymbolNames = field(default_factory=SymbolNames)
    stacks: dict[int, int] = field(default_factory=dict)
    use: MemoryUsage = field(default_factory=MemoryUsage)
    constants: dict[tuple[int, int], int | None] = field(default_factory=dict)
    limits: dict[int, set[int]] = field(default_factory=dict)  # position -> thresholds
    given: Mapping[int, Fact] = field(default_factory=dict)  # possible values of device words
    loaded: dict[int, set[int]] = field(default_factory=dict)  # position -> words without a cell
    unknown: set[int] = field(default_factory=set)  # unknown accesses that a fact restricts
    spilled: Callable[[object], bool] | None = None  # whether array stores spare a cell
    changed: frozenset[Span] = frozenset()  # bytes of read-only sections that are written
    own_object: OwnObject | None = None  # S8: None without objects of their own
    apart: Callable[[int], bool] | None = None  # addresses at which no stack of unknown place lies
    lost: set[int] = field(
        default_factory=set
    )  # symbols of stack words lost by a store or an invalidation
    retranslated: bool = False  # the program changes translations, and a platform fixes some
    same_mode: bool = False  # status words of unknown mode are assumed to have the current one
    reads_bits: bool = False  # a word has been read of which only some bits are known
    cache_words: CacheWords | None = None  # of the registers that identify caches

    @property
    def used(self) -> set[Assumption]:
        """The named assumptions that the analysis has used so far."""
        return self.use.assumptions

    @property
    def knows_bits(self) -> bool:
        """Whether there may be words of which only some bits are known."""
        return self.reads_bits or bool(self.given)

    def read(self, addr: int, size: int) -> int | None:
        """The constant at ``addr``, or None."""
        key = (addr, size)
        if key not in self.constants:
            self.constants[key] = self.constant(addr, size)
        return self.constants[key]

    def note_limits(self, position: int, condition: Condition, facts: Facts) -> None:
        """Record the constants that symbols are compared with, as thresholds of widening."""
        if not isinstance(condition, TermComparison):
            return
        _, a, b = condition
        for x, y in ((a, b), (b, a)):
            if x >> 32 < RIGID:
                continue
            fact, other = describe(x & ~MASK, facts), describe(y, facts)
            word = cond.words(other, self.stacks).exact
            if isinstance(fact, AnchoredTerm):
                same = isinstance(other, AnchoredTerm) and other.base == fact.base
                if same and isinstance(other, AnchoredTerm):
                    word = other.offsets.exact
                elif word is not None:
                    base = self.stacks.get(fact.base)
                    word = None if base is None else word - base + BIAS
            if word is not None:
                limit = word - x & MASK
                near = (limit, limit - 1 & MASK, limit + 1 & MASK)
                self.limits.setdefault(position, set()).update(near)

    def stack(self, top: int) -> int:
        """The rigid symbol of the stack whose pointer was loaded with ``top``; 0 if too many."""
        for symbol, base in self.stacks.items():
            if base == top:
                return symbol
        symbol = STACKS + len(self.stacks)
        if symbol >= RIGID:
            return 0
        self.stacks[symbol] = top
        return symbol


class AbstractMachine:
    """The registers, temporaries, facts and memory while ops are evaluated."""

    __slots__ = (
        "accesses",
        "banks",
        "environment",
        "facts",
        "fields",
        "memory",
        "multiples",
        "owned",
        "position",
        "v",
    )

    def __init__(self, environment: AnalysisEnvironment, position: int) -> None:
        self.environment = environment
        self.position = position
        self.v: list[Any] = []
        self.facts: Facts = {}
        self.owned = False
        self.banks: Mapping[int, object] = {}
        self.memory: AbstractMemory
        self.accesses: dict[tuple[int, int], tuple[Term, Fact]] | None = None
        # A symbol of this block as another symbol times a factor, plus a constant.
        self.multiples: dict[int, tuple[int, int, int]] = {}
        # A symbol of this block as the bits of a mask of another symbol.
        self.fields: dict[int, tuple[int, int]] = {}

    def restore(self, state: AbstractState, tail: list[Any]) -> None:
        """Start from ``state``; ``tail`` are temporaries and constants."""
        self.v = [*state.registers, *tail]
        self.resume(state)

    def resume(self, state: AbstractState) -> None:
        """Take ``state``, except for the temporaries."""
        environment = self.environment
        self.v[:SLOTS] = state.registers
        self.facts, self.owned = state.facts, False
        self.banks = state.banks
        self.memory = AbstractMemory(
            state.frames,
            state.globals,
            environment.stacks,
            environment.ordinary,
            environment.use,
            environment.map,
            environment.spilled,
            environment.apart,
            environment.own_object,
        )

    def snapshot(self, facts: Facts | None = None) -> AbstractState:
        """The current state, with ``facts`` in place of the current facts if given."""
        memory = self.memory
        memory.own = {}
        self.owned = False
        return AbstractState(
            tuple(self.v[:SLOTS]),
            memory.frames,
            memory.globals,
            self.banks,
            self.facts if facts is None else facts,
        )

    def finish(self, start_sp: Term) -> AbstractState:
        """The state at the end of a block, without cells below sp and unused facts."""
        memory = self.memory
        sp = self.v[SP]
        if memory.frames and (sp >> 32 != start_sp >> 32 or 0 < (sp - start_sp) & MASK < SIGN):
            memory.forget_below(sp, self.facts)
        if len(self.facts) > MANY_FACTS:
            self.facts = live_facts(
                self.v[:SLOTS], (memory.frames, memory.globals, self.banks), self.facts
            )
        return self.snapshot()

    def note_access(self, access: tuple[int, int], address: Term) -> None:
        """Record the lowest address of an access (instruction index, and executed copy of it)."""
        assert self.accesses is not None
        known = self.accesses.get(access)
        if known is None or (address - known[0]) & MASK >= SIGN:
            self.accesses[access] = (address, describe(address, self.facts))

    def fresh(self, site: object, fact: Fact = ANY) -> Term:
        """A word within ``fact``: its only member, else a new symbol."""
        exact = exact_term(fact)
        if exact is not None:
            return exact
        symbol = self.environment.names.of(self.position, site)
        if fact is not ANY or symbol in self.facts:
            if not self.owned:
                self.facts, self.owned = dict(self.facts), True
            self.facts[symbol] = fact  # type: ignore[index]
        return symbol << 32

    def fresh_multiple(self, site: object, of: tuple[int, int, int], fact: Fact) -> Term:
        """A word within ``fact`` that is ``of``: a symbol times a factor, plus a constant."""
        symbol, factor, constant = of
        if factor == 0:
            return constant
        exactly = multiple_fact(describe(symbol << 32, self.facts), factor, constant)
        term = self.fresh(site, fact if exactly is None else fewer(exactly, fact))
        if term >> 32 >= RIGID:
            self.multiples[term >> 32] = (symbol, factor, constant - term & MASK)
        return term

    def term(self, value: Any, site: object) -> Term:
        """``value`` as a word."""
        if type(value) is int:
            return value
        if isinstance(value, ValueSet) or value is None:
            return self.fresh((site, "word"))
        decided = cond.decide(value, self.facts, self.environment.stacks)
        if decided is not None:
            return int(decided)
        return self.fresh((site, "truth"), ValueSet(0, 1, 1))

    def condition(self, value: Any) -> Condition:
        """``value`` as a truth value; words count as true unless 0."""
        if type(value) is int:
            return bool(value) if value <= MASK else TermComparison(ComparisonOperator.NE, value, 0)
        return None if isinstance(value, ValueSet) else value

    def words(self, value: Any) -> ValueSet:
        """The words of a value of up to four bytes."""
        if type(value) is not int:
            return ANY if value is None or isinstance(value, ValueSet) else ValueSet(0, 1, 1)
        if value <= MASK:
            return ValueSet(value, value, 0)
        return cond.words(describe(value, self.facts), self.environment.stacks)

    def multiple(self, term: Term) -> tuple[int, int, int]:
        """A symbol, a factor and a constant whose product and sum is the word of ``term``."""
        symbol, factor, constant = self.multiples.get(term >> 32, (term >> 32, 1, 0))
        return symbol, factor, constant + term & MASK

    def with_fields(self, facts: Facts | None) -> Facts | None:
        """``facts``, which a branch refined, with the words whose fields these now decide."""
        if facts is None or facts is self.facts:
            return facts
        for field_symbol, (symbol, mask) in self.fields.items():
            value = facts.get(field_symbol)
            if value is self.facts.get(field_symbol) or not isinstance(value, ValueSet):
                continue
            known = facts.get(symbol, ANY)
            field = value.exact
            if field is None or field & ~mask or not isinstance(known, ValueSet | MaskedWords):
                continue
            self.environment.reads_bits = True
            facts = {**facts, symbol: masked_words.with_field(known, mask, field)}
        return facts

    def restrict(self, term: Term, known: ValueSet) -> None:
        """Assume that ``term`` is in ``known``; a contradiction leaves the facts unchanged."""
        facts = cond.restricted(term, known, self.facts, self.environment.stacks)
        if facts is not None and facts is not self.facts:
            self.facts, self.owned = facts, False

    def tainted(self, value: Any) -> bool:
        """Whether ``value`` may be computed from a stack address."""
        return type(value) is int and value > MASK and on_stack(describe(value, self.facts))

    def write_sp(self, value: Term) -> None:
        """sp = value; a constant becomes the top of a stack, unless it lies in the present one."""
        exact = exact_term(describe(value, self.facts))
        if exact is not None and exact <= MASK:
            symbol = self.environment.stack(exact)
            value = symbol << 32 if symbol else exact
        self.v[SP] = value
