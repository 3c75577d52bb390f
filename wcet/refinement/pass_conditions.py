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

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import permutations
from typing import TypeVar

from loopbounds.bounds import deep_recursion
from loopbounds.budgets import table
from loopbounds.reduction.constraints import within
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.cell import MemoryCell
from loopbounds.slicing.code import GraphCode, LoopContinuation
from loopbounds.slicing.effects import FLAG
from loopbounds.slicing.gated_ssa import GatedSsa, OutOfEffort, SsaScope
from loopbounds.slicing.slice import described
from loopbounds.slicing.stacks import StackSpans
from loopbounds.slicing.stated_words import about
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import (
    TRUE,
    Term,
    both,
    conjuncts,
    const,
    either,
    eq,
    extract,
    operation,
    sub,
    ule,
)
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
    """Conditions of the passes of one graph, on demand; ``assumed``: the named assumptions used.

    ``most_values``: of a condition in ``taken``. Behind a join of most of the graph, the address
    of a word may depend on each store of the graph, and its term is too large to be of use.
    """

    code: GraphCode
    most_values: float = math.inf
    assumed: set[Assumption] = field(default_factory=set)
    _left_out: set[tuple[int | None, int]] = field(default_factory=set)  # pass, edge
    _ssa: GatedSsa = field(init=False)
    _rounds: dict[int | None, dict[Term, list[Term]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ssa = GatedSsa(self.code)

    @staticmethod
    def of(
        entry: ValuedEntry, bounds: Mapping[int, int], most_values: float = math.inf
    ) -> PassConditions:
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
            ),
            most_values,
        )

    def taken(self, passes: Iterable[Pass]) -> list[dict[int, Term]]:
        """For each pass the condition of each of its edges.

        A condition of more than ``most_values`` values is TRUE: the pass may take the edge. So
        nobody may conclude anything from its complement.
        """
        wanted = list(passes)

        def compute() -> list[dict[int, Term]]:
            found = [self._of_pass(one, self.most_values) for one in wanted]
            for one, taken in zip(wanted, found, strict=True):
                self._follow_rounds(one.loop, taken.values())
            return found

        found = self._verified(compute)
        self._use(one.loop for one in wanted)
        return found

    def again(self, loop: int, edge: int, later: int) -> list[Term]:
        """Conditions that an iteration takes ``edge``, and the one ``later`` does."""
        found = self._verified(lambda: self._again(loop, edge, later))
        self._use([loop])
        return found

    def taken_in_iteration(self, loop: int, edge: int) -> Term | None:
        """The condition that an iteration gets to ``edge`` and takes it; None in an inner loop."""
        found = self._verified(lambda: self._taken_in_iteration(loop, edge))
        self._use([loop])
        return found

    def returning(self, loop: int) -> Term:
        """The condition that an iteration returns to the header; TRUE where it is not known."""
        found = self._verified(lambda: self._returning(loop))
        self._use([loop])
        return found

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
        if not self._ssa.whole.symbols.knows(symbol):
            return None
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
        found = self._verified(lambda: self._trip(loop, inner))
        self._use([loop])
        return found

    def repeated(self, loop: int | None, counts: Iterable[tuple[int, int]]) -> dict[int, Term]:
        """For each loop inside a pass the condition that it executes its header so often.

        Only loops with a proved bound, whose trips are counted.
        """
        found: dict[int, Term] = {}
        for inner, least in counts:
            trip = self.repeats(loop, inner)
            if trip is not None and least <= self.code.bounds[inner]:
                found[inner] = ule(const(least - 1, trip.width), trip)
        return found

    def ranges(self, loop: int | None, conditions: Sequence[Term]) -> list[Term]:
        """Ranges of the symbols in ``conditions`` of a pass, and invariants about them.

        They follow from values, loops and their bounds, and facts about words at the entry.
        """
        scope, values = self._scope(loop), self.code.values
        found, symbols = self._round_facts(loop, conditions), scope.symbols
        read = rewrite.symbols([*conditions, *found])
        found += about(read, scope.known_invariants)
        for symbol in sorted(filter(symbols.knows, read), key=lambda t: t.serial):
            node, cell = symbols.source(symbol)
            if isinstance(cell, int) and cell < FLAG:
                found += within(symbol, values.register(node, cell))
            elif (most := symbols.limit(symbol)) is not None:
                found.append(ule(symbol, const(most, symbol.width)))
        return found

    def common_words(self, loop: int | None, conditions: Sequence[Term]) -> tuple[str, ...]:
        """Descriptions of unknown words that at least two of ``conditions`` read, not of all.

        Words of terms that were computed before a restart (``_verified``) have no description.
        """
        scope = self._scope(loop)
        symbols = (s for one in conditions for s in rewrite.symbols([one]))
        read = Counter(filter(scope.symbols.knows, symbols))
        most = min(2, len(conditions))
        shared = (s for s, times in read.items() if times >= most)
        common = sorted(shared, key=lambda s: (-read[s], s.serial))[:DESCRIBED]
        return tuple(dict.fromkeys(str(described(scope, s)) for s in common))

    def words(self, loop: int | None, conditions: Iterable[Term]) -> dict[Term, str]:
        """The unknown words that conditions of a pass read, described for people."""
        scope = self._scope(loop)
        symbols = sorted(rewrite.symbols(conditions), key=lambda s: s.serial)
        known = scope.symbols.knows
        return {s: str(described(scope, s)) if known(s) else "a word" for s in symbols}

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
        it fails, the terms are computed again without it. Without a condition of too many values
        they are computed again, too: then none depends on its values, which may be unfinished, and
        the assumptions made for them need no proof.
        """
        with deep_recursion():
            while True:
                try:
                    found = compute()
                    if not self._ssa.taint.failed(self._ssa.whole):
                        return found
                except OutOfEffort:
                    self._ssa.limit(math.inf)
                self._ssa.restart(self._ssa.taint.tainted)
                self._rounds.clear()
                self.code.continued.clear()

    def _use(self, loops: Iterable[int | None]) -> None:
        """Note the named assumptions of the values in these scopes."""
        self.assumed.update(self._ssa.whole.used, *(self._scope(loop).used for loop in loops))

    def _trip(self, loop: int | None, inner: int) -> Term | None:
        bound = self.code.bounds.get(inner)
        if bound is None:
            return None
        trip = self._scope(loop).trips.symbol(self.code.graph.loops[inner].header, bound)
        self._follow_rounds(loop, [trip])
        return trip

    def _taken_in_iteration(self, loop: int, edge: int) -> Term | None:
        source = self.code.graph.edges[edge].src
        if self.code.acyclic.innermost[source] != loop:
            return None
        reached = self._arriving(loop, [source]).values()
        return reduce(both, reached, self._of_pass(Pass(loop, (edge,)))[edge])

    def _returning(self, loop: int) -> Term:
        backs = self.code.graph.loops[loop].backs
        taken = [self._taken_in_iteration(loop, edge) for edge in backs]
        return reduce(either, (TRUE if one is None else one for one in taken))

    def _follow_rounds(self, loop: int | None, conditions: Iterable[Term]) -> None:
        """Compute the terms that follow from iterations of the loops that ``conditions`` count."""
        scope, known = self._scope(loop), self._rounds.setdefault(loop, {})
        pending = list(conditions)
        while pending:
            for symbol in rewrite.symbols([pending.pop()]) - known.keys():
                if scope.symbols.limit(symbol) is None:
                    continue
                inner = self.code.acyclic.headers[scope.symbols.source(symbol)[0]]
                if inner not in self.code.continued:
                    self.code.continued[inner] = self._continuation(inner)
                known[symbol] = scope.trips.came_round(symbol)
                pending += known[symbol]

    def _continuation(self, loop: int) -> LoopContinuation:
        """The condition to return to the header, as far as constants move its words."""
        scope = self._scope(loop)
        conditions = list(conjuncts(self._returning(loop)))
        cells, steps = scope.symbols.leaves, dict[Term, int]()
        for leaf in rewrite.symbols(conditions) & cells.keys():
            step = sub(self._decided(scope, scope.next_visit(cells[leaf])), leaf).constant
            if step is not None:
                steps[leaf] = step
        held = tuple(c for c in conditions if rewrite.symbols([c]) <= steps.keys())
        leaves = {leaf: (cells[leaf], step) for leaf, step in steps.items()}
        return LoopContinuation(held, leaves, frozenset(scope.used))

    def _round_facts(self, loop: int | None, conditions: Iterable[Term]) -> list[Term]:
        """The terms that follow from the iterations of all loops that ``conditions`` count."""
        known, found = self._rounds.get(loop, {}), list[Term]()
        pending, seen = list(conditions), set[Term]()
        while pending:
            new = rewrite.symbols([pending.pop()]) & known.keys() - seen
            seen |= new
            more = [fact for trip in sorted(new, key=lambda t: t.serial) for fact in known[trip]]
            found += more
            pending += more
        return found

    def _of_pass(self, one: Pass, most_values: float = math.inf) -> dict[int, Term]:
        """The conditions; raises OutOfEffort after one with more values, and leaves it out then."""
        scope = self._scope(one.loop)
        scope.invariants()
        found: dict[int, Term] = {}
        for edge in one.edges:
            if (one.loop, edge) in self._left_out and most_values < math.inf:
                found[edge] = TRUE
                continue
            self._ssa.limit(most_values)
            try:
                found[edge] = self._condition(scope, edge)
            except OutOfEffort:
                self._left_out.add((one.loop, edge))
                raise
            self._ssa.limit(math.inf)
        parts = parts_of_words(scope, rewrite.symbols(found.values()))
        return {edge: rewrite.substitute(term, parts) for edge, term in found.items()}

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
        reached = self._taken_in_iteration(loop, edge)
        first = self._condition(scope, edge) if reached is None else reached
        facts = self.ranges(loop, [first])
        iterations = LaterIterations(scope, lambda term: self._decided(scope, term))
        return [first, *facts, *iterations.after([first, *facts], later)]

    def _condition(self, scope: SsaScope, edge: int) -> Term:
        """The condition of an edge, and that control comes along it to a join."""
        taken = self._decided(scope, scope.gates.taken(edge))
        inside = scope.contains(self.code.graph.edges[edge].dst)
        return both(taken, scope.gates.arrived(edge)) if inside else taken

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


def parts_of_words(scope: SsaScope, symbols: Iterable[Term]) -> dict[Term, Term]:
    """The words at the start of a scope that are parts of other ones among ``symbols``."""
    leaves = scope.symbols.leaves
    cells = [(s, leaves[s]) for s in sorted(symbols, key=lambda s: s.serial) if s in leaves]
    words = [(s, cell) for s, cell in cells if isinstance(cell, MemoryCell) and not cell.saved]
    found: dict[Term, Term] = {}
    for (part, inside), (word, cell) in permutations(words, 2):
        offset = sub(inside.address, cell.address).constant
        if inside.size < cell.size and offset is not None and offset + inside.size <= cell.size:
            found[part] = extract(word, 8 * offset, 8 * inside.size)
    return found


def looks_of(scope: SsaScope, symbol: Term) -> Iterator[tuple[Hashable, ...]]:
    """The keys of ``PassConditions.looks`` for a word; none for a register, or of another scope."""
    if not scope.symbols.knows(symbol):
        return
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
