"""Classification of data accesses in L1, in every context.

A load of unknown address may fill any set, a load of partly known address the sets that it can
touch. A store never changes the resident lines (rule 6); with LRU it may change their order. Loads
whose unknown addresses differ by a known constant find each other's lines (rule 13), and so do the
accesses of one load in successive iterations (``cache.streams``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cache.contested import LineFill, contested_lines
from cache.data_accesses import DataAccess, DataAccessModel
from cache.events import UNSEEN, CacheEvent, CacheEvents, FlowOrder
from cache.geometry import CacheHierarchy
from cache.instruction_cache import AddressStrides
from cache.locked import NOT_LOCKED, LockedLines
from cache.maintenance import CacheOperation, cache_operation
from cache.may import presence
from cache.must import MustAnalysis, MustVerdict
from cache.persistence import LoopScopes, persistent_lines, scope_of
from cache.policy import ReplacementPolicy
from cache.ranges import RangeCollector, range_scope
from cache.reference import (
    AT_HOME,
    UNCACHED,
    AccessStream,
    HitClass,
    PersistentRange,
    Reference,
    ReferenceKind,
)
from cache.streams import LoadEvents, find_streams
from cache.unlocked import unlocked_nodes, unlocks_data
from quoll.arm.insn import AccessKind
from quoll.cfg.cfg import Block
from quoll.image.memory_map import Cacheability
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import SymbolicAddress

__all__ = ["DataAddresses", "DataClasses", "DataClassifier"]

BEFORE_ANYTHING, LOCKED = (
    MustVerdict(resident=False, credited=False),
    MustVerdict(resident=True, credited=False),
)

# The core decides whether VFP and NEON accesses fill L1, and how their stores change its lines
# (Cortex-A8: L1NEON of the auxiliary control register). So each such access is charged, and nothing
# is known of L1 after it.
BY_VECTOR_UNIT = CacheEvent(None, forget=True)


class DataAddresses(AddressStrides, Protocol):
    """The results of the value analysis about data addresses."""

    def access(self, node: int, insn: int) -> ValueSet | None:
        """Addresses of the first byte that instruction ``insn`` of ``node`` may access.

        None: any address.
        """

    def origin(self, node: int, insn: int) -> SymbolicAddress | None:
        """The same address relative to a symbol; None for a constant or an unknown relation."""

    def aliases(self, edge: int) -> Mapping[int, int]:
        """For each symbol at the target of ``edge`` its equal term at the source."""


@dataclass(frozen=True, slots=True)
class DataClasses:
    """References per node, first misses per loop, and ranges of persistent lines."""

    nodes: tuple[tuple[Reference, ...], ...]
    loops: dict[int, tuple[Reference, ...]]
    ranges: tuple[PersistentRange, ...]


class _AccessStep(NamedTuple):
    """One line of an access with its event, or an operation on the cache."""

    insn: int
    access: DataAccess | None
    scope: int | None  # the loop in which it misses at most once
    event: CacheEvent | None
    operation: CacheOperation | None = None
    held: bool = False  # locked: it hits, and changes nothing
    stream: AccessStream | None = None
    ranged: int | None = None  # the loop in which each of its lines misses at most once
    contested: int | None = None  # the loop in which evictions of its lines are charged


def _events(steps: Sequence[Sequence[_AccessStep]]) -> list[list[CacheEvent]]:
    return [[step.event for step in of_node if step.event] for of_node in steps]


class DataClassifier:
    """Classify every load and store of ``graph``."""

    def __init__(
        self,
        graph: Supergraph,
        flow: FlowOrder,
        scopes: LoopScopes,
        hierarchy: CacheHierarchy,
        addresses: DataAddresses,
    ) -> None:
        self.graph, self.flow, self.scopes = graph, flow, scopes
        self.hierarchy, self.addresses = hierarchy, addresses
        self.policy = hierarchy.policy
        self.model = DataAccessModel(hierarchy)
        locked = hierarchy.locked_d
        self.unlocked = unlocked_nodes(graph, unlocks_data) if locked else frozenset[int]()
        self.of_block: dict[int, list[int]] = {}  # block -> instructions of interest
        self.interned: dict[tuple[object, ...], Reference] = {}
        self.missing: dict[int, dict[object, Reference]] = {}
        self.ranges = RangeCollector(graph, scopes, hierarchy)
        self.contested: dict[int, frozenset[int]] = {}  # by loop
        self.watched: frozenset[int] = frozenset()  # nodes of the loops with contested lines
        self.fills: dict[int, list[LineFill]] = {}

    def run(self) -> DataClasses:
        accesses = [self._accesses(i, node.block) for i, node in enumerate(self.graph.nodes)]
        touched = [self._touched(found) for found in accesses]
        vacated = {n: found for n, of in enumerate(accesses) if (found := list(_vacated(of)))}
        geometry = self.hierarchy.l1d
        persistent = [
            self._persistent(self.scopes.executed[loop.index], touched, vacated)
            if loop.index in self.scopes.eligible
            else frozenset[int]()
            for loop in self.scopes.loops
        ]
        self._contest(accesses, persistent)
        steps = [
            [self._step(i, what, self.scopes.around[n], persistent) for i, what in found]
            for n, found in enumerate(accesses)
        ]
        along = [self._along(e) for e in range(len(self.graph.edges))]
        residency = self._residency(steps, along)
        streams = self._streams(steps, along, residency)
        if streams:
            for (node, position), stream in streams.items():
                steps[node][position] = _as_stream(steps[node][position], stream)
            if residency.shared or self.policy is ReplacementPolicy.FIFO:
                residency = self._residency(steps, along)  # groups and fills count charges
        events = CacheEvents(_events(steps), along)
        missing = presence(self.flow, self.hierarchy, geometry, self.hierarchy.initial_d, events)
        nodes = tuple(
            self._classify(n, of, residency.inside(n, here), missing.inside(n, here))
            for n, (of, here) in enumerate(zip(steps, events.nodes, strict=True))
        )
        loops_out = {loop: tuple(lines.values()) for loop, lines in self.missing.items()}
        return DataClasses(nodes, loops_out, self.ranges.build(self.missing, self.fills))

    def _persistent(
        self,
        inside: frozenset[int],
        touched: Sequence[frozenset[int] | None],
        vacated: Mapping[int, Sequence[tuple[int, ...] | None]],
    ) -> frozenset[int]:
        """The persistent lines of a loop; none that an access may drop."""
        geometry = self.hierarchy.l1d
        dropped = [lines for n in inside & vacated.keys() for lines in vacated[n]]
        if None in dropped:
            return frozenset()
        ways = self.policy.persistent(geometry.free_ways)
        found = persistent_lines((touched[n] for n in inside), geometry.index_sets, ways)
        return found.difference(*(lines for lines in dropped if lines is not None))

    def _residency(
        self, steps: Sequence[Sequence[_AccessStep]], along: Sequence[tuple[CacheEvent, ...]]
    ) -> MustAnalysis:
        return MustAnalysis(
            self.flow,
            self.hierarchy.l1d,
            self.policy,
            CacheEvents(_events(steps), along),
            self.addresses.aliases,
            self.hierarchy.initial_d.held.lines(),
        )

    def _streams(
        self,
        steps: Sequence[Sequence[_AccessStep]],
        along: Sequence[tuple[CacheEvent, ...]],
        residency: MustAnalysis,
    ) -> dict[tuple[int, int], AccessStream]:
        """Loads that miss once per line, by node and position among its steps."""
        around = self.scopes.around
        looping = {
            loop for n, of in enumerate(steps) if any(map(_may_be_stream, of)) for loop in around[n]
        }
        filling: dict[int, list[CacheEvent | None]] = {}
        candidates: dict[tuple[int, int], tuple[CacheEvent, int]] = {}
        for n in {n for loop in looping for n in self.scopes.executed[loop]}:
            verdicts = residency.inside(n, [step.event for step in steps[n] if step.event])
            if verdicts is None:
                continue
            events = filling.setdefault(n, [])
            alone = Counter(step.insn for step in steps[n])
            told = iter(verdicts)
            for step in steps[n]:
                hits = step.event is not None and next(told).resident
                unchanged = hits and step.event is not None and not step.event.vacates
                events.append(None if unchanged else step.event)
                if step.event and not hits and alone[step.insn] == 1 and _may_be_stream(step):
                    spans = step.event.target.spans if step.event.target else ()
                    candidates[n, len(events) - 1] = step.event, spans[-1][1] - spans[0][0]
        loads = LoadEvents(filling, along, candidates, self.addresses.aliases)
        return find_streams(self.graph, self.scopes, self.hierarchy.l1d, loads)

    def _locked(self, index: int) -> LockedLines:
        """The lines that are locked when a node is executed."""
        return NOT_LOCKED if index in self.unlocked else self.hierarchy.locked_d

    def _holds(self, locked: LockedLines, access: DataAccess) -> bool:
        """Whether every line that an access may touch is among the locked ones."""
        lines = access.candidates
        if lines is None or access.memory is not Cacheability.ALWAYS:
            return False
        size = self.hierarchy.l1d.line_bytes
        fixed = self.hierarchy.memory.fixed
        return all(locked.holds_line(n) and fixed(n * size) for n in lines)

    def _along(self, edge: int) -> tuple[CacheEvent, ...]:
        """The events of an edge, besides the renaming of symbols."""
        return (UNSEEN,) if self.graph.passed(edge) else ()

    def _accesses(self, index: int, block: Block) -> list[tuple[int, DataAccess | CacheOperation]]:
        """The lines accessed by a node, and the operations in it, in program order."""
        of_interest = self.of_block.get(id(block))
        if of_interest is None:
            of_interest = self.of_block[id(block)] = [
                i
                for i, insn in enumerate(block.insns)
                if insn.memory is not None or cache_operation(insn).touches_data
            ]
        found: list[tuple[int, DataAccess | CacheOperation]] = []
        locked = self._locked(index)
        for i in of_interest:
            insn = block.insns[i]
            if insn.memory is None:
                found.append((i, cache_operation(insn)))
                continue
            value, origin = self.addresses.access(index, i), self.addresses.origin(index, i)
            accesses = self.model.accesses(insn, value, origin)
            if locked:
                accesses = tuple(a._replace(held=self._holds(locked, a)) for a in accesses)
            found += [(i, access) for access in accesses]
        return found

    def _touched(
        self, found: Sequence[tuple[int, DataAccess | CacheOperation]]
    ) -> frozenset[int] | None:
        """Lines that may be filled (LRU: or used); None: any line, or all lines are forgotten."""
        lines: set[int] = set()
        for _, what in found:
            if isinstance(what, CacheOperation):
                if what.forget_d:
                    return None
                continue
            if what.vector:
                return None
            geometry = self.hierarchy.l1d
            fills = what.access is not AccessKind.STORE or geometry.write_allocate
            fills = fills or self.policy is ReplacementPolicy.LRU
            if not fills or what.memory in UNCACHED or what.held:
                continue
            if what.candidates is None:
                return None
            lines.update(what.candidates)
        return frozenset(lines)

    def _contest(
        self,
        accesses: Sequence[Sequence[tuple[int, DataAccess | CacheOperation]]],
        persistent: Sequence[frozenset[int]],
    ) -> None:
        """Find the contested lines of each loop (``cache.contested``)."""
        if self.policy.persistent(self.hierarchy.l1d.free_ways) > 1:
            return  # more lines of a set are persistent
        for loop in self.scopes.eligible:
            inside = [what for n in self.scopes.executed[loop] for _, what in accesses[n]]
            found = [what for what in inside if isinstance(what, DataAccess)]
            forgets = any(isinstance(what, CacheOperation) and what.forget_d for what in inside)
            if forgets or any(what.vector for what in found):
                continue
            wanted = [
                what.candidates
                for what in found
                if what.candidates is not None
                and not persistent[loop].issuperset(what.candidates)
                and self._fills_cached(what)
            ]
            lines = contested_lines(found, wanted, self.hierarchy.l1d) if wanted else None
            if lines:
                self.contested[loop] = lines
        self.watched = frozenset(n for loop in self.contested for n in self.scopes.executed[loop])

    def _step(
        self,
        insn: int,
        effect: DataAccess | CacheOperation,
        loops: tuple[int, ...],
        persistent: Sequence[frozenset[int]],
    ) -> _AccessStep:
        if isinstance(effect, CacheOperation):
            changes = effect.forget_d or effect.retranslates
            empties = effect.forget_d and effect.empties
            operation = CacheEvent(None, forget=effect.forget_d, empties=empties, rename=True)
            event = operation if changes else None
            return _AccessStep(insn, None, None, event, effect)
        if effect.vector and effect.memory not in UNCACHED:
            return _AccessStep(insn, effect, None, BY_VECTOR_UNIT)
        ranged = self._ranged(effect, loops, persistent)
        if effect.memory in UNCACHED or effect.repeated:
            return _AccessStep(insn, effect, None, None, ranged=ranged)
        if effect.held:
            return _AccessStep(insn, effect, None, None, held=True)
        scope = None
        alone = effect.candidates is not None and len(effect.candidates) == 1 and effect.fixed
        if alone and effect.candidates is not None and not effect.may_bypass:
            scope = scope_of(effect.candidates[0], loops, persistent)
        contested = None
        if scope is None and ranged is None:
            contested = self._contested(effect, loops)
        store = effect.access is AccessKind.STORE and not self.hierarchy.l1d.write_allocate
        reads = (
            effect.access in (AccessKind.LOAD, AccessKind.PRELOAD, AccessKind.STORE) and not store
        )
        known = effect.fixed or effect.symbol is not None
        event = CacheEvent(
            effect.target,
            certain=effect.certain or (store and effect.executed),
            pays=reads and known and effect.memory is Cacheability.ALWAYS and not effect.may_bypass,
            first=(scope, ranged, contested) != (None, None, None) and not store,
            store=store,
            vacates=effect.may_bypass,
            group=self._group(effect),
        )
        return _AccessStep(insn, effect, scope, event, ranged=ranged, contested=contested)

    def _group(self, access: DataAccess) -> int | None:
        """``CacheEvent.group`` of a load: charges of lines that L2 surely holds are less."""
        if access.access is not AccessKind.LOAD or access.symbol is None or not access.certain:
            return None
        if self.hierarchy.beyond_l1(access.low, access.end) is HitClass.AH:
            return None
        if access.memory is Cacheability.ALWAYS:
            return 0
        return access.words if access.alone else None

    def _ranged(
        self, access: DataAccess, loops: tuple[int, ...], persistent: Sequence[frozenset[int]]
    ) -> int | None:
        """The loop at whose entry all lines of a range can be charged; None if there is none."""
        lines = access.candidates
        if lines is None or len(lines) < 2:
            return None
        loop = range_scope(lines, loops, persistent)
        return loop if loop is not None and self._fills_cached(access) else None

    def _contested(self, access: DataAccess, loops: tuple[int, ...]) -> int | None:
        """The innermost loop in which all lines of an access are contested."""
        if access.candidates is None or not self._fills_cached(access):
            return None
        within = (n for n in reversed(loops) if n in self.contested)
        return next((n for n in within if self.contested[n].issuperset(access.candidates)), None)

    def _fills_cached(self, access: DataAccess) -> bool:
        """Whether an access that misses fills its line, in cached memory of fixed translation."""
        lines, size = access.candidates, self.hierarchy.l1d.line_bytes
        kinds = (AccessKind.LOAD, AccessKind.PRELOAD)
        fills = access.access in kinds or self.hierarchy.l1d.write_allocate
        if lines is None or access.may_bypass or not fills or access.held:
            return False
        fixed = self.hierarchy.memory.fixed
        return access.memory is Cacheability.ALWAYS and all(fixed(n * size) for n in lines)

    def _classify(
        self,
        node: int,
        steps: Sequence[_AccessStep],
        verdicts: Sequence[MustVerdict] | None,
        absences: Sequence[bool] | None,
    ) -> tuple[Reference, ...]:
        """The references of a node, by the verdicts on their events."""
        if verdicts is None or absences is None:
            return ()
        found: list[Reference] = []
        told = zip(verdicts, absences, strict=True)
        verdict, absent = BEFORE_ANYTHING, False
        for step in steps:
            if step.event is not None:
                verdict, absent = next(told)
            elif step.held:
                verdict, absent = LOCKED, False
            if step.access is not None:
                if step.access.memory in UNCACHED or step.access.may_bypass:
                    verdict = BEFORE_ANYTHING
                missed = absent and not step.access.repeated
                references = self._references(step, step.access, verdict, absent=missed)
                if verdict.misses:
                    verdict = verdict._replace(misses=verdict.misses - 1)
                references[0] = self._in_range(node, step, references[0])
                if node in self.watched:
                    fill = LineFill(step.access, references[0])
                    self.fills.setdefault(node, []).append(fill)
                found.extend(references)
                self._charge_once(node, step.access, references[0])
            elif step.operation is not None and step.operation.lines != 0:
                found.append(self._write_back(step.insn, step.operation.lines))
        return tuple(found)

    def _references(
        self, step: _AccessStep, access: DataAccess, verdict: MustVerdict, *, absent: bool
    ) -> list[Reference]:
        """The load and the store of an access; a store that fills its line counts as a load."""
        insn, allocates = step.insn, self.hierarchy.l1d.write_allocate
        found: list[Reference] = []
        if access.access is not AccessKind.STORE or allocates:
            l1, stream, credited = HitClass.NC, None, False
            if access.memory in UNCACHED:
                l1 = UNCACHED[access.memory]
            elif verdict.resident:
                l1 = HitClass.AH
            elif step.scope is not None:
                l1 = HitClass.FM
            elif verdict.misses == 0 or (verdict.credited and access.memory is Cacheability.ALWAYS):
                credited = True
            elif step.stream is not None:
                l1, stream = HitClass.PL, step.stream
            elif absent:
                l1 = HitClass.AM
            kind = ReferenceKind.STORE if access.access is AccessKind.STORE else ReferenceKind.LOAD
            found.append(
                self._reference(insn, kind, access, l1, step.scope, stream, credited=credited)
            )
        if access.access is AccessKind.SWAP or (
            access.access is AccessKind.STORE and not allocates
        ):
            l1 = UNCACHED.get(access.memory, HitClass.AM if absent else HitClass.NC)
            if (
                verdict.resident
                and access.access is AccessKind.STORE
                and access.memory not in UNCACHED
            ):
                l1 = HitClass.AH
            found.append(self._reference(insn, ReferenceKind.STORE, access, l1, None))
        return found

    def _reference(
        self,
        insn: int,
        kind: ReferenceKind,
        access: DataAccess,
        l1: HitClass,
        scope: int | None,
        stream: AccessStream | None = None,
        *,
        credited: bool = False,
    ) -> Reference:
        scope = scope if l1 is HitClass.FM else None
        key = (insn, kind, access, l1, scope, stream, credited)
        reference = self.interned.get(key)
        if reference is None:
            reference = self.interned[key] = Reference(
                insn=insn,
                kind=kind,
                low=access.low,
                high=access.high,
                words=access.words,
                cacheable=access.memory not in UNCACHED,
                l1=l1,
                l2=self.hierarchy.beyond_l1(access.low, access.end),
                uncached=access.memory not in AT_HOME
                or (access.memory is Cacheability.ALWAYS and access.may_bypass)
                or (access.vector and kind is ReferenceKind.STORE),
                scope=scope,
                stream=stream,
                credited=credited,
                symbolic=access.symbol is not None,
                vacates=access.memory not in UNCACHED and _vacates(access, kind),
            )
        return reference

    def _in_range(self, node: int, step: _AccessStep, reference: Reference) -> Reference:
        """The reference, which may be charged with the lines of its range."""
        lines = None if step.access is None else step.access.candidates
        if lines is None or reference.credited:
            return reference
        if step.contested is not None and reference.l1 is HitClass.NC:
            return self.ranges.contest(node, step.contested, lines, reference)
        if step.ranged is None or reference.l1 not in (HitClass.NC, HitClass.PL):
            return reference
        return self.ranges.use(node, step.ranged, lines, reference)

    def _charge_once(self, node: int, access: DataAccess, reference: Reference) -> None:
        """Record the charges at a loop entry: one per line, and one per stream."""
        if reference.scope is not None and access.candidates is not None:
            lines = self.missing.setdefault(reference.scope, {})
            lines.setdefault(access.candidates[0], reference)
        elif reference.stream is not None:
            streams = self.missing.setdefault(reference.stream.loop, {})
            streams[node, reference.insn] = reference

    def _write_back(self, insn: int, lines: int | None) -> Reference:
        geometry = self.hierarchy.l1d
        count = geometry.sets * geometry.ways if lines is None else lines
        l2 = None if self.hierarchy.l2 is None else HitClass.NC
        words = count * geometry.line_bytes // 4
        return Reference(
            insn, ReferenceKind.WRITE_BACK, None, None, words, cacheable=True, l1=HitClass.NC, l2=l2
        )


def _vacates(access: DataAccess, kind: ReferenceKind) -> bool:
    """Whether a dirty line may be written back by this part of an access that goes past L1.

    A swap writes it back once, before its load.
    """
    if access.vector:
        return kind is ReferenceKind.STORE
    first = ReferenceKind.STORE if access.access is AccessKind.STORE else ReferenceKind.LOAD
    return access.may_bypass and kind is first


def _vacated(
    found: Sequence[tuple[int, DataAccess | CacheOperation]],
) -> Iterator[tuple[int, ...] | None]:
    """The possible lines of each access of a node that may drop its line; None: any line."""
    for _, what in found:
        if isinstance(what, DataAccess) and what.may_bypass and what.memory not in UNCACHED:
            yield what.candidates


def _may_be_stream(step: _AccessStep) -> bool:
    """Whether a step is a surely executed load of one line that only a symbol names."""
    access = step.access
    return (
        step.event is not None
        and step.event.target is not None
        and access is not None
        and step.scope is None
        and access.access is AccessKind.LOAD
        and access.certain
        and access.symbol is not None
    )


def _as_stream(step: _AccessStep, stream: AccessStream) -> _AccessStep:
    """The load charged as a stream: at the loop entry, as first misses are."""
    event = step.event
    return step._replace(stream=stream, event=event and event._replace(first=True))
