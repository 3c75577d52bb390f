"""Must analysis of one cache over a supergraph: its lines, and its credited misses.

Two kinds of knowledge are carried side by side, each by the rules of the policy:

    strict  the line is in the cache;
    paid    the line is in the cache, or a miss of it was charged that did not happen.

    Claim: along every path, misses <= charges.
    Potential: the paid lines that are not in the cache, one miss each. An access that is charged
    either misses, or its charge is left as potential. An access to a paid line is not charged: if
    it misses, the potential of the line pays, and the line is there afterwards. Joins, evictions
    by what is known to be accessed, and forgetting only lower the potential.

A line that was paid for need not be there, so that it may age all others when it is used,
however young it is itself. First misses are charged where their loop is entered; that charge
plays the same part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import NamedTuple

from cache.events import Event, EventFlow, Events, FlowOrder
from cache.geometry import Geometry
from cache.lines import NO_LINES, Lines, LinesBuilder, Target
from cache.policy import Policy, Rule, paid_rules, strict_rules

__all__ = ["Known", "MustStep", "MustVerdict", "Residency"]


@dataclass(frozen=True, slots=True)
class MustVerdict:
    """Of an access: the line is surely there; if not, whether its miss was charged before."""

    resident: bool
    paid: bool


RESIDENT, PAID, ABSENT = (
    MustVerdict(resident=True, paid=False),
    MustVerdict(resident=False, paid=True),
    MustVerdict(resident=False, paid=False),
)


class Known(NamedTuple):
    """What is known at one point: one ``Lines`` per rule, strict and paid."""

    strict: tuple[Lines, ...]
    paid: tuple[Lines, ...]

    def join(self, other: Known) -> Known:
        """What holds if either does."""
        if self is other:
            return self
        return Known(_joined(self.strict, other.strict), _joined(self.paid, other.paid))

    def covered_by(self, other: Known) -> bool:
        """Whether this knows all that ``other`` does."""
        if self is other:
            return True
        ours, theirs = (*self.strict, *self.paid), (*other.strict, *other.paid)
        return all(x.covered_by(y) for x, y in zip(ours, theirs, strict=True))

    def renamed(self, edge: int, images: Callable[[int], Mapping[int, int]]) -> Known:
        """After ``edge``, along which symbols change."""
        if not any(lines.symbols for lines in (*self.strict, *self.paid)):
            return self
        image = images(edge)
        return Known(
            tuple(lines.renamed(image) for lines in self.strict),
            tuple(lines.renamed(image) for lines in self.paid),
        )


def _joined(a: tuple[Lines, ...], b: tuple[Lines, ...]) -> tuple[Lines, ...]:
    return tuple(x.join(y) for x, y in zip(a, b, strict=True))


class MustStep:
    """A working copy of ``Known`` while events are applied one after another."""

    def __init__(
        self, known: Known, strict: Sequence[Rule], paid: Sequence[Rule], geometry: Geometry
    ) -> None:
        size, count = geometry.line_bytes, geometry.index_sets
        self._known = known
        self._strict = [
            (rule, LinesBuilder(lines, size, count, rule.capacity))
            for rule, lines in zip(strict, known.strict, strict=True)
        ]
        self._paid = [
            (rule, LinesBuilder(lines, size, count, rule.capacity))
            for rule, lines in zip(paid, known.paid, strict=True)
        ]

    def build(self) -> Known:
        """What is known after the events so far."""
        strict = tuple(lines.build() for _, lines in self._strict)
        paid = tuple(lines.build() for _, lines in self._paid)
        known = self._known
        unchanged = all(map(is_, (*strict, *paid), (*known.strict, *known.paid)))
        return known if unchanged else Known(strict, paid)

    def apply(self, event: Event) -> MustVerdict:
        """The effect of ``event``; the verdict is on the state before it."""
        target = event.target
        if target is None:
            self._operate(event)
            return ABSENT
        ages = [lines.age(target) for _, lines in self._strict]
        verdict = self._verdict(target, ages)
        for (rule, lines), age in zip(self._strict, ages, strict=True):
            if event.store:
                self._store(rule, lines, event, age)
                continue
            lines.make_older(target, rule.capacity if age is None else age)
            if event.certain and target.identified:
                lines.add(target)
        charged = not (verdict.resident or verdict.paid or event.first)
        for rule, lines in self._paid:
            if event.store:
                self._store(rule, lines, event, _age_by(rule, self._strict, ages))
            elif rule.fills:
                self._fill(lines, event, verdict, charged=charged)
            else:
                age = _age_by(rule, self._strict, ages)
                lines.make_older(target, rule.capacity if age is None else age)
                again = charged or (event.first and rule.capacity == 1)
                if target.identified and (event.certain or (event.pays and again)):
                    lines.add(target)
        return verdict

    def _verdict(self, target: Target, ages: Sequence[int | None]) -> MustVerdict:
        """What is known of ``target`` before it is accessed."""
        if any(age is not None for age in ages):
            return RESIDENT
        if target.identified and any(lines.age(target) is not None for _, lines in self._paid):
            return PAID
        return ABSENT

    def _operate(self, event: Event) -> None:
        for _, lines in self._strict:
            if event.forget or event.drop:
                lines.forget()
            if event.rename:
                lines.forget_symbols()
        for _, lines in self._paid:
            if event.forget:
                lines.forget()
            if event.rename:
                lines.forget_symbols()

    @staticmethod
    def _store(rule: Rule, lines: LinesBuilder, event: Event, age: int | None) -> None:
        """A store that hits is a use, where uses are ordered; it fills nothing."""
        assert event.target is not None
        if not rule.stores:
            return
        lines.make_older(event.target, rule.capacity if age is None else age)
        if age is not None and event.certain and event.target.identified:
            lines.add(event.target)

    @staticmethod
    def _fill(lines: LinesBuilder, event: Event, verdict: MustVerdict, *, charged: bool) -> None:
        """Ages count fills: a hit changes nothing."""
        assert event.target is not None
        if verdict.resident:
            return
        lines.make_older(event.target, lines.capacity)
        if charged and event.target.identified and event.pays:
            lines.add(event.target)


def _age_by(
    rule: Rule, strict: Sequence[tuple[Rule, LinesBuilder]], ages: Sequence[int | None]
) -> int | None:
    """The age by the strict rule of the same kind: of a line that surely is there."""
    return next((age for (r, _), age in zip(strict, ages, strict=True) if r == rule), None)


class Residency(EventFlow[Known, MustVerdict]):
    """The fixed point for one cache.

    ``images`` says how symbols change along an edge. ``held`` are lines that are in the cache at
    the start.
    """

    def __init__(
        self,
        flow: FlowOrder,
        geometry: Geometry,
        policy: Policy,
        events: Events,
        images: Callable[[int], Mapping[int, int]],
        held: Iterable[int] = (),
    ) -> None:
        self._geometry, self._images = geometry, images
        self._strict = strict_rules(policy, geometry.free_ways)
        self._paid = paid_rules(policy, geometry.free_ways)
        held = tuple(held)
        start = Known(
            tuple(self._held(held, rule) for rule in self._strict),
            tuple(self._held(held, rule) for rule in self._paid),
        )
        super().__init__(flow, events, start)

    def _held(self, lines: tuple[int, ...], rule: Rule) -> Lines:
        """The lines that are held from the start: any of them may be the next to go."""
        if rule.fills:
            return NO_LINES
        sets: dict[int, tuple[tuple[int, int], ...]] = {}
        for line in sorted(lines):
            at = self._geometry.index_set_of(line)
            sets[at] = (*sets.get(at, ()), (line, rule.capacity - 1))
        return Lines(sets, {})

    def after(self, state: Known, events: Sequence[Event]) -> tuple[Known, tuple[MustVerdict, ...]]:
        if not events:
            return state, ()
        step = MustStep(state, self._strict, self._paid, self._geometry)
        verdicts = tuple(map(step.apply, events))
        return step.build(), verdicts

    def along(self, edge: int, state: Known) -> Known:
        return state.renamed(edge, self._images)

    def join(self, node: int, a: Known, b: Known) -> Known:
        return a.join(b)

    def widen(self, node: int, old: Known, new: Known) -> Known:
        return old.join(new)  # ages only rise and spans only shrink, so chains are short

    def leq(self, a: Known, b: Known) -> bool:
        return a.covered_by(b)
