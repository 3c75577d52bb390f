"""Classification of data accesses in L1, in every context.

A load of unknown address may fill any set, one of partly known address the sets it can touch; a
store never changes what is resident (rule 6), with LRU it may change the order of lines. Loads
whose addresses are unknown but differ by a known constant find each other's lines (rule 13), and
so do those of one load from one round of a loop to the next (``cache.streams``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cache.data_accesses import DataAccess, DataModel
from cache.events import UNSEEN, Event, Events, FlowOrder
from cache.geometry import Hierarchy
from cache.locked import NOT_LOCKED, LockedLines
from cache.maintenance import CacheOperation, cache_operation
from cache.may import presence
from cache.must import MustVerdict, Residency
from cache.persistence import LoopScopes, persistent_lines, scope_of
from cache.policy import Policy
from cache.reference import AT_HOME, UNCACHED, Hit, Kind, Reference, Stream
from cache.streams import Loads, find_streams
from quoll.arm.floating_point import vector_part
from quoll.arm.insn import Access
from quoll.cfg.cfg import Block
from quoll.image.memory_map import Cacheability
from quoll.inlining.supergraph import Supergraph
from quoll.values.values import SymbolicAddress
from quoll.words.strided_interval import ValueSet

__all__ = ["Addresses", "DataClasses", "DataClassifier"]

BEFORE_ANYTHING, LOCKED = (
    MustVerdict(resident=False, paid=False),
    MustVerdict(resident=True, paid=False),
)

# Whether VFP and NEON fill L1, and what becomes of a line there that they store to, is a matter of
# the core (Cortex-A8: L1NEON of its auxiliary control register). So each such access is charged,
# and nothing is known of L1 after it.
BY_VECTOR_UNIT = Event(None, forget=True)


class Addresses(Protocol):
    """What the value analysis knows of data addresses."""

    def access(self, node: int, insn: int) -> ValueSet | None:
        """Addresses of the first byte that instruction ``insn`` of ``node`` may access.

        None: any address.
        """

    def origin(self, node: int, insn: int) -> SymbolicAddress | None:
        """The same address relative to a symbol; None if it is a constant, or cannot be said."""

    def images(self, edge: int) -> Mapping[int, int]:
        """For each symbol at the target of ``edge`` the term of the source that it stands for."""


@dataclass(frozen=True, slots=True)
class DataClasses:
    """References per node, and first misses per loop."""

    nodes: tuple[tuple[Reference, ...], ...]
    loops: dict[int, tuple[Reference, ...]]


class _Part(NamedTuple):
    """One line of an access with its event, or an operation on the cache."""

    insn: int
    access: DataAccess | None
    scope: int | None  # the loop in which it misses at most once
    event: Event | None
    operation: CacheOperation | None = None
    held: bool = False  # locked: it hits, and changes nothing
    stream: Stream | None = None


def _events(parts: Sequence[Sequence[_Part]]) -> list[list[Event]]:
    return [[part.event for part in of_node if part.event] for of_node in parts]


class DataClassifier:
    """Classify every load and store of ``graph``."""

    def __init__(
        self,
        graph: Supergraph,
        flow: FlowOrder,
        scopes: LoopScopes,
        hierarchy: Hierarchy,
        addresses: Addresses,
    ) -> None:
        self.graph, self.flow, self.scopes = graph, flow, scopes
        self.hierarchy, self.addresses = hierarchy, addresses
        self.policy = hierarchy.policy
        self.model = DataModel(hierarchy)
        self.locked = self._locked()
        self.of_block: dict[int, list[int]] = {}  # block -> instructions of interest
        self.interned: dict[tuple[object, ...], Reference] = {}
        self.missing: dict[int, dict[object, Reference]] = {}

    def run(self) -> DataClasses:
        accesses = [self._accesses(i, node.block) for i, node in enumerate(self.graph.nodes)]
        touched = [self._touched(found) for found in accesses]
        geometry = self.hierarchy.l1d
        ways = self.policy.persistent(geometry.free_ways)
        persistent = [
            persistent_lines(
                (touched[n] for n in self.scopes.executed[loop.index]), geometry.index_sets, ways
            )
            if loop.index in self.scopes.eligible
            else frozenset[int]()
            for loop in self.scopes.loops
        ]
        parts = [
            [self._part(i, what, self.scopes.around[n], persistent) for i, what in found]
            for n, found in enumerate(accesses)
        ]
        along = [self._along(e) for e in range(len(self.graph.edges))]
        residency = self._residency(parts, along)
        streams = self._streams(parts, along, residency)
        if streams:
            for (node, position), stream in streams.items():
                parts[node][position] = _as_stream(parts[node][position], stream)
            if self.policy is Policy.FIFO:  # there a charge makes a line stay that is not made now
                residency = self._residency(parts, along)
        events = Events(_events(parts), along)
        missing = presence(self.flow, self.hierarchy, geometry, self.hierarchy.initial_d, events)
        nodes = tuple(
            self._classify(n, of, residency.inside(n, here), missing.inside(n, here))
            for n, (of, here) in enumerate(zip(parts, events.nodes, strict=True))
        )
        loops_out = {loop: tuple(lines.values()) for loop, lines in self.missing.items()}
        return DataClasses(nodes, loops_out)

    def _residency(
        self, parts: Sequence[Sequence[_Part]], along: Sequence[tuple[Event, ...]]
    ) -> Residency:
        return Residency(
            self.flow,
            self.hierarchy.l1d,
            self.policy,
            Events(_events(parts), along),
            self.addresses.images,
            self.hierarchy.initial_d.held.lines(),
        )

    def _streams(
        self,
        parts: Sequence[Sequence[_Part]],
        along: Sequence[tuple[Event, ...]],
        residency: Residency,
    ) -> dict[tuple[int, int], Stream]:
        """Loads that miss once per line, by node and position among its parts."""
        around = self.scopes.around
        looping = {
            loop for n, of in enumerate(parts) if any(map(_may_be_stream, of)) for loop in around[n]
        }
        filling: dict[int, list[Event | None]] = {}
        candidates: dict[tuple[int, int], tuple[Event, int]] = {}
        for n in {n for loop in looping for n in self.scopes.executed[loop]}:
            verdicts = residency.inside(n, [part.event for part in parts[n] if part.event])
            if verdicts is None:
                continue
            events = filling.setdefault(n, [])
            alone = Counter(part.insn for part in parts[n])
            told = iter(verdicts)
            for part in parts[n]:
                hits = part.event is not None and next(told).resident
                events.append(None if hits else part.event)
                if part.event and not hits and alone[part.insn] == 1 and _may_be_stream(part):
                    spans = part.event.target.spans if part.event.target else ()
                    candidates[n, len(events) - 1] = part.event, spans[-1][1] - spans[0][0]
        loads = Loads(filling, along, candidates, self.addresses.images)
        return find_streams(self.graph, self.scopes, self.hierarchy.l1d, loads)

    def _locked(self) -> LockedLines:
        """The lines that are locked, unless some operation may drop one or code is not seen."""
        if not self.hierarchy.locked_d:
            return NOT_LOCKED
        operations = [cache_operation(i) for n in self.graph.nodes for i in n.block.insns]
        unseen = any(map(self.graph.passed, range(len(self.graph.edges))))
        dropped = any(operation.forget_d for operation in operations) or any(
            insn.memory is not None and vector_part(insn) is not None
            for node in self.graph.nodes
            for insn in node.block.insns
        )
        return NOT_LOCKED if dropped or unseen else self.hierarchy.locked_d

    def _holds(self, access: DataAccess) -> bool:
        """Whether all that an access may touch is locked."""
        lines = access.candidates
        if not self.locked or lines is None or access.memory is not Cacheability.ALWAYS:
            return False
        size = self.hierarchy.l1d.line_bytes
        fixed = self.hierarchy.memory.fixed
        return all(self.locked.holds_line(n) and fixed(n * size) for n in lines)

    def _along(self, edge: int) -> tuple[Event, ...]:
        """What an edge does beside renaming symbols."""
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
        for i in of_interest:
            insn = block.insns[i]
            if insn.memory is None:
                found.append((i, cache_operation(insn)))
                continue
            value, origin = self.addresses.access(index, i), self.addresses.origin(index, i)
            found += [(i, access) for access in self.model.accesses(insn, value, origin)]
        return found

    def _touched(
        self, found: Sequence[tuple[int, DataAccess | CacheOperation]]
    ) -> frozenset[int] | None:
        """Lines that may be filled, or with LRU used; None: any line may, or all are forgotten."""
        lines: set[int] = set()
        for _, what in found:
            if isinstance(what, CacheOperation):
                if what.forget_d:
                    return None
                continue
            if what.vector:
                return None
            geometry = self.hierarchy.l1d
            fills = what.access is not Access.STORE or geometry.write_allocate
            fills = fills or self.policy is Policy.LRU
            if not fills or what.memory in UNCACHED or self._holds(what):
                continue
            if what.candidates is None:
                return None
            lines.update(what.candidates)
        return frozenset(lines)

    def _part(
        self,
        insn: int,
        what: DataAccess | CacheOperation,
        loops: tuple[int, ...],
        persistent: Sequence[frozenset[int]],
    ) -> _Part:
        if isinstance(what, CacheOperation):
            changes = what.forget_d or what.retranslates
            empties = what.forget_d and what.empties
            operation = Event(None, forget=what.forget_d, empties=empties, rename=True)
            event = operation if changes else None
            return _Part(insn, None, None, event, what)
        if what.vector and what.memory not in UNCACHED:
            return _Part(insn, what, None, BY_VECTOR_UNIT)
        if what.memory in UNCACHED or what.repeated:
            return _Part(insn, what, None, None)
        if self._holds(what):
            return _Part(insn, what, None, None, held=True)
        scope = None
        if what.candidates is not None and len(what.candidates) == 1 and what.fixed:
            scope = scope_of(what.candidates[0], loops, persistent)
        store = what.access is Access.STORE and not self.hierarchy.l1d.write_allocate
        reads = what.access in (Access.LOAD, Access.PRELOAD, Access.STORE) and not store
        known = what.fixed or what.symbol is not None
        event = Event(
            what.target,
            certain=what.certain or (store and what.executed),
            pays=reads and known and what.memory is Cacheability.ALWAYS and not what.exclusive,
            first=scope is not None and not store,
            store=store,
        )
        return _Part(insn, what, scope, event)

    def _classify(
        self,
        node: int,
        parts: Sequence[_Part],
        verdicts: Sequence[MustVerdict] | None,
        absences: Sequence[bool] | None,
    ) -> tuple[Reference, ...]:
        """The references of a node, from what is told of their events."""
        if verdicts is None or absences is None:
            return ()
        found: list[Reference] = []
        told = zip(verdicts, absences, strict=True)
        verdict, absent = BEFORE_ANYTHING, False
        for part in parts:
            if part.event is not None:
                verdict, absent = next(told)
            elif part.held:
                verdict, absent = LOCKED, False
            if part.access is not None:
                if part.access.memory in UNCACHED:
                    verdict = BEFORE_ANYTHING
                missed = absent and not part.access.repeated
                references = self._references(part, part.access, verdict, absent=missed)
                found.extend(references)
                self._charge_once(node, part.access, references[0])
            elif part.operation is not None and part.operation.lines != 0:
                found.append(self._write_back(part.insn, part.operation.lines))
        return tuple(found)

    def _references(
        self, part: _Part, access: DataAccess, verdict: MustVerdict, *, absent: bool
    ) -> list[Reference]:
        """The load of an access, and its store; one that fills its line is like a load."""
        insn, allocates = part.insn, self.hierarchy.l1d.write_allocate
        found: list[Reference] = []
        if access.access is not Access.STORE or allocates:
            l1, stream, paid = Hit.NC, None, False
            if access.memory in UNCACHED:
                l1 = UNCACHED[access.memory]
            elif verdict.resident:
                l1 = Hit.AH
            elif part.scope is not None:
                l1 = Hit.FM
            elif verdict.paid and access.memory is Cacheability.ALWAYS:
                paid = True
            elif part.stream is not None:
                l1, stream = Hit.PL, part.stream
            elif absent:
                l1 = Hit.AM
            kind = Kind.STORE if access.access is Access.STORE else Kind.LOAD
            found.append(self._reference(insn, kind, access, l1, part.scope, stream, paid=paid))
        if access.access is Access.SWAP or (access.access is Access.STORE and not allocates):
            l1 = UNCACHED.get(access.memory, Hit.AM if absent else Hit.NC)
            if verdict.resident and access.access is Access.STORE and access.memory not in UNCACHED:
                l1 = Hit.AH
            found.append(self._reference(insn, Kind.STORE, access, l1, None))
        return found

    def _reference(
        self,
        insn: int,
        kind: Kind,
        access: DataAccess,
        l1: Hit,
        scope: int | None,
        stream: Stream | None = None,
        *,
        paid: bool = False,
    ) -> Reference:
        scope = scope if l1 is Hit.FM else None
        key = (insn, kind, access, l1, scope, stream, paid)
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
                uncached=access.memory not in AT_HOME or (access.vector and kind is Kind.STORE),
                scope=scope,
                stream=stream,
                paid=paid,
                symbolic=access.symbol is not None,
            )
        return reference

    def _charge_once(self, node: int, access: DataAccess, reference: Reference) -> None:
        """Note what is due when a loop is entered: a line once, but each stream by itself."""
        if reference.scope is not None and access.candidates is not None:
            lines = self.missing.setdefault(reference.scope, {})
            lines.setdefault(access.candidates[0], reference)
        elif reference.stream is not None:
            streams = self.missing.setdefault(reference.stream.loop, {})
            streams[node, reference.insn] = reference

    def _write_back(self, insn: int, lines: int | None) -> Reference:
        geometry = self.hierarchy.l1d
        count = geometry.sets * geometry.ways if lines is None else lines
        l2 = None if self.hierarchy.l2 is None else Hit.NC
        words = count * geometry.line_bytes // 4
        return Reference(insn, Kind.WRITE_BACK, None, None, words, cacheable=True, l1=Hit.NC, l2=l2)


def _may_be_stream(part: _Part) -> bool:
    """Whether a part is a load, surely executed, of one line that only a symbol names."""
    access = part.access
    return (
        part.event is not None
        and part.event.target is not None
        and access is not None
        and part.scope is None
        and access.access is Access.LOAD
        and access.certain
        and access.symbol is not None
    )


def _as_stream(part: _Part, stream: Stream) -> _Part:
    """A load that is charged as a stream: not where it stands alone, as first misses are."""
    event = part.event
    return part._replace(stream=stream, event=event and event._replace(first=True))
