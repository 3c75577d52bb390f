"""Classification of instruction fetches in L1, in every context.

Two must analyses run over the same effects. The *strict* one answers what is surely resident: a
line fetched past a transfer is join(access, no access). The *paid* one answers where a miss
need not be charged any more: a line that may have been fetched past a transfer counts as
accessed, because its miss is charged there, whether it happens or not.

    Claim: along every path, misses <= references that are due.
    Potential: the lines that the paid state names and that are not resident, one miss each.
    A possible fetch of z past a transfer is charged unless paid(z): if it happens, the charge
    pays for it, else the charge stays as the potential of z. A fetch of y that is neither strict
    nor paid is charged; if it is paid and misses, the potential of y pays, and y is resident
    afterwards. Joins and evictions only lower the potential.

An operation that drops one line at most, any line, is charged one miss: the potential of the line
that it drops, whichever that is. It leaves the paid state, and first misses, as they are.

First misses are charged on the edge into their loop; the charge plays the same part as above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cache.fetch import Fetch, FetchModel, redirects
from cache.flow import FlowOrder, must_states
from cache.geometry import Hierarchy
from cache.memory_map import Cacheability
from cache.must import Effect, EffectBuilder, MustStates
from cache.persistence import LoopScopes, persistent_lines, scope_of
from cache.reference import Hit, Kind, Reference
from quoll.cfg import Block
from quoll.supergraph import Supergraph

__all__ = ["FetchClasses", "classify_fetches"]


@dataclass(frozen=True, slots=True)
class FetchClasses:
    """References per node (inside) and per edge (past a transfer), and first misses per loop.

    ``leaving`` are those past each exit node.
    """

    nodes: tuple[tuple[Reference, ...], ...]
    edges: tuple[tuple[Reference, ...], ...]
    loops: dict[int, tuple[Reference, ...]]
    leaving: dict[int, tuple[Reference, ...]]


def classify_fetches(
    graph: Supergraph, flow: FlowOrder, scopes: LoopScopes, hierarchy: Hierarchy
) -> FetchClasses:
    """Classify every instruction fetch of ``graph``."""
    return _Classifier(graph, flow, scopes, hierarchy).run()


class _Classifier:
    def __init__(
        self, graph: Supergraph, flow: FlowOrder, scopes: LoopScopes, hierarchy: Hierarchy
    ) -> None:
        self.graph, self.flow, self.scopes, self.hierarchy = graph, flow, scopes, hierarchy
        self.sets = hierarchy.l1i.sets
        self.model = FetchModel(graph, hierarchy)
        self.states = MustStates(self.sets)
        self.redirecting = [redirects(graph, e) for e in range(len(graph.edges))]
        self.interned: dict[tuple[object, ...], Reference] = {}
        self.missing: dict[int, dict[int, Reference]] = {}  # loop -> line -> first miss

    def run(self) -> FetchClasses:
        strict = self._solve(paying=False)
        paid = self._solve(paying=True)
        persistent = self._persistent()
        nodes: list[tuple[Reference, ...]] = []
        edges: list[tuple[Reference, ...]] = [()] * len(self.graph.edges)
        leaving: dict[int, tuple[Reference, ...]] = {}
        exits = frozenset(self.graph.exits)
        known: dict[tuple[object, ...], tuple[tuple[Reference, ...], tuple[Reference, ...]]] = {}
        for index, node in enumerate(self.graph.nodes):
            loops = self.scopes.around[index]
            key = (id(node.block), strict[index], paid[index], loops)
            both = known.get(key)
            if both is None:
                both = known[key] = self._classify(
                    node.block, strict[index], paid[index], loops, persistent
                )
            nodes.append(both[0])
            if index in exits:
                leaving[index] = both[1]
            for edge in self.graph.successors[index]:
                if self.redirecting[edge]:
                    edges[edge] = both[1]
        loops_out = {loop: tuple(lines.values()) for loop, lines in self.missing.items()}
        return FetchClasses(tuple(nodes), tuple(edges), loops_out, leaving)

    def _solve(self, *, paying: bool) -> list[int | None]:
        inside: dict[int, int] = {}
        past: dict[int, int] = {}
        for node in self.graph.nodes:
            block = node.block
            if id(block) not in inside:
                fetches = self.model.of(block)
                inside[id(block)] = self._effect(fetches.inside, paying=paying)
                past[id(block)] = self._effect(fetches.past, paying=paying)
        nothing = self._effect((), paying=paying)
        nodes = [inside[id(node.block)] for node in self.graph.nodes]
        anything = self.states.effect(Effect(True, ()))
        edges = [
            past[id(self.graph.nodes[e.src].block)] if self.redirecting[i] else nothing
            for i, e in enumerate(self.graph.edges)
        ]
        edges = [anything if self.graph.passed(i) else e for i, e in enumerate(edges)]
        return must_states(self.flow, self.states, nodes, edges)

    def _effect(self, fetches: Sequence[Fetch], *, paying: bool) -> int:
        builder = EffectBuilder(self.sets)
        for fetch in fetches:
            self._step(builder, fetch, paying=paying)
        return self.states.effect(builder.build())

    def _step(self, builder: EffectBuilder, fetch: Fetch, *, paying: bool) -> None:
        if fetch.drop and paying:
            return
        if fetch.forget or fetch.drop:
            builder.may_access_any(None)
        elif fetch.certain or (paying and fetch.fixed and not fetch.dropped):
            builder.access(fetch.line)
        elif fetch.memory is not Cacheability.NEVER:
            builder.may_access(fetch.line)

    def _persistent(self) -> list[frozenset[int]]:
        """Per loop the lines that miss at most once in it."""
        touched: dict[int, frozenset[int] | None] = {}
        for node in self.graph.nodes:
            if id(node.block) not in touched:
                touched[id(node.block)] = self._touched(node.block)
        found = []
        for loop in self.graph.loops:
            blocks = {id(self.graph.nodes[n].block) for n in loop.nodes}
            usable = loop.index in self.scopes.eligible
            found.append(
                persistent_lines((touched[b] for b in blocks), self.sets) if usable else frozenset()
            )
        return found

    def _touched(self, block: Block) -> frozenset[int] | None:
        fetches = self.model.of(block)
        every = fetches.inside + fetches.past
        if any(f.forget for f in every):
            return None
        return frozenset(f.line for f in every if f.memory is not Cacheability.NEVER and not f.drop)

    def _classify(
        self,
        block: Block,
        strict: int | None,
        paid: int | None,
        loops: tuple[int, ...],
        persistent: Sequence[frozenset[int]],
    ) -> tuple[tuple[Reference, ...], tuple[Reference, ...]]:
        fetches = self.model.of(block)
        if strict is None or paid is None:
            return (), ()
        now, then = EffectBuilder(self.sets), EffectBuilder(self.sets)
        found: tuple[list[Reference], list[Reference]] = ([], [])
        for past, part in enumerate((fetches.inside, fetches.past)):
            for fetch in part:
                if fetch.drop:
                    found[past].append(self._dropped(fetch))
                elif not fetch.forget:
                    resident = now.resident(fetch.line, self.states.row(strict))
                    already = then.resident(fetch.line, self.states.row(paid))
                    scope = scope_of(fetch.line, loops, persistent) if fetch.fixed else None
                    kind = Kind.PREFETCH if past else Kind.FETCH
                    found[past].append(self._reference(fetch, kind, resident, already, scope))
                self._step(now, fetch, paying=False)
                self._step(then, fetch, paying=True)
        return tuple(found[0]), tuple(found[1])

    def _dropped(self, fetch: Fetch) -> Reference:
        """The one miss that an operation on a single line may cause later."""
        l2 = None if self.hierarchy.l2 is None else Hit.NC
        return Reference(fetch.insn, Kind.PREFETCH, None, None, 1, True, Hit.NC, l2)

    def _reference(
        self, fetch: Fetch, kind: Kind, resident: bool, paid: bool, scope: int | None
    ) -> Reference:
        l1 = Hit.NC
        if fetch.memory is Cacheability.NEVER:
            l1 = Hit.AM
        elif resident:
            l1 = Hit.AH
        elif scope is not None:
            l1 = Hit.FM
        key = (fetch, kind, l1, paid, scope)
        reference = self.interned.get(key)
        if reference is None:
            address = fetch.line * self.hierarchy.l1i.line_bytes
            reference = self.interned[key] = Reference(
                insn=fetch.insn,
                kind=kind,
                low=address,
                high=address,
                words=fetch.words,
                cacheable=fetch.memory is not Cacheability.NEVER,
                l1=l1,
                l2=None if self.hierarchy.l2 is None else Hit.NC,
                uncached=fetch.memory is not Cacheability.ALWAYS,
                scope=scope if l1 is Hit.FM else None,
                paid=paid and l1 is Hit.NC,
            )
        if reference.scope is not None:
            self.missing.setdefault(reference.scope, {}).setdefault(fetch.line, reference)
        return reference
