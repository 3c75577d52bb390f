"""Values at a point of the code as terms, on demand: gated SSA over the acyclic supergraph.

A ``Scope`` is one pass through a part of the code: an iteration of a loop, from its header on, or
the whole graph from its entry. What the start holds are *leaves*, one symbol per register or
memory cell asked for. Where paths meet, values are joined under the conditions that lead there
(gating). A loop inside the scope is passed once, its last iteration: what it may change is *havoc*
at its header, any word at all; what it saves and restores keeps its value (rule 20).

Memory is followed for cells that nothing but the program's own stores can change: constant
addresses in the image and live stack frames. Any other load is an *input*, any word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopbounds import terms
from loopbounds.code import Code
from loopbounds.effects import FLAG, Load, Store, register_symbol
from loopbounds.interval import interval
from loopbounds.terms import FALSE, TRUE, Term, both, either, ite, negate, sub, sym
from quoll.cfg import EdgeKind
from quoll.valueset import ValueSet

__all__ = ["Cell", "Origin", "Registers", "Scope", "Scopes"]

SP = 13
GATED = 40  # nodes between a join and its dominator, beyond which a join is a free choice
LARGE = 400  # terms in a value, beyond which it is replaced by an unknown word

Cell = int | tuple[Term, int]  # a register, or (address, bytes) of memory
Registers = Callable[[int, int], ValueSet]  # (node, register) -> values when the node begins


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an input comes from: a load or instruction of ``node``, or ``cell`` at a header."""

    node: int
    cell: Cell | None  # what a loop with header ``node`` havocs
    frame: bool  # lost from a stack frame, so it may be a stack address


class Scope:
    """Values within one pass from ``start``; ``loop`` is the loop passed, None for the graph."""

    def __init__(
        self, code: Code, loop: int | None, inner: Scopes, stack_pointer: Term | None = None
    ) -> None:
        self.code = code
        self._loop = loop
        self.inner = inner
        self._stack_pointer = stack_pointer  # at the start, where it is known
        loops = code.graph.loops
        self.start = code.graph.entry if loop is None else loops[loop].header
        self._nodes = None if loop is None else loops[loop].nodes
        self.leaves: dict[Term, Cell] = {}
        self.origin: dict[Term, Origin] = {}  # of inputs and havoc
        self.exact = True  # False once something was given up that the program determines
        self.s1_used = False
        self._at: dict[tuple[int, Cell], Term] = {}
        self._after: dict[tuple[int, Term], Term] = {}
        self._loads: dict[tuple[int, Term], Term] = {}
        self._edges: dict[int, Term] = {}
        self._reach: dict[tuple[int, tuple[int, ...]], dict[int, Term] | None] = {}
        self._changes: dict[tuple[int, Cell], bool] = {}

    # --- Registers and memory cells at node boundaries --------------------------------------

    def at(self, node: int, cell: Cell) -> Term:
        """The value of ``cell`` when ``node`` begins."""
        key = node, cell
        known = self._at.get(key)
        if known is None:
            known = self._at[key] = self._find(node, cell)
        return known

    def after(self, node: int, cell: Cell) -> Term:
        """The value of ``cell`` when ``node`` has run."""
        if isinstance(cell, int):
            written = self.code.effect(node).registers.get(cell)
            return self.at(node, cell) if written is None else self._value(node, written)
        return self.memory(node, 1 << 30, *cell)

    def along(self, edge: int, cell: Cell) -> Term:
        """The value of ``cell`` when control takes ``edge``."""
        taken = self.code.graph.edges[edge]
        if not isinstance(cell, int):
            return self.after(taken.src, cell)
        falls_through = taken.kind is EdgeKind.FALLTHROUGH
        written = self.code.effect(taken.src).on_edge(cell, falls_through)
        if written is None:
            return self.at(taken.src, cell)
        return self._value(taken.src, written)

    def _value(self, node: int, effect: Term) -> Term:
        key = node, effect
        known = self._after.get(key)
        if known is None:
            known = self._after[key] = self.instance(node, effect)
        return known

    def instance(self, node: int, term: Term) -> Term:
        """A term of the effect of ``node``'s block, in this scope."""
        effect = self.code.effect(node)
        values: dict[Term, Term] = {}
        for symbol in terms.symbols([term]):
            if symbol in effect.loads:
                values[symbol] = self._loaded(node, effect.loads[symbol])
            elif symbol in effect.unknown:
                values[symbol] = self._input(node, symbol.name, symbol.width, frame=True)
            else:
                values[symbol] = self.at(node, int(symbol.name.removeprefix("entry")))
        return self._limited(node, terms.substitute(term, values))

    def _limited(self, node: int, term: Term) -> Term:
        if len(term.args) and len(terms.walk([term])) > LARGE:
            self.exact = False
            lost = self.tainted(term)
            return self._input(node, f"large{term.serial}", term.width, frame=lost)
        return term

    def _find(self, node: int, cell: Cell) -> Term:
        """The value at the nearest place above that decides it."""
        while True:
            if node == self.start:
                return self._leaf(cell)
            loop = self.code.acyclic.headers.get(node)
            if loop is not None and self._changed(loop, cell):
                self.exact = False
                return self._input(node, f"havoc_{_name(cell)}", _width(cell), cell)
            edges = self._incoming(node)
            if len(edges) != 1:
                return self._join(node, edges, lambda e: self.along(e, cell))
            node = self.code.graph.edges[edges[0]].src
            if not isinstance(cell, int) or cell in self.code.effect(node).registers:
                return self.along(edges[0], cell)
            known = self._at.get((node, cell))
            if known is not None:
                return known

    def _incoming(self, node: int) -> list[int]:
        """Edges from inside the scope, back edges left out."""
        order = self.code.acyclic.order
        return [
            e
            for e in self.code.acyclic.predecessors[node]
            if order[self.code.graph.edges[e].src] >= 0
            and (self._nodes is None or self.code.graph.edges[e].src in self._nodes)
        ]

    def _leaf(self, cell: Cell) -> Term:
        if cell == SP and self._stack_pointer is not None:
            return self._stack_pointer
        symbol = sym(f"leaf_{self._loop}_{_name(cell)}", _width(cell))
        self.leaves[symbol] = cell
        return symbol

    def _input(
        self, node: int, name: str, width: int, cell: Cell | None = None, frame: bool = False
    ) -> Term:
        symbol = sym(f"{name}_{node}_{self._loop}", width)
        self.origin.setdefault(symbol, Origin(node, cell, frame))
        return symbol

    def after_iteration(self, cell: Cell) -> Term:
        """The value of ``cell`` when an iteration has come back to the header of this loop."""
        assert self._loop is not None
        edges = self.code.graph.loops[self._loop].backs
        return self._join(self.start, edges, lambda e: self.along(e, cell))

    def at_entries(self, header: int, edges: Sequence[int], cell: Cell) -> Term:
        """The value of ``cell`` when a loop is entered, seen from outside."""
        if header == self.start:
            return self._leaf(cell)
        return self._join(header, edges, lambda e: self.along(e, cell))

    def entered(self, node: int) -> Term:
        """What holds when ``node`` is reached, given that its dominator is."""
        edges = self._incoming(node)
        if len(edges) == 1:
            return self.taken(edges[0])
        guards = self._guards(node, edges)
        condition = FALSE
        for guard in guards:
            condition = either(condition, guard)
        return condition

    def unknown(self, node: int, cell: Cell) -> Term:
        """Any word, standing for ``cell`` at ``node``."""
        return self._input(node, f"unknown_{_name(cell)}", _width(cell), frame=True)

    def choice(self, node: int, edge: int) -> Term:
        """A free choice of an edge out of ``node``."""
        return self._input(node, f"way{edge}", 1)

    def source(self, symbol: Term) -> tuple[int, Cell | None]:
        """The node a symbol belongs to, and the cell it holds when that node begins, if any."""
        if symbol in self.leaves:
            return self.start, self.leaves[symbol]
        origin = self.origin[symbol]
        return origin.node, origin.cell

    # --- Joins ------------------------------------------------------------------------------

    def _join(self, node: int, edges: Sequence[int], value: Callable[[int], Term]) -> Term:
        values = [value(e) for e in edges]
        if all(v is values[0] for v in values[1:]):
            return values[0]
        guards = self._guards(node, edges)
        merged = values[-1]
        for guard, v in zip(guards[:-1], values[:-1], strict=True):
            merged = ite(guard, v, merged)
        return self._limited(node, merged)

    def _guards(self, node: int, edges: Sequence[int]) -> list[Term]:
        """Which edge was taken into a join; conditions from its dominator on, or free choices."""
        key = node, tuple(edges)
        if key not in self._reach:
            self._reach[key] = self._reached(node, edges)
        reach = self._reach[key]
        if reach is None:
            self.exact = False
            return [self._input(node, f"choice{e}", 1) for e in edges]
        graph = self.code.graph
        return [both(reach[graph.edges[e].src], self.taken(e)) for e in edges]

    def _reached(self, node: int, edges: Sequence[int]) -> dict[int, Term] | None:
        """For each node between what dominates ``edges`` and ``node``: when it is passed."""
        acyclic, graph = self.code.acyclic, self.code.graph
        stack = [graph.edges[e].src for e in edges]
        top = self._common_dominator(stack)
        between = set(stack)
        stack = [n for n in between if n != top]
        while stack:
            for e in self._incoming(stack.pop()):
                source = graph.edges[e].src
                if source not in between:
                    between.add(source)
                    if source != top:
                        stack.append(source)
                if len(between) > GATED:
                    return None
        reach = {top: TRUE}
        for n in sorted(between - {top}, key=lambda n: acyclic.order[n]):
            condition = FALSE
            for e in self._incoming(n):
                condition = either(condition, both(reach[graph.edges[e].src], self.taken(e)))
            reach[n] = condition
        return reach

    def _common_dominator(self, nodes: Sequence[int]) -> int:
        """The nearest node on all paths to ``nodes``; inside a loop if all of them are."""
        acyclic = self.code.acyclic
        top = nodes[0]
        for other in nodes[1:]:
            while top != other:
                if acyclic.order[top] > acyclic.order[other]:
                    top = acyclic.dominator[top]
                else:
                    other = acyclic.dominator[other]
        return top

    def taken(self, edge: int) -> Term:
        """When control takes ``edge`` out of its node; several that are alike are choices."""
        known = self._edges.get(edge)
        if known is None:
            known = self._edges[edge] = self._taken(edge)
        return known

    def _taken(self, edge: int) -> Term:
        graph = self.code.graph
        source = graph.edges[edge].src
        leaves = self.instance(source, self.code.effect(source).leaves)
        if graph.edges[edge].kind is EdgeKind.FALLTHROUGH:
            return negate(leaves)
        others = [
            e for e in graph.successors[source] if graph.edges[e].kind is not EdgeKind.FALLTHROUGH
        ]
        if len(others) == 1:
            return leaves
        self.exact = False
        return both(leaves, self._input(source, f"way{edge}", 1))

    # --- Memory -----------------------------------------------------------------------------

    def _loaded(self, node: int, load: Load) -> Term:
        key = node, load.symbol
        known = self._loads.get(key)
        if known is None:
            known = self._loads[key] = self._load(node, load)
        return known

    def _load(self, node: int, load: Load) -> Term:
        address = self.instance(node, load.address)
        if address.constant is not None:
            value = self.code.image.constant(address.value, load.size)
            if value is not None:
                return terms.const(value, 8 * load.size)
        if self._followed(node, address, load.size):
            return self.memory(node, load.position, address, load.size)
        frame = self.tainted(address)
        return self._input(node, load.symbol.name, 8 * load.size, frame=frame)

    def _followed(self, node: int, address: Term, size: int) -> bool:
        """Whether only stores of the program change the cell, and its address is one place."""
        if address.constant is not None:
            return self.code.steady(address.value, size)
        if not terms.symbols([address]) <= self.leaves.keys():
            return False
        return self.code.is_frame(address, self.at(node, SP))

    def memory(self, node: int, position: int, address: Term, size: int) -> Term:
        """``size`` bytes at ``address``, as they are before event ``position`` of ``node``."""
        guarded: list[tuple[Term, Term]] = []
        for store in reversed(self.code.effect(node).stores):
            if store.position >= position:
                continue
            overlap = self._overlap(node, store, address, size)
            if overlap is None:
                continue
            if overlap < 0 or overlap + size > store.size:
                self.exact = False
                name = f"after{store.position}_{_name((address, size))}"
                found = self._input(node, name, 8 * size, frame=self.tainted(address))
                break
            whole = self.instance(node, store.value)
            value = terms.extract(whole, 8 * overlap, 8 * size)
            guard = self.instance(node, store.guard)
            if guard is TRUE:
                found = value
                break
            guarded.append((guard, value))
        else:
            found = self.at(node, (address, size))
        for guard, value in reversed(guarded):
            found = ite(guard, value, found)
        return found

    def _overlap(self, node: int, store: Store, address: Term, size: int) -> int | None:
        """Offset of the cell in what is stored; None: disjoint; -1: partly, or not known."""
        target = self.instance(node, store.address)
        distance = sub(address, target)
        if distance.constant is not None:
            offset = distance.value
            if offset >= store.size and offset <= (1 << 32) - size:
                return None
            return offset if offset < store.size else -1
        low, high = interval(distance, self._ranges(distance))
        if low >= store.size and high <= (1 << 32) - size:
            return None
        if self._spared(node, target, address):
            return None
        return -1

    def _ranges(self, term: Term) -> dict[Term, tuple[int, int]]:
        """What value analysis says of registers at loop headers and at the start."""
        found: dict[Term, tuple[int, int]] = {}
        for symbol in terms.symbols([term]):
            node, cell = self.source(symbol)
            if isinstance(cell, int) and cell < FLAG:
                values = self.inner.registers(node, cell)
                found[symbol] = values.low, values.high
        return found

    def _spared(self, node: int, target: Term, address: Term) -> bool:
        """S1 (rule 1): a store of unknown address does not hit live stack frames."""
        if not self.code.s1 or not self.code.is_frame(address, self.at(node, SP)):
            return False
        if target.constant is not None or self.tainted(target):
            return False
        self.s1_used = True
        return True

    def tainted(self, term: Term, visiting: set[tuple[int, Cell]] | None = None) -> bool:
        """Whether a word may be computed from a stack address, so that S1 does not apply."""
        for t in terms.walk([term]):
            if t.op in ("const", "linear") and self.code.near_stack(t.value):
                return True
            if t.op == "sym" and self._tainted_symbol(t, visiting):
                return True
        return False

    def _tainted_symbol(self, symbol: Term, visiting: set[tuple[int, Cell]] | None) -> bool:
        cell = self.leaves.get(symbol)
        if cell is not None:
            if self._loop is None:
                return cell == SP
            return self.inner.tainted_at(self._loop, cell, visiting)
        origin = self.origin[symbol]
        if origin.cell is not None:
            loop = self.code.acyclic.headers[origin.node]
            return self.inner.tainted_at(loop, origin.cell, visiting)
        return origin.frame

    # --- Loops inside -----------------------------------------------------------------------

    def _changed(self, loop: int, cell: Cell) -> bool:
        """Whether a pass through a loop may leave ``cell`` with another value."""
        key = loop, cell
        known = self._changes.get(key)
        if known is None:
            self._changes[key] = True  # while it is being computed
            if isinstance(cell, int):
                known = self._register_changed(loop, cell)
            else:
                known = self._memory_changed(loop, *cell)
            self._changes[key] = known
        return known

    def _register_changed(self, loop: int, register: int) -> bool:
        if register not in self.code.written(loop):
            return False
        inner = self.inner.plain(loop) if register == SP else self.inner.of_loop(loop)
        graph = self.code.graph
        start = inner.at(inner.start, register)
        return any(inner.along(e, register) is not start for e in graph.loops[loop].backs)

    def _memory_changed(self, loop: int, address: Term, size: int) -> bool:
        """Whether a store in the loop may hit the cell; its address does not change in the loop."""
        for node in self.code.graph.loops[loop].nodes:
            for store in self.code.effect(node).stores:
                if self._overlap(node, store, address, size) is not None:
                    return True
        return False


def _width(cell: Cell) -> int:
    if isinstance(cell, int):
        return register_symbol(cell).width
    return 8 * cell[1]


def _name(cell: Cell) -> str:
    if isinstance(cell, int):
        return f"r{cell}" if cell < FLAG else f"f{cell}"
    return f"m{cell[0].serial}_{cell[1]}"


class Scopes:
    """The scope of the whole graph and those of its loops, made when first asked for."""

    def __init__(self, code: Code, registers: Registers) -> None:
        self.code = code
        self.registers = registers
        self.whole = Scope(code, None, self)
        self._loops: dict[int, Scope] = {}
        self._plain: dict[int, Scope] = {}
        self._tainted: dict[tuple[int, Cell], bool] = {}
        self._queries: list[set[tuple[int, Cell]]] = []

    def plain(self, loop: int) -> Scope:
        """One iteration, with nothing known at its start: decides what happens to sp."""
        if loop not in self._plain:
            self._plain[loop] = Scope(self.code, loop, self)
        return self._plain[loop]

    def of_loop(self, loop: int) -> Scope:
        """One iteration; where sp is a constant throughout, it is that constant."""
        if loop not in self._loops:
            stack_pointer = self.whole.at(self.code.graph.loops[loop].header, SP)
            known = None if stack_pointer.constant is None else stack_pointer
            self._loops[loop] = Scope(self.code, loop, self, known)
        return self._loops[loop]

    def tainted_at(self, loop: int, cell: Cell, visiting: set[tuple[int, Cell]] | None) -> bool:
        """Whether a cell may hold a word computed from a stack address when the header runs.

        A least fixed point over loop headers: ``visiting`` are those of this query, whose own
        taint adds nothing. A query inside another (deciding a value that the outer one needs)
        stands alone and takes what is still open outside as tainted.
        """
        key = loop, cell
        if cell == SP or not isinstance(cell, int):
            return True
        known = self._tainted.get(key)
        if known is not None:
            return known
        if visiting is not None and key in visiting:
            return False
        if any(key in outer for outer in self._queries):
            return True
        if visiting is None:
            self._queries.append(set())
            try:
                return self.tainted_at(loop, cell, self._queries[-1])
            finally:
                self._queries.pop()
        first = not visiting
        visiting.add(key)
        result = self._comes_from_stack(loop, cell, visiting)
        if result:
            self._tainted[key] = True
        elif first:
            self._tainted |= dict.fromkeys(visiting - self._tainted.keys(), False)
        return result

    def _comes_from_stack(self, loop: int, cell: int, visiting: set[tuple[int, Cell]]) -> bool:
        graph, scope = self.code.graph, self.of_loop(loop)
        return any(
            self.whole.tainted(self.whole.along(e, cell), visiting)
            for e in graph.loops[loop].entries
        ) or any(scope.tainted(scope.along(e, cell), visiting) for e in graph.loops[loop].backs)
