"""Classification of data accesses in L1, in every context.

Loads and stores of unknown address make every set unknown, those of partly known address the
sets they can touch; a store never changes what is resident (rule 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cache.data import DataAccess, DataModel
from cache.flow import FlowOrder, must_states
from cache.geometry import Hierarchy
from cache.maintenance import cache_operation
from cache.memory_map import Cacheability
from cache.must import Effect, EffectBuilder, MustStates
from cache.persistence import LoopScopes, persistent_lines, scope_of
from cache.reference import Hit, Kind, Reference
from quoll.arm.insn import Access
from quoll.cfg import Block
from quoll.supergraph import Supergraph
from quoll.valueset import ValueSet

__all__ = ["Addresses", "DataClasses", "classify_data"]


class Addresses(Protocol):
    """What the value analysis knows of data addresses."""

    def access(self, node: int, insn: int) -> ValueSet | None:
        """Addresses of the first byte that instruction ``insn`` of ``node`` may access.

        None: any address.
        """


@dataclass(frozen=True, slots=True)
class DataClasses:
    """References per node, and first misses per loop."""

    nodes: tuple[tuple[Reference, ...], ...]
    loops: dict[int, tuple[Reference, ...]]


@dataclass(frozen=True, slots=True)
class _NodeData:
    """Data side of a node: per instruction its accesses, or a maintenance operation."""

    steps: tuple[tuple[int, tuple[DataAccess, ...], bool, int | None], ...]
    effect: int
    touched: frozenset[int] | None


def classify_data(
    graph: Supergraph,
    flow: FlowOrder,
    scopes: LoopScopes,
    hierarchy: Hierarchy,
    addresses: Addresses,
) -> DataClasses:
    """Classify every load and store of ``graph``."""
    return _Classifier(graph, flow, scopes, hierarchy, addresses).run()


class _Classifier:
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
        self.sets = hierarchy.l1d.sets
        self.model = DataModel(hierarchy)
        self.states = MustStates(self.sets)
        self.known: dict[tuple[object, ...], _NodeData] = {}
        self.of_block: dict[int, list[int]] = {}  # block -> instructions of interest
        self.interned: dict[tuple[object, ...], Reference] = {}
        self.missing: dict[int, dict[int, Reference]] = {}

    def run(self) -> DataClasses:
        data = [self._node(i, node.block) for i, node in enumerate(self.graph.nodes)]
        nothing = self.states.effect(EffectBuilder(self.sets).build())
        effects = [d.effect for d in data]
        anything = self.states.effect(Effect(True, ()))
        every = range(len(self.graph.edges))
        edges = [anything if self.graph.passed(e) else nothing for e in every]
        states = must_states(self.flow, self.states, effects, edges)
        persistent = [
            persistent_lines({data[n].touched for n in loop.nodes}, self.sets)
            if loop.index in self.scopes.eligible
            else frozenset[int]()
            for loop in self.graph.loops
        ]
        nodes: list[tuple[Reference, ...]] = []
        found: dict[tuple[object, ...], tuple[Reference, ...]] = {}
        for index, (of_node, state) in enumerate(zip(data, states, strict=True)):
            loops = self.scopes.around[index]
            key = (id(of_node), state, loops)
            references = found.get(key)
            if references is None:
                references = found[key] = self._classify(of_node, state, loops, persistent)
            nodes.append(references)
        loops_out = {loop: tuple(lines.values()) for loop, lines in self.missing.items()}
        return DataClasses(tuple(nodes), loops_out)

    def _node(self, index: int, block: Block) -> _NodeData:
        of_interest = self.of_block.get(id(block))
        if of_interest is None:
            of_interest = self.of_block[id(block)] = [
                i
                for i, insn in enumerate(block.insns)
                if insn.memory is not None or cache_operation(insn).touches_data
            ]
        values = tuple(
            self.addresses.access(index, i) if block.insns[i].memory is not None else None
            for i in of_interest
        )
        key = (id(block), values)
        data = self.known.get(key)
        if data is None:
            data = self.known[key] = self._data(block, of_interest, values)
        return data

    def _data(
        self, block: Block, of_interest: Sequence[int], values: Sequence[ValueSet | None]
    ) -> _NodeData:
        builder = EffectBuilder(self.sets)
        steps: list[tuple[int, tuple[DataAccess, ...], bool, int | None]] = []
        anything = False
        for i, value in zip(of_interest, values, strict=True):
            operation = cache_operation(block.insns[i])
            accesses = self.model.accesses(block.insns[i], value)
            steps.append((i, accesses, operation.forget_d, operation.lines))
            for access in accesses:
                self._step(builder, access)
                reads = access.access is not Access.STORE
                cached = access.memory is not Cacheability.NEVER
                anything |= reads and cached and access.candidates is None
            if operation.forget_d:
                builder.may_access_any(None)
                anything = True
        touched = None if anything else frozenset(builder.touched)
        return _NodeData(tuple(steps), self.states.effect(builder.build()), touched)

    @staticmethod
    def _step(builder: EffectBuilder, access: DataAccess) -> None:
        if access.access is Access.STORE or access.memory is Cacheability.NEVER:
            return
        if access.certain and access.candidates is not None:
            builder.access(access.candidates[0])
        else:
            builder.may_access_any(access.candidates)

    def _classify(
        self,
        data: _NodeData,
        state: int | None,
        loops: tuple[int, ...],
        persistent: Sequence[frozenset[int]],
    ) -> tuple[Reference, ...]:
        if state is None:
            return ()
        builder = EffectBuilder(self.sets)
        row = self.states.row(state)
        found: list[Reference] = []
        for insn, accesses, forget, lines in data.steps:
            for access in accesses:
                candidates = access.candidates
                resident = candidates is not None and all(
                    builder.resident(line, row) for line in candidates
                )
                scope = None
                if candidates is not None and len(candidates) == 1 and access.fixed:
                    scope = scope_of(candidates[0], loops, persistent)
                found.extend(self._references(insn, access, resident, scope))
            for access in accesses:
                self._step(builder, access)
            if lines != 0:
                found.append(self._write_back(insn, lines))
            if forget:
                builder.may_access_any(None)
        return tuple(found)

    def _references(
        self, insn: int, access: DataAccess, resident: bool, scope: int | None
    ) -> list[Reference]:
        found: list[Reference] = []
        if access.access is not Access.STORE:
            l1 = Hit.NC
            if access.memory is Cacheability.NEVER:
                l1 = Hit.AM
            elif resident:
                l1 = Hit.AH
            elif scope is not None:
                l1 = Hit.FM
            found.append(self._reference(insn, Kind.LOAD, access, l1, scope))
        if access.access in (Access.STORE, Access.SWAP):
            stays = resident and access.access is Access.STORE
            found.append(self._reference(insn, Kind.STORE, access, _store_hit(access, stays), None))
        return found

    def _reference(
        self, insn: int, kind: Kind, access: DataAccess, l1: Hit, scope: int | None
    ) -> Reference:
        scope = scope if l1 is Hit.FM else None
        key = (insn, kind, access, l1, scope)
        reference = self.interned.get(key)
        if reference is None:
            reference = self.interned[key] = Reference(
                insn=insn,
                kind=kind,
                low=access.low,
                high=access.high,
                words=access.words,
                cacheable=access.memory is not Cacheability.NEVER,
                l1=l1,
                l2=None if self.hierarchy.l2 is None else Hit.NC,
                uncached=access.memory is not Cacheability.ALWAYS,
                scope=scope,
            )
        if reference.scope is not None and access.candidates is not None:
            lines = self.missing.setdefault(reference.scope, {})
            lines.setdefault(access.candidates[0], reference)
        return reference

    def _write_back(self, insn: int, lines: int | None) -> Reference:
        geometry = self.hierarchy.l1d
        count = geometry.sets * geometry.ways if lines is None else lines
        l2 = None if self.hierarchy.l2 is None else Hit.NC
        words = count * geometry.line_bytes // 4
        return Reference(insn, Kind.WRITE_BACK, None, None, words, True, Hit.NC, l2)


def _store_hit(access: DataAccess, resident: bool) -> Hit:
    if access.memory is Cacheability.NEVER:
        return Hit.AM
    return Hit.AH if resident else Hit.NC
