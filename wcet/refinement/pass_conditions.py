"""The conditions under which a pass takes its edges, as terms over one set of symbols.

They are the gates of gated SSA (``loopbounds.slicing.gated_ssa``), over *all* paths of the pass: a
value behind a join is the choice among the values of all paths there, a cell that an inner loop or
an aliasing store may change is any word, and so is a load from memory that others may write. So for
each execution there is one assignment of the symbols, under which the condition of each edge tells
whether the pass takes the edge when it is at its source. Symbols of nodes that the pass does not
execute may have any value. Of several targets of a branch, one is taken if it is the address to
which control goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

from loopbounds.bounds import deep_recursion
from loopbounds.budgets import table
from loopbounds.reduction.constraints import within
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.cell import MemoryCell
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.effects import FLAG
from loopbounds.slicing.gated_ssa import GatedSsa, SsaScope
from loopbounds.slicing.slice import described
from loopbounds.slicing.stacks import StackSpans
from loopbounds.slicing.stated_words import about
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import TRUE, Term, both, const, either, eq, operation, ule
from quoll.arm.insn import PC, Insn
from quoll.assumptions import Assumption
from quoll.cfg.cfg import EdgeKind
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.bounded_addresses import BoundedAddresses
from quoll.value_analysis.value_results import ValueResults
from wcet.analysis.entry_stages import invariants_at
from wcet.analysis.preparation import ValuedEntry
from wcet.refinement.iterations import LaterIterations
from wcet.refinement.passes import Pass

__all__ = ["HeaderWord", "PassConditions"]

T = TypeVar("T")
TO_A_TARGET = (EdgeKind.INDIRECT, EdgeKind.CALL)
DESCRIBED = 6  # most words: a core may depend on every word that a loop changes
ALIGNED = {False: -4, True: -2}  # the bits of a target that count, by instruction set


@dataclass(frozen=True, slots=True)
class HeaderWord:
    """A word at a header: now, at the next execution, and its constant when the loop is entered."""

    here: Term
    later: Term
    first: int | None


@dataclass(frozen=True, slots=True)
class _BoundedValues:
    """``values`` with the addresses that bounds of loops leave: implements ``KnownValues``."""

    values: ValueResults
    addresses: BoundedAddresses

    def register(self, node: int, register: int) -> ValueSet:
        return self.values.register(node, register)

    def access(self, node: int, insn: int) -> ValueSet | None:
        return self.addresses.access(node, insn)

    def frame_register(self, node: int, register: int) -> ValueSet | None:
        return self.values.frame_register(node, register)

    def frame_access(self, node: int, insn: int) -> ValueSet | None:
        return self.values.frame_access(node, insn)

    def hands_on_a_stack_address(self, node: int) -> bool:
        return self.values.hands_on_a_stack_address(node)


@dataclass(slots=True)
class PassConditions:
    """Conditions of the passes of one graph, on demand; ``assumed``: the named assumptions used."""

    code: GraphCode
    assumed: set[Assumption] = field(default_factory=set)
    _ssa: GatedSsa = field(init=False)

    def __post_init__(self) -> None:
        self._ssa = GatedSsa(self.code)

    @staticmethod
    def of(entry: ValuedEntry, bounds: Mapping[int, int]) -> PassConditions:
        """The conditions in the graph of an entry; ``bounds``: of its loops, proved."""
        graph, code, values = entry.graph, entry.code, entry.values
        stacks = StackSpans.of((node.block for node in graph.nodes), code.run.image)
        return PassConditions(
            GraphCode(
                graph,
                AcyclicGraph.of(graph),
                code.run.image,
                _BoundedValues(values, BoundedAddresses(graph, values, bounds)),
                code.origin.stacks.joined(stacks),
                bounds=dict(bounds),
                at_start=not code.origin.called,
                s1=code.run.options.bounds.s1,
                arrived=True,
                pointed=True,
                invariants=(invariants := invariants_at(code)),
                by_address=bool(invariants),
            )
        )

    def taken(self, passes: Iterable[Pass]) -> list[dict[int, Term]]:
        """For each pass the condition of each of its edges."""
        wanted = list(passes)
        found = self._verified(lambda: [self._of_pass(one) for one in wanted])
        self._use(one.loop for one in wanted)
        return found

    def again(self, loop: int, edge: int, later: int) -> list[Term]:
        """Conditions that an iteration takes ``edge``, and the one ``later`` does."""
        found = self._verified(lambda: self._again(loop, edge, later))
        self._use([loop])
        return found

    def taken_in_iteration(self, loop: int, edge: int) -> Term | None:
        """The condition that an iteration gets to ``edge`` and takes it; None in an inner loop."""
        source = self.code.graph.edges[edge].src
        if self.code.acyclic.innermost[source] != loop:
            return None
        reached = self.arriving(loop, [source]).values()
        [taken] = self.taken([Pass(loop, (edge,))])
        return reduce(both, reached, taken[edge])

    def returning(self, loop: int) -> Term:
        """The condition that an iteration returns to the header; TRUE where it is not known."""
        taken = [self.taken_in_iteration(loop, edge) for edge in self.code.graph.loops[loop].backs]
        return reduce(either, (TRUE if one is None else one for one in taken))

    def header_words(self, loop: int, conditions: Sequence[Term]) -> list[HeaderWord]:
        """The words at the header of a loop in ``conditions`` of an iteration."""
        found = self._verified(lambda: self._header_words(loop, conditions))
        self._use([loop, self.code.graph.loops[loop].parent])
        return found

    def arriving(self, loop: int | None, nodes: Iterable[int]) -> dict[int, Term]:
        """By node, conditions under which a pass reaches all of ``nodes``.

        Each is in no loop inside the pass, or the header of one. The keys are the nodes and their
        dominators: a pass that reaches a node has reached each dominator from the one before.
        """
        wanted = list(nodes)
        found = self._verified(lambda: self._arriving(loop, wanted))
        self._use([loop])
        return found

    def at_end(
        self, node: int, reached: int, cells: Sequence[MemoryCell]
    ) -> tuple[dict[int, Term], list[Term]]:
        """The conditions of a path that ends after ``node``, and the words of ``cells`` then.

        ``reached``: the node, or the header of the outermost loop around it.
        """

        def compute() -> tuple[dict[int, Term], list[Term]]:
            scope = self._ssa.whole
            words = [self._decided(scope, scope.after(node, cell)) for cell in cells]
            return self._arriving(None, [reached]), words

        found = self._verified(compute)
        self._use([None])
        return found

    def stored(self, cells: Sequence[MemoryCell]) -> bool:
        """Whether any store of the graph may hit one of ``cells``."""
        found = self._verified(lambda: any(map(self._ssa.whole.memory.stored, cells)))
        self._use([None])
        return found

    def memory_at_start(self, terms: Iterable[Term]) -> dict[Term, MemoryCell]:
        """The words of memory at the entry in ``terms``."""
        leaves = self._ssa.whole.symbols.leaves
        found = ((s, leaves.get(s)) for s in rewrite.symbols(terms))
        return {s: cell for s, cell in found if isinstance(cell, MemoryCell)}

    def store_behind(self, symbol: Term) -> Insn | None:
        """The store that may have hit the word which ``symbol`` stands for; None: another word."""
        node, _ = self._ssa.whole.symbols.source(symbol)
        block = self.code.graph.nodes[node].block
        for store in self.code.effect(node).stores:
            if symbol.name.startswith(f"after{store.position}_"):
                return block.insns[store.insn]
        return None

    def registers_at_start(self, terms: Iterable[Term]) -> dict[Term, int]:
        """The general registers at the entry in ``terms``."""
        leaves = self._ssa.whole.symbols.leaves
        found = ((s, leaves.get(s)) for s in rewrite.symbols(terms))
        return {s: cell for s, cell in found if isinstance(cell, int) and cell < PC}

    def repeats(self, loop: int | None, inner: int) -> Term | None:
        """The word that counts how often a loop inside a pass returns; None without a bound."""
        bound = self.code.bounds.get(inner)
        header = self.code.graph.loops[inner].header
        return None if bound is None else self._scope(loop).trips.symbol(header, bound)

    def repeated(self, loop: int | None, counts: Iterable[tuple[int, int]]) -> dict[int, Term]:
        """For each loop inside a pass the condition that it executes its header so often.

        Only loops with a proved bound, whose trips are counted.
        """
        scope, loops = self._scope(loop), self.code.graph.loops
        found: dict[int, Term] = {}
        for inner, least in counts:
            bound = self.code.bounds.get(inner)
            if bound is not None and least <= bound:
                trip = scope.trips.symbol(loops[inner].header, bound)
                found[inner] = ule(const(least - 1, trip.width), trip)
        return found

    def ranges(self, loop: int | None, conditions: Iterable[Term]) -> list[Term]:
        """Ranges of the symbols in ``conditions`` of a pass, and invariants about them.

        They follow from values, bounds of loops, and facts about words at the entry.
        """
        scope, values, read = self._scope(loop), self.code.values, rewrite.symbols(conditions)
        found, symbols = about(read, scope.known_invariants), scope.symbols
        for symbol in sorted(read, key=lambda t: t.serial):
            node, cell = symbols.source(symbol)
            if isinstance(cell, int) and cell < FLAG:
                found += within(symbol, values.register(node, cell))
            elif (most := symbols.limit(symbol)) is not None:
                found.append(ule(symbol, const(most, symbol.width)))
        return found

    def common_words(self, loop: int | None, conditions: Sequence[Term]) -> tuple[str, ...]:
        """Descriptions of unknown words that at least two of ``conditions`` read, not of all."""
        read = Counter(s for one in conditions for s in rewrite.symbols([one]))
        most = min(2, len(conditions))
        shared = (s for s, times in read.items() if times >= most)
        common = sorted(shared, key=lambda s: (-read[s], s.serial))[:DESCRIBED]
        return tuple(dict.fromkeys(str(described(self._scope(loop), s)) for s in common))

    def words(self, loop: int | None, conditions: Iterable[Term]) -> dict[Term, str]:
        """The unknown words that conditions of a pass read, described for people."""
        scope = self._scope(loop)
        symbols = sorted(rewrite.symbols(conditions), key=lambda s: s.serial)
        return {s: str(described(scope, s)) for s in symbols}

    def looks(self, loop: int | None, condition: Term) -> dict[Hashable, Term]:
        """The words of memory in a condition, by keys that are equal for words that look the same.

        The keys of a word: its address; the source line of its load; its offset, unless that is 0.
        """
        scope = self._scope(loop)
        found: dict[Hashable, Term] = {}
        for symbol in sorted(rewrite.symbols([condition]), key=lambda s: s.serial):
            for key in looks_of(scope, symbol):
                found.setdefault((*key, symbol.width), symbol)
        return found

    def _verified(self, compute: Callable[[], T]) -> T:
        """The result of ``compute``, with verified assumptions.

        Words are assumed to be no stack addresses. That is verified for all executions, and where
        it fails, the terms are computed again without it.
        """
        with deep_recursion():
            while True:
                found = compute()
                if not self._ssa.taint.failed(self._ssa.whole):
                    return found
                self._ssa.restart(self._ssa.taint.tainted)

    def _use(self, loops: Iterable[int | None]) -> None:
        """Note the named assumptions of the values in these scopes."""
        self.assumed.update(self._ssa.whole.used, *(self._scope(loop).used for loop in loops))

    def _of_pass(self, one: Pass) -> dict[int, Term]:
        scope = self._scope(one.loop)
        scope.invariants()
        return {edge: self._condition(scope, edge) for edge in one.edges}

    def _arriving(self, loop: int | None, nodes: Iterable[int]) -> dict[int, Term]:
        scope, acyclic = self._scope(loop), self.code.acyclic
        scope.invariants()
        around = -1 if loop is None else loop
        chain = dict.fromkeys(nodes)
        assert all(map(scope.contains, chain)), "the pass goes through them"
        for node in tuple(chain):
            at = node
            while at != scope.start:
                if acyclic.innermost[at] == around:  # it is executed once in a pass
                    chain[at] = None
                at = acyclic.dominator[at]
        reached = sorted(chain.keys() - {scope.start}, key=lambda n: acyclic.order[n])
        return {n: self._decided(scope, scope.gates.entered(n)) for n in reached}

    def _header_words(self, loop: int, conditions: Sequence[Term]) -> list[HeaderWord]:
        scope, around = self._scope(loop), self.code.graph.loops[loop]
        outer, cells = self._scope(around.parent), scope.symbols.leaves
        words: list[HeaderWord] = []
        for leaf in sorted(rewrite.symbols(conditions) & cells.keys(), key=lambda s: s.serial):
            place = outer.outside(loop, around.header, cells[leaf])
            first = None if place is None else outer.before_loop(around.header, place).constant
            words.append(
                HeaderWord(leaf, self._decided(scope, scope.next_visit(cells[leaf])), first)
            )
        return words

    def _again(self, loop: int, edge: int, later: int) -> list[Term]:
        scope = self._scope(loop)
        scope.invariants()
        first = self._condition(scope, edge)
        facts = self.ranges(loop, [first])
        iterations = LaterIterations(scope, lambda term: self._decided(scope, term))
        return [first, *facts, *iterations.after([first, *facts], later)]

    def _condition(self, scope: SsaScope, edge: int) -> Term:
        return self._decided(scope, scope.gates.taken(edge))

    def _decided(self, scope: SsaScope, term: Term) -> Term:
        """``term`` with choices among targets as comparisons of addresses, unless it grows large.

        The address of a later branch may depend on an earlier choice.
        """
        done: set[Term] = set()
        while ways := rewrite.symbols([term]) & scope.gates.ways.keys() - done:
            done |= ways
            known = {way: self._goes_to(scope, scope.gates.ways[way]) for way in ways}
            chosen = {way: target for way, target in known.items() if target is not None}
            decided = rewrite.substitute(term, chosen)
            if rewrite.size(decided) > table.LARGE_CONDITION:
                break
            term = decided
        return term

    def _goes_to(self, scope: SsaScope, edge: int) -> Term | None:
        """The condition that control goes to the target of ``edge`` if it leaves; None: unknown."""
        taken, nodes = self.code.graph.edges[edge], self.code.graph.nodes
        target = self.code.effect(taken.src).target
        if target is None or taken.kind not in TO_A_TARGET:
            return None
        first = nodes[taken.dst].block.insns[0]
        counting = const(ALIGNED[first.thumb], 32)
        address = operation("and", scope.instance(taken.src, target), counting)
        return eq(address, const(first.addr, 32))

    def _scope(self, loop: int | None) -> SsaScope:
        return self._ssa.whole if loop is None else self._ssa.of_loop(loop)


def looks_of(scope: SsaScope, symbol: Term) -> Iterator[tuple[Hashable, ...]]:
    """The keys of ``PassConditions.looks`` for a word; none for a register."""
    node, cell = scope.symbols.source(symbol)
    if isinstance(cell, MemoryCell):
        yield "word", cell.address
    load = scope.memory.load_of(node, symbol) if cell is None else None
    if load is None:
        return
    if symbol in scope.memory.addresses:
        yield "word", scope.memory.addresses[symbol]
    insn = scope.code.graph.nodes[node].block.insns[load.insn]
    memory = insn.memory
    if memory is None or memory.base in (None, PC):
        return
    line = scope.code.image.line(insn.addr)
    if line is not None:
        yield "line", line.path, line.line, memory.displacement
    if memory.displacement:
        yield "field", memory.displacement
