"""May analysis of one cache: lines that are surely absent always miss (AM).

From an unknown initial state, no line is known to be absent until an operation empties the cache,
or until enough other lines of its set have certainly been used (LRU) or filled (FIFO). The age of a
line is a lower bound on their number; at ``ways`` the line is gone (Ferdinand and Wilhelm,
"Efficient and precise cache behavior prediction for real-time systems", Real-Time Systems 17,
1999). The other policies may evict any line at any time, so only an empty cache proves absence.

Lines are physical here: two virtual addresses may mean one line, which is then present although no
access used the other address. An access whose physical address the platform does not fix may fill
any line of its set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cache.events import CacheEvent, CacheEvents, EventFlow, FlowOrder
from cache.geometry import CacheGeometry, CacheHierarchy
from cache.initial import InitialCache, InitialContentsKind
from cache.lines import AccessedLines
from cache.policy import ReplacementPolicy

__all__ = ["MayAnalysis", "presence"]

PAGE = 4096  # bytes; translation preserves an address modulo this
GONE = 1 << 30  # the age of a line that was never present
ORDERED = (
    ReplacementPolicy.LRU,
    ReplacementPolicy.FIFO,
)  # with these, which line is evicted follows from the accesses


class MayState(NamedTuple):
    """The least age of every line: by line in ``ages``; else by set; else ``elsewhere``."""

    elsewhere: int
    sets: Mapping[int, int]
    ages: Mapping[int, int]

    def others(self, at: int) -> int:
        """The least age of the lines of set ``at`` that have none of their own."""
        return self.sets.get(at, self.elsewhere)

    def age(self, line: int, at: int) -> int:
        """The least age of ``line``, whose set is ``at``."""
        known = self.ages.get(line)
        return self.others(at) if known is None else known


ANYTHING = MayState(0, {}, {})
NOTHING = MayState(GONE, {}, {})


class MayAnalysis(EventFlow[MayState, bool]):
    """The fixed point for one cache; the verdict on an event is whether it surely misses.

    At the start only the lines ``held`` are there; None: any line may be.
    """

    def __init__(
        self,
        flow: FlowOrder,
        hierarchy: CacheHierarchy,
        geometry: CacheGeometry,
        events: CacheEvents,
        held: Iterable[int] | None,
    ) -> None:
        self._geometry = geometry
        self._policy, self._memory = hierarchy.policy, hierarchy.memory
        ordered = self._policy in ORDERED and not geometry.locked_ways
        self._ways = geometry.ways if ordered else GONE  # at which age a line is gone
        self._physical: dict[int, int | None] = {}
        start = ANYTHING
        if held is not None:
            start = self._done(NOTHING, CacheEvent(AccessedLines(tuple(held))))
        super().__init__(flow, events, start)

    def after(
        self, state: MayState, events: Sequence[CacheEvent]
    ) -> tuple[MayState, tuple[bool, ...]]:
        verdicts = []
        for event in events:
            verdicts.append(event.certain and self._absent(state, event))
            state = self._done(state, event)
        return state, tuple(verdicts)

    def along(self, edge: int, state: MayState) -> MayState:
        return state

    def _absent(self, state: MayState, event: CacheEvent) -> bool:
        """Whether none of the lines that ``event`` may access is there."""
        lines = self._lines(event.target)
        return lines is not None and all(self._gone(state, line) for line in lines)

    def _done(self, state: MayState, event: CacheEvent) -> MayState:
        """The lines that may be present after ``event``."""
        if event.target is None:
            if event.forget:
                return NOTHING if event.empties else ANYTHING
            return self._younger(state, None) if event.drop else state
        after = self._accessed(state, event, event.target)
        # A line that leaves makes room for others without an eviction.
        return self._younger(after, self._sets(event.target)) if event.vacates else after

    def _accessed(self, state: MayState, event: CacheEvent, target: AccessedLines) -> MayState:
        """The lines that may be present after an access that drops none."""
        lines = self._lines(target)
        if lines is None:
            return self._unknown(state, event)
        if len(lines) == 1 and event.certain:
            return self._used(state, lines[0], store=event.store)
        there = (n for n in lines if not (event.store and self._gone(state, n)))
        return self._young(state, state.sets, dict(state.ages), there)

    def _young(
        self, state: MayState, sets: Mapping[int, int], ages: dict[int, int], lines: Iterable[int]
    ) -> MayState:
        """After ``lines`` may be there, as young as can be; ages that say nothing are left out."""
        for line in lines:
            at = self._geometry.set_of(line)
            if sets.get(at, state.elsewhere):
                ages[line] = 0
            else:
                ages.pop(line, None)
        return MayState(state.elsewhere, sets, ages)

    def _used(self, state: MayState, line: int, *, store: bool) -> MayState:
        at = self._geometry.set_of(line)
        age = state.age(line, at)
        gone = age >= self._ways
        if store and (gone or self._policy is not ReplacementPolicy.LRU):
            return state
        ages, sets = dict(state.ages), state.sets
        # A store that hits is a use, but may miss; FIFO counts fills, and this may be none.
        if not store and (self._policy is ReplacementPolicy.LRU or (gone and self._ways < GONE)):
            most = min(age, self._ways - 1)  # a line no older than this one was gets older
            for other, known in state.ages.items():
                if self._geometry.set_of(other) == at and known <= most:
                    ages[other] = known + 1
            if state.others(at) <= most:
                sets = {**sets, at: state.others(at) + 1}
        return self._young(state, sets, ages, (line,))

    def _unknown(self, state: MayState, event: CacheEvent) -> MayState:
        """After an access to a line of which at most the set is known."""
        assert event.target is not None
        sets = self._sets(event.target)
        if event.store:  # it fills nothing
            return self._younger(state, sets)
        if sets is None:
            return ANYTHING
        ages = {n: a for n, a in state.ages.items() if self._geometry.set_of(n) not in sets}
        return MayState(state.elsewhere, {**state.sets, **dict.fromkeys(sets, 0)}, ages)

    def _younger(self, state: MayState, only: frozenset[int] | None) -> MayState:
        """After lines that are there, of the sets ``only`` (None: of all), may be younger."""

        def least(age: int, at: int) -> int:
            return 0 if age < self._ways and (only is None or at in only) else age

        sets = {at: least(a, at) for at, a in state.sets.items()}
        ages = {n: least(a, self._geometry.set_of(n)) for n, a in state.ages.items()}
        return MayState(state.elsewhere, sets, ages)

    def _gone(self, state: MayState, line: int) -> bool:
        return state.age(line, self._geometry.set_of(line)) >= self._ways

    def _lines(self, target: AccessedLines | None) -> tuple[int, ...] | None:
        """The physical lines of a target; None if they are not all known."""
        if target is None or target.lines is None:
            return None
        found = tuple(self._translated(line) for line in target.lines)
        known = tuple(line for line in found if line is not None)
        return known if len(known) == len(found) else None

    def _translated(self, line: int) -> int | None:
        if line not in self._physical:
            size = self._geometry.line_bytes
            physical = self._memory.physical(line * size)
            fixed = physical is not None and self._memory.fixed(line * size)
            self._physical[line] = physical // size if fixed and physical is not None else None
        return self._physical[line]

    def _sets(self, target: AccessedLines) -> frozenset[int] | None:
        """The sets that may hold a target, if the page offset determines them; else None."""
        geometry = self._geometry
        if target.lines is None or geometry.sets * geometry.line_bytes > PAGE:
            return None
        return frozenset(map(geometry.set_of, target.lines))

    def join(self, node: int, a: MayState, b: MayState) -> MayState:
        if a is b or a == b:
            return a
        if a == ANYTHING or b == ANYTHING:
            return ANYTHING
        set_of = self._geometry.set_of
        sets = {at: min(a.others(at), b.others(at)) for at in a.sets.keys() | b.sets.keys()}
        ages = {
            n: min(a.age(n, set_of(n)), b.age(n, set_of(n))) for n in a.ages.keys() | b.ages.keys()
        }
        return MayState(min(a.elsewhere, b.elsewhere), sets, ages)

    def widen(self, node: int, old: MayState, new: MayState) -> MayState:
        return self.join(node, old, new)  # ages only fall, of as many lines as there are

    def leq(self, a: MayState, b: MayState) -> bool:
        return self.join(0, a, b) == b


class NoMayAnalysis:
    """Where any line may be, no access surely misses."""

    def inside(self, node: int, events: Sequence[CacheEvent]) -> tuple[bool, ...]:
        """The verdicts on ``events``, as by ``MayAnalysis``."""
        return (False,) * len(events)

    past = inside


def presence(
    flow: FlowOrder,
    hierarchy: CacheHierarchy,
    geometry: CacheGeometry,
    initial: InitialCache,
    events: CacheEvents,
) -> MayAnalysis | NoMayAnalysis:
    """The events that surely miss. Without any candidate nothing is computed."""
    cold = initial.contents is InitialContentsKind.COLD and not geometry.locked_ways
    emptied = any(event.empties for of_node in events.nodes for event in of_node)
    if not (cold or emptied or hierarchy.policy in ORDERED):
        return NoMayAnalysis()
    return MayAnalysis(flow, hierarchy, geometry, events, initial.held.lines() if cold else None)
