"""Must analysis of one cache over a supergraph: its lines, and its credited misses.

Two kinds of knowledge are carried in parallel, each by the rules of the policy:

    strict    the line is in the cache;
    credited  the line is in the cache, or a charged miss of it did not happen.

    Claim: along every path, misses <= charges.
    Potential: the credited lines that are not in the cache, one miss each. An access that is
    charged either misses, or its charge is left as potential. An access to a credited line is not
    charged: if it misses, the potential of the line pays, and the line is resident afterwards.
    Joins, evictions by known accesses, and loss of information only lower the potential.

Loads through one unknown word share the charges of their lines (``cache.groups``). They surely
execute, so that their lines are in the cache, and the credited lines have no potential of theirs.

A credited line need not be resident, so its use may age all other lines, however young it is
itself. First misses are charged where their loop is entered; that charge counts as the credit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import NamedTuple

from cache.events import CacheEvent, CacheEvents, EventFlow, FlowOrder
from cache.geometry import CacheGeometry
from cache.groups import NO_GROUPS, AccessGroup, Groups, common_groups, most_lines, renamed
from cache.lines import NO_LINES, AccessedLines, CacheLines, CacheLinesBuilder, Entry
from cache.policy import AgingRule, ReplacementPolicy, credited_rules, strict_rules

__all__ = ["MustAnalysis", "MustState", "MustTransfer", "MustVerdict"]


class MustVerdict(NamedTuple):
    """The verdict on an access: resident, or else credited by an earlier charge.

    ``misses``: the most misses of a load that its group leaves to charge; None: one for each line.
    """

    resident: bool
    credited: bool
    misses: int | None = None


RESIDENT, CREDITED, ABSENT = (
    MustVerdict(resident=True, credited=False),
    MustVerdict(resident=False, credited=True),
    MustVerdict(resident=False, credited=False),
)


class MustState(NamedTuple):
    """The known lines at one point: one ``CacheLines`` per rule, strict or credited; groups."""

    strict: tuple[CacheLines, ...]
    credited: tuple[CacheLines, ...]
    groups: Groups = NO_GROUPS

    def join(self, other: MustState) -> MustState:
        """The weaker of both states."""
        if self is other:
            return self
        return MustState(
            _joined(self.strict, other.strict),
            _joined(self.credited, other.credited),
            common_groups(self.groups, other.groups),
        )

    def covered_by(self, other: MustState) -> bool:
        """Whether this state is at least as precise as ``other``."""
        if self is other:
            return True
        ours, theirs = (*self.strict, *self.credited), (*other.strict, *other.credited)
        return common_groups(self.groups, other.groups) == other.groups and all(
            x.covered_by(y) for x, y in zip(ours, theirs, strict=True)
        )

    def renamed(self, edge: int, aliases: Callable[[int], Mapping[int, int]]) -> MustState:
        """The state after ``edge``, along which symbols change."""
        if not any(lines.symbols for lines in (*self.strict, *self.credited)):
            return self
        image = aliases(edge)
        return MustState(
            tuple(lines.renamed(image) for lines in self.strict),
            tuple(lines.renamed(image) for lines in self.credited),
            renamed(self.groups, image) if self.groups else self.groups,
        )


def _joined(a: tuple[CacheLines, ...], b: tuple[CacheLines, ...]) -> tuple[CacheLines, ...]:
    return tuple(x.join(y) for x, y in zip(a, b, strict=True))


class MustTransfer:
    """A working copy of ``MustState`` while events are applied one after another."""

    def __init__(
        self,
        known: MustState,
        strict: Sequence[AgingRule],
        credited: Sequence[AgingRule],
        geometry: CacheGeometry,
    ) -> None:
        size, count = geometry.line_bytes, geometry.index_sets
        self._known, self._groups, self._line_bytes = known, known.groups, size
        self.shared = False  # whether loads of a group left others fewer misses to charge
        self._strict = [
            (rule, CacheLinesBuilder(lines, size, count, rule.capacity))
            for rule, lines in zip(strict, known.strict, strict=True)
        ]
        self._credited = [
            (rule, CacheLinesBuilder(lines, size, count, rule.capacity))
            for rule, lines in zip(credited, known.credited, strict=True)
        ]

    def build(self) -> MustState:
        """The state after the events so far."""
        strict = tuple(lines.build() for _, lines in self._strict)
        credited = tuple(lines.build() for _, lines in self._credited)
        known = self._known
        unchanged = all(map(is_, (*strict, *credited), (*known.strict, *known.credited)))
        unchanged = unchanged and self._groups == known.groups
        return known if unchanged else MustState(strict, credited, self._groups)

    def apply(self, event: CacheEvent) -> MustVerdict:
        """Apply ``event``; returns the verdict on the state before it."""
        verdict = self._apply(event)
        if event.vacates and event.target is not None:
            for _, lines in (*self._strict, *self._credited):
                lines.forget_sets(event.target)
        if self._groups:
            present = {s: group for s, group in self._groups.items() if self._holds(s, group)}
            if len(present) < len(self._groups):
                self._groups = present or NO_GROUPS
        return verdict

    def _holds(self, symbol: int, group: AccessGroup) -> bool:
        """Whether every block of a group is in the cache."""
        target = AccessedLines(None, symbol, group.blocks)
        return any(lines.age(target) is not None for _, lines in self._strict)

    def _grouped(self, event: CacheEvent, verdict: MustVerdict) -> MustVerdict:
        """The verdict with the misses that the group leaves to charge; adds the load to it."""
        target = event.target
        if event.group is None or event.first or target is None or target.symbol is None:
            return verdict
        if verdict.resident or verdict.credited:
            return verdict
        known = self._groups.get(target.symbol)
        if known is None or known.words != event.group:
            known = AccessGroup(words=event.group)
        group = known.with_blocks(target.spans, self._line_bytes)
        if group is None:
            return verdict
        self._groups = {**self._groups, target.symbol: group}
        misses = group.charged - known.charged
        self.shared = self.shared or misses < most_lines(target.spans, self._line_bytes)
        return verdict._replace(misses=misses)

    def _apply(self, event: CacheEvent) -> MustVerdict:
        target = event.target
        if target is None:
            self._operate(event)
            return ABSENT
        ages = [lines.age(target) for _, lines in self._strict]
        verdict = self._grouped(event, self._verdict(target, ages))
        for (rule, lines), age in zip(self._strict, ages, strict=True):
            if event.store:
                self._store(rule, lines, event, age)
                continue
            lines.make_older(target, rule.capacity if age is None else age)
            if event.certain and target.identified:
                lines.add(target)
        charged = not (verdict.resident or verdict.credited or event.first)
        if charged and verdict.misses is not None:
            charged = verdict.misses == most_lines(target.spans, self._line_bytes)
        for rule, lines in self._credited:
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

    def _verdict(self, target: AccessedLines, ages: Sequence[int | None]) -> MustVerdict:
        """The verdict on ``target`` before its access."""
        if any(age is not None for age in ages):
            return RESIDENT
        if target.identified and any(lines.age(target) is not None for _, lines in self._credited):
            return CREDITED
        return ABSENT

    def _operate(self, event: CacheEvent) -> None:
        for _, lines in self._strict:
            if event.forget or event.drop:
                lines.forget()
            if event.rename:
                lines.forget_symbols()
        for _, lines in self._credited:
            if event.forget:
                lines.forget()
            if event.rename:
                lines.forget_symbols()

    @staticmethod
    def _store(
        rule: AgingRule, lines: CacheLinesBuilder, event: CacheEvent, age: int | None
    ) -> None:
        """A store that hits is a use, where uses are ordered; it fills nothing."""
        assert event.target is not None
        if not rule.stores:
            return
        lines.make_older(event.target, rule.capacity if age is None else age)
        if age is not None and event.certain and event.target.identified:
            lines.add(event.target)

    @staticmethod
    def _fill(
        lines: CacheLinesBuilder, event: CacheEvent, verdict: MustVerdict, *, charged: bool
    ) -> None:
        """Ages count fills: a hit changes nothing."""
        assert event.target is not None
        if verdict.resident:
            return
        lines.make_older(event.target, lines.capacity)
        if charged and event.target.identified and event.pays:
            lines.add(event.target)


def _age_by(
    rule: AgingRule,
    strict: Sequence[tuple[AgingRule, CacheLinesBuilder]],
    ages: Sequence[int | None],
) -> int | None:
    """The age by the strict rule of the same kind; None if the line is not surely present."""
    return next((age for (r, _), age in zip(strict, ages, strict=True) if r == rule), None)


Verdicts = tuple[MustVerdict, ...]
Entries = tuple[Entry, ...]  # of one set
# Per rule, the sets with other entries than before, or none; and the verdicts.
SetChanges = tuple[tuple[tuple[int, Entries | None], ...], ...]


class SetEffects:
    """Effects of events on accesses to numbered lines, each computed once per cache contents.

    Such events read and change the entries of their sets only. So their effect in one context is
    the effect in every context with the same entries there.
    """

    def __init__(self, count: int) -> None:
        self._count = count  # of sets
        self._sets: dict[tuple[CacheEvent, ...], _KnownEffects | None] = {}

    def of(self, events: Sequence[CacheEvent]) -> _KnownEffects | None:
        """The known effects of ``events``; None if they may change other sets."""
        key = tuple(events)
        try:
            return self._sets[key]
        except KeyError:
            found = self._sets[key] = self._made(key)
            return found

    def _made(self, events: tuple[CacheEvent, ...]) -> _KnownEffects | None:
        targets = [event.target for event in events]
        lines = [t.lines for t in targets if t is not None and t.symbol is None]
        if len(lines) < len(events) or None in lines:
            return None
        sets = {line % self._count for of in lines if of is not None for line in of}
        return _KnownEffects(tuple(sorted(sets)))


class _KnownEffects:
    """The effects of some events on ``sets``, by the entries of these before."""

    def __init__(self, sets: tuple[int, ...]) -> None:
        self.sets = sets
        self._known: dict[tuple[Entries | None, ...], tuple[SetChanges, Verdicts]] = {}

    def apply(
        self, state: MustState, plain: Callable[[], tuple[MustState, Verdicts]]
    ) -> tuple[MustState, Verdicts]:
        """The state after the events and the verdicts; ``plain`` computes them."""
        before = (*state.strict, *state.credited)
        key = tuple([lines.sets.get(at) for lines in before for at in self.sets])
        known = self._known.get(key)
        if known is None:
            after, verdicts = plain()
            ends = (*after.strict, *after.credited)
            changes = tuple(
                tuple(
                    (at, new) for at in self.sets if (new := end.sets.get(at)) != start.sets.get(at)
                )
                for start, end in zip(before, ends, strict=True)
            )
            self._known[key] = changes, verdicts
            return after, verdicts
        changes, verdicts = known
        if not any(changes):
            return state, verdicts
        lines = tuple(map(_changed, before, changes))
        first = len(state.strict)
        return MustState(lines[:first], lines[first:], state.groups), verdicts


def _changed(lines: CacheLines, changes: Sequence[tuple[int, Entries | None]]) -> CacheLines:
    """``lines`` with other entries in some sets."""
    if not changes:
        return lines
    sets = dict(lines.sets)
    for at, entries in changes:
        if entries is None:
            del sets[at]
        else:
            sets[at] = entries
    return CacheLines(sets, lines.symbols)


class MustAnalysis(EventFlow[MustState, MustVerdict]):
    """The fixed point for one cache.

    ``aliases`` gives the renaming of symbols along an edge. ``held`` are the lines in the cache at
    the start.
    """

    def __init__(
        self,
        flow: FlowOrder,
        geometry: CacheGeometry,
        policy: ReplacementPolicy,
        events: CacheEvents,
        aliases: Callable[[int], Mapping[int, int]],
        held: Iterable[int] = (),
    ) -> None:
        self._geometry, self._aliases = geometry, aliases
        self.shared = False  # whether charges of a group are shared anywhere
        self._strict = strict_rules(policy, geometry.free_ways)
        self._credited = credited_rules(policy, geometry.free_ways)
        held = tuple(held)
        start = MustState(
            tuple(self._held(held, rule) for rule in self._strict),
            tuple(self._held(held, rule) for rule in self._credited),
        )
        self._effects = SetEffects(geometry.index_sets)
        super().__init__(flow, events, start)

    def _held(self, lines: tuple[int, ...], rule: AgingRule) -> CacheLines:
        """The lines held from the start, each at the oldest age: any may be evicted next."""
        if rule.fills:
            return NO_LINES
        sets: dict[int, tuple[tuple[int, int], ...]] = {}
        for line in sorted(lines):
            at = self._geometry.index_set_of(line)
            sets[at] = (*sets.get(at, ()), (line, rule.capacity - 1))
        return CacheLines(sets, {})

    def after(
        self, state: MustState, events: Sequence[CacheEvent]
    ) -> tuple[MustState, tuple[MustVerdict, ...]]:
        if not events:
            return state, ()
        numbered = not state.groups and not any(
            lines.symbols for lines in (*state.strict, *state.credited)
        )
        known = self._effects.of(events) if numbered else None
        if known is None:
            return self.applied(state, events)
        return known.apply(state, partial(self.applied, state, events))

    def applied(self, state: MustState, events: Sequence[CacheEvent]) -> tuple[MustState, Verdicts]:
        """As ``after``, without known effects."""
        step = MustTransfer(state, self._strict, self._credited, self._geometry)
        verdicts = tuple(map(step.apply, events))
        self.shared = self.shared or step.shared
        return step.build(), verdicts

    def along(self, edge: int, state: MustState) -> MustState:
        return state.renamed(edge, self._aliases)

    def join(self, node: int, a: MustState, b: MustState) -> MustState:
        return a.join(b)

    def widen(self, node: int, old: MustState, new: MustState) -> MustState:
        return old.join(new)  # ages only rise and spans only shrink, so chains are short

    def leq(self, a: MustState, b: MustState) -> bool:
        return a.covered_by(b)
