"""Values at a point of the code as terms, on demand: gated SSA over the acyclic supergraph.

A ``SsaScope`` is one pass through the code: an iteration of a loop, from its header on, or the
whole graph from its entry. Its *leaves* are the values at its start: a symbol for each register or
memory cell that is read. Where paths meet, values are joined under the conditions that lead there
(gating). The pass goes through an inner loop once, in its last iteration: each cell that the loop
may change is *havoc* at its header, any word; a cell that it saves and restores retains its value
(rule 20).

Memory is tracked for cells that only the program's own stores change: constant addresses in the
image and live stack frames. Any other load is an *input*, any word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from loopbounds.budgets import table
from loopbounds.slicing.cell import SP, STACK, Cell, HeaderCell, MemoryCell, cell_name, cell_width
from loopbounds.slicing.code import GraphCode, LoopContinuation
from loopbounds.slicing.effects import FLAG
from loopbounds.slicing.gates import PathGates
from loopbounds.slicing.loaded_words import AFTER, LoadedWords
from loopbounds.slicing.memo import MemoTable, UnboundedCounter
from loopbounds.slicing.register_places import Places, register_places
from loopbounds.slicing.scope import ScopeSymbols
from loopbounds.slicing.stack_taint import StackTaint
from loopbounds.slicing.stated_words import invariant_term, words_of
from loopbounds.slicing.trips import TripCounts
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import (
    Term,
    add,
    const,
    ite,
    sub,
)
from quoll.assumptions import Assumption
from quoll.cfg.cfg import EdgeKind

__all__ = ["GatedSsa", "KnownBounds", "OutOfEffort", "SsaScope"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ScopeStart:
    """The known ``places`` of registers at the start of a scope.

    ``outside``: also the preserved values from outside the loop.
    """

    places: Places = ()
    outside: bool = False


NOTHING = ScopeStart()


class SsaScope:
    """Values within one pass from ``start``; ``loop``: the loop of the pass, None for the graph."""

    def __init__(
        self,
        code: GraphCode,
        loop: int | None,
        ssa: GatedSsa,
        known: ScopeStart = NOTHING,
    ) -> None:
        self.code = code
        self.loop = loop
        self._ssa = ssa
        self._known, self._places = known, dict(known.places)
        loops = code.graph.loops
        self.start = code.graph.entry if loop is None else loops[loop].header
        self._nodes = None if loop is None else loops[loop].nodes
        self.symbols = ScopeSymbols(loop, self.start)
        self.unbounded = ssa.unbounded
        self._at = MemoTable[tuple[int, Cell], Term](ssa.unbounded)
        self._instances = MemoTable[tuple[int, Term], Term](ssa.unbounded)
        self._changes = MemoTable[tuple[int, Cell], bool](ssa.unbounded)
        self._incoming: dict[int, list[int]] = {}
        self.used: set[Assumption] = set()  # named assumptions of values
        self.gates = PathGates(self)
        self.memory = LoadedWords(self)
        self.trips = TripCounts(self)
        self._invariants: tuple[Term, ...] | None = None

    def renewed(self) -> SsaScope:
        """The same scope without the values that depend on unbounded loops."""
        scope = SsaScope(self.code, self.loop, self._ssa, self._known)
        scope.symbols = self.symbols.copied()
        scope._at, scope._instances = self._at.for_good(), self._instances.for_good()
        scope._changes, scope._incoming = self._changes.for_good(), self._incoming
        scope.used = set(self.used)
        scope.gates, scope.memory = self.gates.renewed(scope), self.memory.renewed(scope)
        scope.trips = self.trips.renewed(scope)
        return scope

    def contains(self, node: int) -> bool:
        """Whether the pass may go through ``node``."""
        return self._nodes is None or node in self._nodes

    # --- Registers and memory cells at node boundaries --------------------------------------

    def at(self, node: int, cell: Cell) -> Term:
        """The value of ``cell`` when ``node`` begins."""
        key = node, cell
        known = self._at.get(key)
        if known is None:
            self._ssa.spend()
            since = self.unbounded.met
            known = self._at.keep(key, self._find(node, cell), since)
        return known

    def after(self, node: int, cell: Cell) -> Term:
        """The value of ``cell`` after ``node``."""
        if isinstance(cell, int):
            written = self.code.effect(node).registers.get(cell)
            return self.at(node, cell) if written is None else self.instance(node, written)
        return self.memory.before(node, AFTER, cell)

    def before(self, node: int, position: int, cell: MemoryCell) -> Term:
        """The value of ``cell`` before event ``position`` of ``node``."""
        return self.memory.before(node, position, cell)

    def along(self, edge: int, cell: Cell) -> Term:
        """The value of ``cell`` when control takes ``edge``."""
        taken = self.code.graph.edges[edge]
        if not isinstance(cell, int):
            if self.memory.passed(edge, cell):
                return self.symbols.lost(taken.src, f"passed{edge}", cell)
            return self.after(taken.src, cell)
        if self.code.passes(edge, cell):
            return self.symbols.lost(taken.src, f"passed{edge}", cell)
        written = self.code.effect(taken.src).on_edge(
            cell, falls_through=taken.kind is EdgeKind.FALLTHROUGH
        )
        if written is None:
            return self.at(taken.src, cell)
        return self.instance(taken.src, written)

    def instance(self, node: int, term: Term) -> Term:
        """A term of the effect of ``node``'s block, in this scope."""
        key = node, term
        known = self._instances.get(key)
        if known is None:
            since = self.unbounded.met
            known = self._instances.keep(key, self._instance(node, term), since)
        return known

    def _instance(self, node: int, term: Term) -> Term:
        effect = self.code.effect(node)
        values: dict[Term, Term] = {}
        for symbol in rewrite.symbols_of(term):
            if symbol in effect.loads:
                values[symbol] = self.memory.loaded(node, effect.loads[symbol])
            elif symbol in effect.unknown:
                values[symbol] = self._unknown(node, symbol)
            elif (end := self.code.stacks.end_of(symbol)) is not None:
                values[symbol] = self._end_of_stack(symbol, end)
            else:
                values[symbol] = self._read(node, int(symbol.name.removeprefix("entry")))
        return self._limited(node, rewrite.substitute(term, values))

    def _unknown(self, node: int, symbol: Term) -> Term:
        """Any word; as the new sp, outside of loops, it is the end of a stack of unknown place."""
        word = self.symbols.input(node, symbol.name, symbol.width, frame=True)
        pointer = self.code.effect(node).registers.get(SP)
        once = self.loop is None and self.code.acyclic.innermost[node] < 0
        if once and pointer is not None and sub(pointer, symbol).constant is not None:
            self.symbols.leaves[word] = STACK
        return word

    def _read(self, node: int, register: int) -> Term:
        """A register that the block of ``node`` reads.

        If its term contains a lost word of a frame, which might be a stack address, it may still be
        one number by value analysis: a branch has compared it.
        """
        term = self.at(node, register)
        if register >= FLAG or not any(map(self.symbols.is_lost, rewrite.symbols_of(term))):
            return term
        number = self.code.number(node, register)
        return term if number is None else const(number, 32)

    def _end_of_stack(self, symbol: Term, end: int) -> Term:
        """The end of a stack: a symbol in the graph's scope, the constant in a loop's scope."""
        if self.loop is not None:
            return const(end, 32)
        self.symbols.leaves[symbol] = STACK
        return symbol

    def _limited(self, node: int, term: Term) -> Term:
        if len(term.args) and rewrite.size(term) > table.LARGE_VALUE:
            lost = self.tainted(term)
            return self.symbols.input(node, f"large{term.serial}", term.width, frame=lost)
        return term

    def _find(self, node: int, cell: Cell) -> Term:
        """The value at the nearest dominating node that determines it."""
        while True:
            loop = self.code.acyclic.headers.get(node)
            if loop is not None and loop != self.loop and self._changed(loop, cell):
                return self._changed_value(loop, node, cell)
            if node == self.start:
                return self._leaf(cell)
            edges = self._incoming_for(node, cell)
            if len(edges) != 1:
                return self.joined(node, edges, cell)
            node = self.code.graph.edges[edges[0]].src
            effect = self.code.effect(node)
            changes = cell in effect.registers if isinstance(cell, int) else effect.stores
            if changes or self.code.graph.passed(edges[0]):
                return self.along(edges[0], cell)
            known = self._at.get((node, cell))
            if known is not None:
                return known

    def _incoming_for(self, node: int, cell: Cell) -> list[int]:
        """The incoming edges; in front of a call that spares the cell, the one that enters it."""
        if not isinstance(cell, int) and cell.places is None:
            entering = self.memory.calls.spared(node, cell)
            if entering is not None:
                return [entering]
        return self.incoming(node)

    def _changed_value(self, loop: int, header: int, cell: Cell) -> Term:
        """A cell that a loop changes, at the last execution of the loop's header."""
        if not isinstance(cell, int) and cell.places is not None:
            return self.memory.pointed.unknown(header, "havoc", cell)
        value = None if self.is_plain else self.trips.left(loop, header, cell)
        if value is not None:
            return value
        return self.symbols.input(header, f"havoc_{cell_name(cell)}", cell_width(cell), cell=cell)

    def incoming(self, node: int) -> list[int]:
        """Edges from inside the scope, except for back edges."""
        known = self._incoming.get(node)
        if known is None:
            order, edges = self.code.acyclic.order, self.code.graph.edges
            known = self._incoming[node] = [
                e
                for e in self.code.acyclic.predecessors[node]
                if order[edges[e].src] >= 0 and (self._nodes is None or edges[e].src in self._nodes)
            ]
        return known

    def _leaf(self, cell: Cell) -> Term:
        if not isinstance(cell, int) and cell.places is not None:
            return self.memory.pointed.unknown(self.start, "start", cell)
        if self._known.outside and isinstance(cell, int):
            known = self._ssa.start_value(self, cell)
            if known is not None:
                return known
        if isinstance(cell, int):
            place = self._places.get(cell)
            return self.symbols.leaf(cell) if place is None else place.term(self.symbols)
        word = self._at_start(cell)
        return self.symbols.leaf(cell) if word is None else const(word, cell_width(cell))

    @property
    def known_invariants(self) -> tuple[Term, ...]:
        """``invariants``, if they were computed before."""
        return self._invariants or ()

    def invariants(self) -> tuple[Term, ...]:
        """The invariants of the entry that still hold of the words at the start of the scope.

        In a loop these are the invariants whose words no path from the entry on changes, nor the
        loop itself.
        """
        if self._invariants is None:
            found = []
            for one in self.code.invariants:
                cells = words_of(one, self.code.image)
                if all(map(self._unchanged, cells.values())):
                    leaves = {word: self._leaf(cell) for word, cell in cells.items()}
                    found.append(invariant_term(one, leaves.__getitem__))
            self._invariants = tuple(found)
        return self._invariants

    def _unchanged(self, cell: MemoryCell) -> bool:
        """Whether a cell has its value at the entry whenever the scope starts."""
        whole = self._ssa.whole
        if self.loop is None:
            return True
        return whole.at(self.start, cell) is whole.symbols.leaf(cell)

    def _at_start(self, cell: MemoryCell) -> int | None:
        """A word of memory as loaded, if the scope starts where paths do; else None."""
        address, size = cell.address, cell.size
        if self.loop is not None or not self.code.at_start or address.constant is None:
            return None
        return self.code.image.at_start(address.value, size)

    def taken(self, edge: int) -> Term:
        """The condition of ``edge`` out of its node."""
        return self.gates.taken(edge)

    def after_iteration(self, cell: Cell) -> Term:
        """The value of ``cell`` when an iteration returns to the header of this loop."""
        assert self.loop is not None
        edges = self.code.graph.loops[self.loop].backs
        return self.joined(self.start, edges, cell)

    def next_visit(self, cell: Cell) -> Term:
        """The value of ``cell`` at the next header execution; its address may have moved."""
        if isinstance(cell, int):
            return self.after_iteration(cell)
        assert self.loop is not None
        edges = self.code.graph.loops[self.loop].backs
        return self._join(self.start, edges, lambda e: self.memory.carried(e, cell))

    def at_entries(self, header: int, edges: Sequence[int], cell: Cell) -> Term:
        """The value of ``cell`` when a loop is entered, seen from outside."""
        if header == self.start:
            return self._leaf(cell)
        return self.joined(header, edges, cell)

    def before_loop(self, header: int, cell: Cell) -> Term:
        """The value of ``cell`` when a loop of this scope is entered."""
        return self.at_entries(header, self.incoming(header), cell)

    # --- Joins ------------------------------------------------------------------------------

    def _join(self, node: int, edges: Sequence[int], value: Callable[[int], Term]) -> Term:
        values = [value(e) for e in edges]
        if all(v is values[0] for v in values[1:]):
            return values[0]
        guards = self.gates.guards(node, edges)
        merged = values[-1]
        for guard, v in zip(guards[:-1], values[:-1], strict=True):
            merged = ite(guard, v, merged)
        return self._limited(node, merged)

    def joined(self, node: int, edges: Sequence[int], cell: Cell) -> Term:
        """The value of ``cell`` when control comes to ``node`` along one of ``edges``."""
        return self._join(node, edges, lambda e: self.along(e, cell))

    # --- Loops inside -----------------------------------------------------------------------

    def _changed(self, loop: int, cell: Cell) -> bool:
        """Whether a loop may change ``cell``."""
        key = loop, cell
        known = self._changes.get(key)
        if known is None:
            since = self.unbounded.met
            self._changes.presume(key, value=True)
            if isinstance(cell, int):
                known = self._register_changed(loop, cell)
            else:
                known = self.memory.changed(loop, cell)
            self._changes.keep(key, known, since)
        return known

    def _register_changed(self, loop: int, register: int) -> bool:
        if self._ssa.preserved(loop, register, self):
            return False
        if register == SP or self.is_plain:
            return True
        inner = self.inner(loop)
        changed = not inner.preserves(register)
        self.used |= inner.used
        return changed

    def preserves(self, register: int) -> bool:
        """Whether an iteration of this loop preserves a register."""
        assert self.loop is not None
        start = self.at(self.start, register)
        return all(self.along(e, register) is start for e in self.code.graph.loops[self.loop].backs)

    def inner(self, loop: int) -> SsaScope:
        """One iteration of a loop in this scope."""
        return self._ssa.of_loop(loop)

    def inside(self, loop: int, header: int, cell: Cell) -> Cell | None:
        """A cell of this scope as a cell of an inner loop's scope; None: its address is unknown."""
        if isinstance(cell, int) or cell.address.constant is not None:
            return cell
        distance = sub(cell.address, self.at(header, SP))
        if distance.constant is None or not self._ssa.preserved(loop, SP, self):
            return None
        return cell._replace(address=add(self.inner(loop).at(header, SP), distance))

    def outside(self, loop: int, header: int, cell: Cell) -> Cell | None:
        """A cell of an inner loop's scope as a cell of this scope; None: its address is unknown."""
        if isinstance(cell, int) or cell.address.constant is not None:
            return cell
        distance = sub(cell.address, self.inner(loop).at(header, SP))
        if distance.constant is None or not self._ssa.preserved(loop, SP, self):
            return None
        address = add(self.at(header, SP), distance)
        known = rewrite.symbols([address]) <= self.symbols.leaves.keys()
        return cell._replace(address=address) if known else None

    def tainted(self, term: Term) -> bool:
        """Whether ``term`` may be computed from a stack address."""
        return self._ssa.taint.of_term(self, term)

    @property
    def is_plain(self) -> bool:
        """Whether the scope uses no value from outside the loop, except for places of registers."""
        return self.loop is not None and not self._known.outside


class OutOfEffort(Exception):
    """More values were computed than the effort allows."""


@dataclass(frozen=True, slots=True)
class KnownBounds:
    """The bounds, by loop, with which values after loops were computed."""

    bounds: Mapping[int, int]
    continued: Mapping[int, LoopContinuation]

    @staticmethod
    def of(code: GraphCode) -> KnownBounds:
        """The bounds that are proved so far."""
        return KnownBounds(dict(code.bounds), dict(code.continued))


class GatedSsa:
    """The scopes of the whole graph and of its loops, made on demand.

    ``limit`` and ``limited`` set the number of values that may be computed; after ``OutOfEffort``
    the object is unusable until a restart. ``by_itself``: track cells that may hold a stack address
    separately in each context. Otherwise a taint holds for all contexts of a loop, which needs
    fewer restarts; then ``spread`` tells that a taint was extended so. ``tainted``: cells that may
    hold a stack address, as another object found; its slices need no restart to find them again.
    ``first_failed``: the assumptions that failed before any cell was tainted. ``known``: the bounds
    with which the values are computed, the same object until they change.
    """

    def __init__(
        self,
        code: GraphCode,
        *,
        by_itself: bool = False,
        tainted: frozenset[HeaderCell] = frozenset(),
    ) -> None:
        self.code, self._effort, self.by_itself = code, math.inf, by_itself
        self.spread = False
        self.first_failed: frozenset[HeaderCell] = frozenset()
        self.unbounded = UnboundedCounter()
        self.known = KnownBounds.of(code)
        self.restart(tainted)

    def within_effort(self, compute: Callable[[], Result], otherwise: Result) -> Result:
        """The result of ``compute``, or ``otherwise`` where it takes more effort than is left.

        Then all values are dropped, as some are unfinished.
        """
        if self._effort < 0:
            return otherwise
        try:
            return compute()
        except OutOfEffort:
            self.restart(self.taint.tainted)
            return otherwise

    def limit(self, effort: float) -> None:
        """Set the number of values that may be computed from now on."""
        self._effort = effort

    @contextmanager
    def limited(self, effort: float) -> Iterator[None]:
        """Limit the number of values that the body may compute."""
        before, self._effort = self._effort, effort
        try:
            yield
        finally:
            self._effort = before

    def spend(self) -> None:
        """Count one value. Raises OutOfEffort."""
        self._effort -= 1
        if self._effort < 0:
            raise OutOfEffort

    def restart(self, tainted: frozenset[HeaderCell]) -> None:
        """Drop all values; ``tainted`` cells may hold stack addresses.

        Unless ``by_itself``, the taint of a register extends to all contexts of its loop.
        """
        alike: set[HeaderCell] = {
            (twin, cell)
            for loop, cell in tainted
            if isinstance(cell, int) and not self.by_itself
            for twin in self._twins(loop)
        }
        self.spread |= not alike <= tainted
        self.first_failed = self.first_failed or tainted
        self.taint = StackTaint(tainted | alike)
        self._plain: dict[tuple[int, Places], SsaScope] = {}
        self._preserving: dict[tuple[int, bool], SsaScope] = {}
        self._loop_scopes: dict[int, SsaScope] = {}
        self._earlier: dict[int, SsaScope] = {}
        self.whole = SsaScope(self.code, None, self)

    def _twins(self, loop: int) -> list[int]:
        """The indices of a loop in all of its contexts."""
        graph = self.code.graph
        headers = [graph.nodes[other.header].block.addr for other in graph.loops]
        return [i for i, header in enumerate(headers) if header == headers[loop]]

    def renew(self) -> None:
        """Drop the values that depend on unbounded loops, if more loops have a bound now."""
        known = KnownBounds.of(self.code)
        if known == self.known:
            return
        self.known = known
        self._earlier |= self._loop_scopes
        self._loop_scopes = {}
        self.whole = self.whole.renewed()
        self.taint.renew()

    def plain(self, loop: int, places: Places) -> SsaScope:
        """One iteration, at whose start only ``places`` are known."""
        key = loop, places
        if key not in self._plain:
            self._plain[key] = SsaScope(self.code, loop, self, ScopeStart(places))
        return self._plain[key]

    def of_loop(self, loop: int) -> SsaScope:
        """One iteration, with preserved constants and stack addresses from outside."""
        if loop not in self._loop_scopes:
            earlier = self._earlier.get(loop)
            self._loop_scopes[loop] = (
                SsaScope(self.code, loop, self, ScopeStart(outside=True))
                if earlier is None
                else earlier.renewed()
            )
        return self._loop_scopes[loop]

    def preserved(self, loop: int, register: int, outside: SsaScope) -> bool:
        """Whether a loop preserves a register, by its code and the places at its start."""
        if register not in self.code.written(loop):
            return True
        inside = self._preserving_scope(loop, outside)
        preserved = inside.preserves(register)
        outside.used |= inside.used
        return preserved

    def _preserving_scope(self, loop: int, outside: SsaScope) -> SsaScope:
        """An iteration that starts with known places of registers and preserves these registers.

        By induction: the first iteration starts with these places, and each one preserves them. A
        register that is not preserved is dropped, and the others are checked again.
        """
        header = self.code.graph.loops[loop].header
        key = loop, outside.start == header
        known = self._preserving.get(key)
        if known is None:
            places = () if outside.start == header else register_places(self.code, header)
            known = self.plain(loop, places)
            while changed := [r for r, _ in places if not known.preserves(r)]:
                places = tuple((r, p) for r, p in places if r not in changed)
                if SP in changed:
                    places = tuple((r, p) for r, p in places if not p.from_sp)
                known = self.plain(loop, places)
            self._preserving[key] = known
        return known

    def start_value(self, scope: SsaScope, register: int) -> Term | None:
        """A preserved register at a loop's header, if a constant or at a known distance from sp."""
        loop = scope.loop
        if loop is None or register >= FLAG or not self.preserved(loop, register, self.whole):
            return None
        header, entries = scope.start, self.code.graph.loops[loop].entries
        value = self.whole.at_entries(header, entries, register)
        if value.constant is not None:
            return value
        if register == SP or not self.preserved(loop, SP, self.whole):
            return None
        distance = sub(value, self.whole.at_entries(header, entries, SP))
        return None if distance.constant is None else add(scope.at(header, SP), distance)
