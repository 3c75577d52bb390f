"""The model of a loop in the supergraph: the values that decide how often its header runs.

The slice starts with the condition under which an iteration returns to the header. It adds the
cells that the condition reads at the header, the values that an iteration leaves in these cells,
and so on until it reads no new cell. Cells that an iteration does not change, and initial values,
are traced through the whole graph to their origins; an unknown origin becomes a parameter of the
model, within the range that value analysis gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from itertools import islice

from loopbounds.budgets import table
from loopbounds.reduction.constraints import UnknownWords, conjuncts, relevant, says_all, within
from loopbounds.reduction.lists import ELEMENTS, RANK, ranked
from loopbounds.reduction.simplify import simplified
from loopbounds.slicing.cell import STACK, Cell, HeaderCell
from loopbounds.slicing.code import GraphCode, LoopContinuation
from loopbounds.slicing.effects import FLAG, LoadEffect
from loopbounds.slicing.gated_ssa import GatedSsa, OutOfEffort, SsaScope
from loopbounds.slicing.iteration import LoopIteration
from loopbounds.slicing.stated_words import about
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import TRUE, Term, both, const, sym
from loopbounds.transition.model import LoopModel, StateVariable
from quoll.arm.insn import PC, SP, Condition
from quoll.assumptions import Assumption
from quoll.cfg.cfg import Block
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["RegisterDecidedLoop", "Slice", "WordDescription", "described", "slice_loops"]

ARGUMENTS = range(13)  # registers that may hold any word when an entry begins


@dataclass(frozen=True, slots=True)
class WordDescription:
    """An unknown word of a model, described for people.

    ``tip`` proposes a fact that bounds the word; "" where no register holds it.
    """

    name: str
    place: str
    tip: str

    def __str__(self) -> str:
        return f"{self.name} at {self.place}"


@dataclass(frozen=True, slots=True)
class RegisterDecidedLoop:
    """A loop whose only unknown inputs are registers at the entry of the graph.

    ``constraints`` of the model hold exactly when the loop is entered, so that each of its runs is
    one of the program, if inner loops terminate. ``numbers``: the registers of the parameters.
    """

    model: LoopModel
    numbers: tuple[int, ...]

    @property
    def registers(self) -> tuple[str, ...]:
        """The names of the registers."""
        return tuple(f"r{number}" for number in self.numbers)


@dataclass(frozen=True, slots=True)
class Slice:
    """The ``model`` of ``loop``. ``given``: parameters that may really be any word (rule 22).

    The other parameters, and all inputs, are words that the analysis lost. ``origins`` describes
    each symbol of the model, by name.
    """

    loop: int
    model: LoopModel
    given: frozenset[str]
    origins: dict[str, WordDescription]
    assumed: frozenset[Assumption]  # named assumptions (rules 1, 34)
    havoc: dict[Term, int]  # symbols -> the unbounded loop that leaves them behind
    trips: dict[int, Term]  # loop -> parameter: its completed iterations
    cells: dict[Term, Cell]  # the cells of the state variables
    alone: Callable[
        [], RegisterDecidedLoop | None
    ]  # the model, if registers at the entry decide everything, and the effort suffices
    continued: LoopContinuation
    walks: Callable[[], bool]  # it follows the links of one list
    says_all: Callable[[Set[str]], bool]  # the model has every condition about these parameters

    def steps(self) -> dict[Cell, int]:
        """The constants that an iteration adds to cells, if it returns to the header."""
        found: dict[Cell, int] = {}
        for v in simplified(self.model).state:
            step = terms.sub(v.next, v.symbol).constant
            if step is not None and v.symbol in self.cells:
                found[self.cells[v.symbol]] = step
        return found


def slice_loops(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
    """The model of each of ``loops``, with the bounds proved so far.

    Slicing assumes that cells hold no stack address, checks this now and then, and restarts with
    the failed cells tainted until all assumptions hold. Loops with failed assumptions are sliced
    first, as they may need more.

    Raises OutOfEffort where the effort of ``ssa`` ends; all values are dropped then, as some are
    unfinished, or depend on an assumption that is not verified.
    """
    ssa.renew()
    try:
        return _sliced(ssa, loops)
    except OutOfEffort:
        ssa.restart(ssa.taint.tainted)
        raise


def _sliced(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
    """The models under assumptions that hold."""
    slices: dict[int, Slice] = {}
    assumed: dict[int, frozenset[HeaderCell]] = {}
    pending = list(loops)
    while pending:
        loop = pending.pop(0)
        slices[loop] = _Slicer(ssa.code, ssa, loop, ssa.code.lists.get(loop)).build()
        assumed[loop] = ssa.taint.newly_assumed()
        if not pending or len(slices).bit_count() == 1:
            failed = ssa.taint.failed(ssa.whole)
            if failed:
                ssa.restart(ssa.taint.tainted)
                pending = sorted(loops, key=lambda i: not assumed.get(i, frozenset()) & failed)
                slices.clear()
    return slices


class _Slicer:
    def __init__(self, code: GraphCode, ssa: GatedSsa, loop: int, most: int | None) -> None:
        self._code, self._loop = code, code.graph.loops[loop]
        self._scope: SsaScope = ssa.of_loop(loop)
        self._whole: SsaScope = ssa.whole
        self._given: frozenset[str] = frozenset()
        self._havoc: dict[Term, int] = {}
        self._known_trips: dict[int, Term] = {}
        self._ssa, self._most = ssa, most  # elements of the list that the loop walks
        self._walks = False
        self._address = code.graph.nodes[self._loop.header].block.addr
        self._cells: dict[Term, Cell] = {}
        self._parameters: dict[str, Term] = {}  # by name in the model
        self._constraints: set[Term] = set()
        self._changing: dict[Term, Term] = {}  # leaf -> value after an iteration
        self._fixed: dict[Term, Term] = {}  # leaf -> value at entry
        self._lost: set[Term] = set()  # leaves that are any word in each iteration

    def build(self) -> Slice:
        iteration = LoopIteration(self._code, self._scope, self._loop)
        self._again, self._exits = iteration.again, iteration.exits
        self._close()
        initial = {leaf: self._entry(self._scope.symbols.leaves[leaf]) for leaf in self._changing}
        model, origins = self._assemble(initial)
        assumed = frozenset(self._scope.used | self._whole.used)
        return Slice(
            self._loop.index,
            model,
            self._given,
            origins,
            assumed,
            self._havoc,
            self._known_trips,
            self._cells,
            lambda: self._ssa.within_effort(lambda: self._alone(initial), None),
            self._continued(assumed),
            lambda: self._ssa.within_effort(self._is_walk, False),
            lambda deciding: self._ssa.within_effort(lambda: self._says_all(deciding), False),
        )

    def _is_walk(self) -> bool:
        if self._most is None:
            other = _Slicer(self._code, self._ssa, self._loop.index, 0)
            other.build()
            self._walks = other._walks
        return self._walks

    def _continued(self, assumed: frozenset[Assumption]) -> LoopContinuation:
        """The conjuncts of ``again`` whose cells all move by constants."""
        steps = {leaf: terms.sub(after, leaf).constant for leaf, after in self._changing.items()}
        steps |= dict.fromkeys(self._fixed, 0)
        leaves = {
            leaf: (self._scope.symbols.leaves[leaf], step)
            for leaf, step in steps.items()
            if step is not None
        }
        conditions = (c for c in terms.conjuncts(self._again) if c.constant is None)
        held = tuple(c for c in conditions if rewrite.symbols([c]) <= leaves.keys())
        used = rewrite.symbols(held)
        return LoopContinuation(
            held, {leaf: leaves[leaf] for leaf in leaves if leaf in used}, assumed
        )

    # --- Cells that the step reads -----------------------------------------------------------

    def _close(self) -> None:
        """Add the cells that the step reads until it reads no new one."""
        pending = [self._again]
        seen: set[Term] = set()
        addresses = {} if self._most is None else self._scope.memory.addresses
        while pending:
            for leaf in sorted(rewrite.symbols([pending.pop()]) - seen, key=lambda t: t.serial):
                seen.add(leaf)
                if leaf in addresses:
                    pending.append(addresses[leaf])
                if leaf not in self._scope.symbols.leaves:
                    continue
                cell = self._scope.symbols.leaves[leaf]
                if len(self._changing) >= table.SLICE_CELLS:
                    self._lost.add(leaf)
                    continue
                after = self._scope.next_visit(cell)
                if after is leaf:
                    self._fixed[leaf] = self._entry(cell)
                else:
                    self._changing[leaf] = after
                    pending.append(after)

    # --- The start --------------------------------------------------------------------------

    def _entry(self, cell: Cell) -> Term:
        """The value of a cell when the loop is entered, over leaves and inputs of the graph."""
        if not isinstance(cell, int):
            address = self._global_address(cell.address)
            if address is None:
                return self._whole.symbols.lost(self._loop.header, "unknown", cell)
            cell = cell._replace(address=address)
        return self._whole.at_entries(self._loop.header, self._loop.entries, cell)

    def _global_address(self, address: Term) -> Term | None:
        """An address over leaves of this loop, at its first visit, over leaves of the graph."""
        values: dict[Term, Term] = {}
        for leaf in rewrite.symbols([address]):
            cell = self._scope.symbols.leaves.get(leaf)
            if cell is None:
                return None
            values[leaf] = self._entry(cell)
        result = rewrite.substitute(address, values)
        return result if rewrite.symbols([result]) <= self._whole.symbols.leaves.keys() else None

    def _conditions(self, wanted: set[Term]) -> list[Term]:
        """Conditions that hold whenever the loop is entered, about ``wanted`` symbols."""
        if not wanted:
            return []
        return relevant(self._way_in(table.WAY_IN), wanted)

    def _alone(self, initial: dict[Term, Term]) -> RegisterDecidedLoop | None:
        """The model with all conditions on the way from the entry; None if other words decide."""
        steps = [
            rewrite.substitute(t, self._fixed) for t in (self._again, *self._changing.values())
        ]
        conditions = [] if self._lost else self._way_in()
        parameters = rewrite.symbols([*steps, *initial.values(), *conditions]) - initial.keys()
        registers = {s: self._whole.symbols.leaves.get(s) for s in _sorted(parameters)}
        if self._lost or any(cell not in ARGUMENTS for cell in registers.values()):
            return None
        again, *following = steps
        conditions += self._ranges(initial) + self._parameter_ranges(parameters)
        state = tuple(
            StateVariable(leaf, value, after)
            for (leaf, value), after in zip(initial.items(), following, strict=True)
        )
        model = LoopModel(tuple(registers), state, (), tuple(conditions), again)
        numbers = tuple(cell for cell in registers.values() if isinstance(cell, int))
        return RegisterDecidedLoop(model, numbers)

    def _way_in(self, most: int | None = None) -> list[Term]:
        """The condition to enter the loop, or the nearest ``most`` conjuncts of it."""
        return [self._whole.gates.entered(node) for node, _ in islice(self._above(), most)]

    def _above(self) -> Iterator[tuple[int, int]]:
        """The nodes that dominate the loop, the nearest first, each with its own dominator."""
        node = self._loop.header
        while (above := self._code.acyclic.dominator[node]) != node:
            yield node, above
            node = above

    def _certain(self) -> list[Term]:
        """Conditions on the way in that always hold after earlier loops with a single exit."""
        code = self._code
        left = [
            node
            for node, above in self._above()
            if any(
                self._loop.header not in code.graph.loops[loop].nodes and code.has_one_way_out(loop)
                for loop in code.acyclic.around(above)
            )
        ]
        return [self._whole.gates.entered(node) for node in left]

    def _deciding(self, way_in: Sequence[Term]) -> dict[Term, Term]:
        """Conjuncts of the way in that may fail, with their terms in first iterations."""
        parts = conjuncts(way_in) - conjuncts(self._certain())
        return {part: self._in_first_turns(part) for part in parts}

    def _in_first_turns(self, term: Term) -> Term:
        """A term of the whole graph in the first iteration of all enclosing loops."""
        loops = self._code.graph.loops
        for _ in loops:
            found: dict[Term, Term] = {}
            for symbol in rewrite.symbols([term]) & self._whole.symbols.origin.keys():
                origin = self._whole.symbols.origin[symbol]
                around = self._code.acyclic.headers.get(origin.node)
                if around is None or self._loop.header not in loops[around].nodes:
                    continue
                if origin.most is not None:
                    found[symbol] = const(0, symbol.width)
                elif origin.cell is not None:
                    entries = loops[around].entries
                    found[symbol] = self._whole.at_entries(origin.node, entries, origin.cell)
            if not found:
                break
            term = rewrite.substitute(term, found)
        return term

    def _says_all(self, deciding: Set[str]) -> bool:
        whole = self._whole
        held = {s: cell for s, cell in whole.symbols.leaves.items() if not isinstance(cell, int)}
        cells = {s: (cell.address, cell.size) for s, cell in held.items()}
        words = UnknownWords(
            whole.symbols.is_given, whole.memory.addresses, cells, self._code.image.memory
        )
        way_in = self._way_in()
        return says_all(
            self._constraints,
            way_in,
            self._deciding(way_in),
            set(self._parameters.values()),
            {symbol for name, symbol in self._parameters.items() if name in deciding},
            words,
        )

    # --- The model --------------------------------------------------------------------------

    def _assemble(self, initial: dict[Term, Term]) -> tuple[LoopModel, dict[str, WordDescription]]:
        starts = list(initial.values())
        at_entry = rewrite.Substitution(self._fixed)
        exits = list(map(at_entry, self._exits))
        steps = list(map(at_entry, (self._again, *self._changing.values())))
        leaves = list(self._changing)
        local = self._scope.symbols.origin.keys() | self._lost
        inputs = _sorted(rewrite.symbols(steps) & local)
        trips = self._trips(self._scope, inputs)
        known = {*leaves, *inputs, *self._fixed}
        rounds = self._rounds(self._scope, inputs)
        trips += [at_entry(c) for c in rounds if rewrite.symbols([c]) <= known]
        steps[0] = reduce(both, trips, steps[0])
        exits += trips
        known = set(leaves) | set(inputs)
        wanted = rewrite.symbols([*starts, *self._fixed.values(), *steps]) - known
        conditions = self._rounds(self._whole, rewrite.symbols([*starts, *steps]))
        wanted |= rewrite.symbols(conditions)
        conditions += self._conditions(wanted)
        conditions += self._ranges(initial)
        wanted |= rewrite.symbols(conditions)
        conditions += about(wanted, self._whole.invariants())
        wanted |= rewrite.symbols(conditions)
        conditions += self._parameter_ranges(wanted)
        parameters = _sorted(rewrite.symbols([*starts, *steps, *conditions]) - known)
        self._constraints = set(conditions)
        names = _rename("x", leaves) | _rename("i", inputs) | _rename("p", parameters)
        self._parameters = {names[p].name: p for p in parameters}
        self._given = frozenset(
            names[p].name for p in parameters if self._whole.symbols.is_given(p)
        )
        scopes = (self._scope, self._whole)
        origins = {
            names[s].name: described(next(x for x in scopes if x.symbols.knows(s)), s)
            for s in (*leaves, *inputs, *parameters)
        }
        self._cells = {names[leaf]: self._scope.symbols.leaves[leaf] for leaf in leaves}
        self._known_trips = {
            self._code.acyclic.headers[self._whole.symbols.origin[p].node]: names[p]
            for p in parameters
            if self._whole.symbols.limit(p) is not None
        }
        self._havoc = {
            names[s]: loop
            for s in (*inputs, *parameters)
            if (loop := self._havocked_by(s)) is not None
        }
        named = rewrite.Substitution(names)
        again, *following = map(named, steps)
        state = tuple(
            StateVariable(names[leaf], named(initial[leaf]), after)
            for leaf, after in zip(leaves, following, strict=True)
        )
        hints = [named(h) for h in self._hints(leaves)]
        model = LoopModel(
            tuple(names[p] for p in parameters),
            state,
            tuple(names[i] for i in inputs),
            tuple(dict.fromkeys(c for c in map(named, conditions) if c is not TRUE)),
            again,
            tuple(h for h in hints if h is not TRUE),
            tuple(map(named, exits)),
        )
        links = {names.get(word, word): named(a) for word, a in self._links(inputs).items()}
        for symbol, what in ((ELEMENTS, "elements of the list"), (RANK, "elements left")):
            origins[symbol.name] = WordDescription(what, self._code.image.place(self._address), "")
        return self._walked(model, links), origins

    def _links(self, words: list[Term]) -> dict[Term, Term]:
        """The addresses of loaded words, also of words from which addresses are computed."""
        addresses, found = self._scope.memory.addresses, dict[Term, Term]()
        pending = [] if self._most is None else list(words)
        while pending:
            word = pending.pop()
            if word in addresses and word not in found:
                found[word] = addresses[word]
                pending += rewrite.symbols([found[word]])
        return found

    def _walked(self, model: LoopModel, links: dict[Term, Term]) -> LoopModel:
        """``model`` with ranks, if a fact limits the list that the loop walks."""
        if self._most is None:
            return model
        walk = ranked(model, links, self._most)
        self._walks = walk is not None
        return walk or model

    def _header_range(self, leaf: Term) -> ValueSet:
        cell = self._scope.symbols.leaves[leaf]
        if not isinstance(cell, int) or cell >= FLAG:
            return ANY
        return self._code.values.register(self._loop.header, cell)

    def _hints(self, leaves: Iterable[Term]) -> list[Term]:
        return [part for leaf in leaves for part in within(leaf, self._header_range(leaf))]

    def _ranges(self, initial: dict[Term, Term]) -> list[Term]:
        """Ranges of initial values: value analysis covers the first visit of the header, too."""
        values = initial | self._fixed
        return [
            part
            for leaf, value in values.items()
            for part in within(value, self._header_range(leaf))
        ]

    def _parameter_ranges(self, parameters: Iterable[Term]) -> list[Term]:
        found = self._trips(self._whole, parameters)
        for symbol in _sorted(parameters):
            node, cell = self._whole.symbols.source(symbol)
            if isinstance(cell, int) and cell < FLAG:
                found += within(symbol, self._code.values.register(node, cell))
            for header, register in self._whole.trips.counted.get(symbol, ()):
                counted = self._whole.at(header, register)
                found += within(counted, self._code.values.register(header, register))
        return found

    @staticmethod
    def _trips(scope: SsaScope, symbols: Iterable[Term]) -> list[Term]:
        """Upper limits of the completed iterations of bounded loops."""
        known = [(s, scope.symbols.limit(s)) for s in _sorted(symbols)]
        return [terms.ule(s, const(most, 32)) for s, most in known if most is not None]

    @staticmethod
    def _rounds(scope: SsaScope, symbols: Iterable[Term]) -> list[Term]:
        """Conditions that follow from the completed iterations of bounded loops."""
        return [
            condition
            for s in _sorted(symbols)
            if scope.symbols.limit(s) is not None
            for condition in scope.trips.came_round(s)
        ]

    def _havocked_by(self, symbol: Term) -> int | None:
        """The unbounded loop that leaves a symbol behind; None if there is none."""
        for scope in (self._scope, self._whole):
            origin = scope.symbols.origin.get(symbol)
            if origin is not None and origin.cell is not None:
                loop = self._code.acyclic.headers[origin.node]
                return None if loop in self._code.bounds else loop
        return None


def _sorted(symbols: Iterable[Term]) -> list[Term]:
    return sorted(symbols, key=lambda t: t.serial)


def _rename(prefix: str, symbols: list[Term]) -> dict[Term, Term]:
    return {s: sym(f"{prefix}{i}", s.width) for i, s in enumerate(symbols)}


def described(scope: SsaScope, symbol: Term) -> WordDescription:
    """The description of a symbol of ``scope``."""
    node, cell = scope.symbols.source(symbol)
    block = scope.code.graph.nodes[node].block
    where = scope.code.image.place(block.addr)
    if cell == STACK:
        return WordDescription("where a stack ends", where, "")
    if isinstance(cell, int):
        name = f"r{cell}" if cell < FLAG else "a flag"
        if cell == SP:
            entered = node == scope.code.graph.entry
            return WordDescription(name, where, _stack(block.addr) if entered else "")
        return WordDescription(name, where, _at_most(cell, block.addr) if cell < PC else "")
    if cell is not None:
        return WordDescription(_memory(scope, cell.address), where, "")
    load = scope.memory.load_of(node, symbol)
    if symbol in scope.memory.pointed.read:
        node, load = scope.memory.pointed.read[symbol]
        block = scope.code.graph.nodes[node].block
    if load is None:
        return WordDescription("a word computed", where, "")
    insn = block.insns[load.insn]
    place = scope.code.image.place(insn.addr)
    return WordDescription(f"the word that '{insn.text}' reads", place, _after(block, load))


def _memory(scope: SsaScope, address: Term) -> str:
    """The word at an address, by the registers and constants that it is computed from."""
    others, constant = terms.summands_of(address)
    names = []
    for symbol, factor in others.items():
        known = scope.symbols.knows(symbol)
        cell = scope.symbols.source(symbol)[1] if known else None
        if not isinstance(cell, int) or cell > PC or factor != 1:
            return "a word of memory"
        names.append("sp" if cell == SP else f"r{cell}")
    if not names:
        return f"the word at {scope.code.image.place(constant)}"
    signed = constant - (constant >> 31 << 32)
    offset = f" {'-' if signed < 0 else '+'} {abs(signed):#x}" if signed else ""
    return f"the word at {' + '.join(names)}{offset}"


def _after(block: Block, load: LoadEffect) -> str:
    """The fact about the register that a load has just filled; "" where none can be stated."""
    insn = block.insns[load.insn]
    if (
        load.insn + 1 == len(block.insns)
        or insn.cond is not Condition.AL
        or len(insn.transfers) != 1
    ):
        return ""
    return "" if SP in insn.transfers else _at_most(insn.transfers[0], insn.next)


def _stack(entry: int) -> str:
    return (
        "say where the stack is, 'region NAME from 0xTOP to 0xTOP is cached' and "
        f"'register r13 at {entry:#x} points into NAME'"
    )


def _at_most(register: int, address: int) -> str:
    return f"if that word is a count, 'register r{register} at {address:#x} is at most M'"
