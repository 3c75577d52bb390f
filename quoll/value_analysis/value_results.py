"""Values in every calling context: registers, data addresses, and infeasible edges.

    values = analyse(graph, image)
    values.register(node, 3)     possible words of r3 at the start of the node
    values.access(node, 2)       first addresses of the data access of its third instruction
    values.dead_edges            edges that no execution takes in their context (rule 4)

The supergraph contains every call, so callees need no contract: the code itself saves and restores
registers. Constants come from non-writable memory without a store to a known place, under any
alias. ``assumptions`` lists S1 to S4 (rules 1, 34) if a store depends on them. Memory with its
initial contents is constant too, as long as no store may hit it
(``quoll.value_analysis.as_loaded``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_memory import S3
from quoll.abstract_domain.abstract_state import (
    BEFORE,
    ENTRY_MODE,
    MODE,
    AbstractState,
    aliases_between,
)
from quoll.abstract_domain.condition import words
from quoll.abstract_domain.evaluators import forget_globals, retranslate
from quoll.abstract_domain.function_values import BlockCode
from quoll.abstract_domain.resumption import restored
from quoll.abstract_domain.steps import StraightStep, TrapStep
from quoll.abstract_domain.terms import (
    ENTRY_SP,
    MASK,
    SIGN,
    AnchoredTerm,
    Fact,
    Term,
    describe,
    entry_symbol,
    known_bits,
    plain,
)
from quoll.abstract_domain.transfer import BlockOutcome, KnownAddress
from quoll.arm.insn import Insn
from quoll.assumptions import MAPPED_AS_BEFORE, Assumption
from quoll.cfg.translation_changes import refuse_moved, refuse_moved_code, translation_changes
from quoll.errors import ControlFlowError
from quoll.facts.regions import NO_REGIONS, MemoryRegions
from quoll.graph.closure import closure
from quoll.graph.fixpoint import (
    AbstractDomain,
    AscendingIteration,
    Fixpoint,
    count_in_edges,
    solve,
)
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.image.image import Image
from quoll.image.memory_map import Span, words_in_page
from quoll.inlining.supergraph import Supergraph
from quoll.inlining.trim import surviving_nodes
from quoll.intervals.masked_words import Words, bit_and
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.value_analysis.as_loaded import stored_as_loaded, words_at_start
from quoll.value_analysis.certain_stores import read_only_stores, refuse_read_only
from quoll.value_analysis.context_domain import (
    ContextDomain,
    EntryRegisters,
    environment_in,
    flow_of,
    start_of,
)
from quoll.value_analysis.layered_domain import LayeredDomain
from quoll.value_analysis.layered_graph import LayeredGraph
from quoll.value_analysis.strides import address_stride
from quoll.value_analysis.target_check import checked_targets

__all__ = [
    "EntryRegisters",
    "ResumedValues",
    "SymbolicAddress",
    "ValueResults",
    "WordStep",
    "analyse",
]

SP = 13


ResumedFlow: TypeAlias = tuple[FlowGraph, WeakOrder, Sequence[int]]  # order, number of in-edges


class SymbolicAddress(NamedTuple):
    """An address as a symbol plus a constant; the symbol is a word that is followed, not known.

    Equal symbols are equal words, except across a renaming by ``ValueResults.aliases``.
    """

    symbol: int
    offset: int  # bytes, may be negative


class WordStep(NamedTuple):
    """The state behind an edge, and the change of a word along it; None if it is not known.

    ``least``: its smallest possible value before the edge; ``most``: the largest one of ``word``,
    behind it.
    """

    state: AbstractState
    change: int | None
    least: int
    most: int
    word: Term


def analyse(
    graph: Supergraph,
    image: Image,
    entry: EntryRegisters | None = None,
    regions: MemoryRegions = NO_REGIONS,
    *,
    returning: bool = True,
    starts: bool = False,
) -> ValueResults:
    """The values of ``graph``, under facts about memory.

    ``returning``: calls return in it, so every transfer has its edges. ``starts``: paths start at
    its entry, with memory as loaded; otherwise they have stored into it before.

    Raises ControlFlowError for an instruction without semantics, for an instruction that a store to
    a known place changes, and for a transfer that goes where no edge of the graph leads.
    """
    changes = translation_changes(node.block for node in graph.nodes)
    if changes:
        image = image.retranslated()
    fixed = image.holding((r.low, r.high) for r in regions.of_kind("read-only"))
    changed: frozenset[Span] = frozenset()
    start = _with_stack(graph, entry or EntryRegisters(), regions)
    while True:
        found = _under(
            graph,
            image.changing(changed),
            start,
            regions,
            starts=starts,
            retranslated=bool(changes),
        )
        more = _overwritten(found.environment, fixed) - changed
        more |= read_only_stores(found, image.changing(changed | more))
        _refuse_changed_code(graph, image, more)
        more |= stored_as_loaded(found, image.changing(changed | more))
        if not more:
            break
        changed |= more
    found.environment.changed = changed
    _refuse_moved(found, image, changes)
    refuse_read_only(found, image, regions.of_kind("read-only"))
    if returning and not (changed and image.as_loaded):  # else the graph is analysed again
        found.assume_targets(image)
    return found


def _with_stack(graph: Supergraph, entry: EntryRegisters, regions: MemoryRegions) -> EntryRegisters:
    """``entry``, with sp if a fact at the first instruction says that it is one address.

    The fact holds whenever that instruction is about to execute, so also when the entry is reached.
    Its stack then has a known place, like the stack of a constant loaded into sp. A fact about sp
    at a later place makes no such stack: frames below sp at entry may be live there.
    """
    at = regions.pointers.get(graph.nodes[graph.entry].block.addr, ())
    known = [p.known for p in at if p.register == SP and p.known.exact is not None]
    if not known or SP in entry.registers:
        return entry
    return replace(entry, registers={**entry.registers, SP: known[0]})


def _under(
    graph: Supergraph,
    image: Image,
    entry: EntryRegisters,
    regions: MemoryRegions,
    *,
    starts: bool,
    retranslated: bool,
) -> ValueResults:
    """The values, with the constants of ``image``."""
    run = partial(_run, graph, image, entry, regions, starts=starts, retranslated=retranslated)
    found = run(scattered=False)
    return run(scattered=True) if found.environment.use.scatters else found


def _run(
    graph: Supergraph,
    image: Image,
    entry: EntryRegisters,
    regions: MemoryRegions,
    *,
    starts: bool,
    retranslated: bool,
    scattered: bool,
) -> ValueResults:
    """One analysis; ``scattered``: as in ``MemoryUsage``."""
    environment = environment_in(image, regions, retranslated=retranslated)
    environment.use.scattered = scattered
    flow = flow_of(graph)
    order = WeakOrder.of(flow)
    given: dict[int, list[tuple[int | None, ValueSet]]] = {
        insn: [(None, ValueSet.of(place))] for insn, place in image.own_stores
    }
    for at, known in regions.pointers.items():
        given.setdefault(at, []).extend((p.register, p.known) for p in known)
    code = BlockCode(
        {at: tuple(known) for at, known in given.items()},
        regions.elsewhere,
        regions.unmasked.keys(),
    )
    compiled = {id(node.block): node.block for node in graph.nodes}
    blocks = {key: code(block.insns) for key, block in compiled.items()}
    bodies = [blocks[id(node.block)] for node in graph.nodes]
    domain = ContextDomain(graph, flow, order, bodies, environment, code)
    contents = words_at_start(image) if starts else {}
    found = solve(flow, order, domain, start_of(entry, environment, contents))
    for node, state in enumerate(found.states):
        if state is not None and not graph.successors[node]:
            domain.outcome(node, state)  # for its stores: no query follows it
    return ValueResults(graph, domain, found)


def _overwritten(environment: AnalysisEnvironment, image: Image) -> frozenset[Span]:
    """Constants that stores to known places write; S3 says that they write no other (rule 34)."""
    stored = environment.use.stored
    if _assumes_constants_apart(environment):
        environment.used.add(S3)
    return frozenset(loaded for span in stored for loaded in image.overwritten(span))


def _assumes_constants_apart(environment: AnalysisEnvironment) -> bool:
    """Whether only S3 says that stores to known places write no constant that was read."""
    places: dict[int, list[Span]] = {}  # by page offset
    for (addr, size), value in environment.constants.items():
        if value is not None:
            for word in words_in_page((addr, addr + size - 1)):
                places.setdefault(word, []).append((addr, addr + size - 1))
    return any(
        environment.map.assumes_apart(span, constant)
        for span in environment.use.stored
        for word in words_in_page(span)
        for constant in places.get(word, ())
    )


def _refuse_changed_code(graph: Supergraph, image: Image, spans: Iterable[Span]) -> None:
    """Raise ControlFlowError if stores may write an instruction of ``graph``."""
    for low, high in spans:
        for node in graph.nodes:
            for insn in node.block.insns:
                if low < insn.addr + insn.size and insn.addr <= high:
                    raise ControlFlowError(
                        f"a store to {image.place(low)} changes this instruction, and code that "
                        "changes is not analysed",
                        where=image.place(insn.addr),
                        hint="end the path before it, or give the code as it is then with --raw",
                    )


def _refuse_moved(values: ValueResults, image: Image, changes: Sequence[Insn]) -> None:
    """Record the assumptions behind the reached ``changes`` of translations.

    Raises ControlFlowError for code that may run behind one, and for a stack of known place, whose
    translation is not fixed.
    """
    graph, environment, memory = values.graph, values.environment, image.memory
    places = {insn.addr: insn for insn in changes}
    nodes = [n for n in range(len(graph.nodes)) if places and values.reached(n)]
    changing = {
        n: insn  # the first one
        for n in nodes
        for insn in reversed(graph.nodes[n].block.insns)
        if insn.addr in places
    }
    if not changing:
        return
    if not memory.regions:
        for insn in {insn.addr: insn for insn in changing.values()}.values():
            text = MAPPED_AS_BEFORE.of(insn=insn.text, place=image.place(insn.addr))
            environment.used.add(text)
        return
    first = next(iter(changing.values()))
    for top in environment.stacks.values():
        if not memory.fixed(top - 1 & MASK):
            refuse_moved(image, first, "the stack that ends here", top)
    blocks = {id(block): block for n in nodes for block in (graph.nodes[n].block,)}
    if all(memory.fixes((block.addr, block.end - 1)) for block in blocks.values()):
        return
    for node, last in changing.items():
        insns = graph.nodes[node].block.insns
        refuse_moved_code(image, last, (insn for insn in insns if insn.addr > last.addr))
    behind = closure(
        (n for node in changing for n in _following(values, node)), partial(_following, values)
    )
    for node in sorted(behind):
        refuse_moved_code(image, first, graph.nodes[node].block.insns)


def _following(values: ValueResults, node: int) -> Iterator[int]:
    """The possible successors of ``node``."""
    graph, dead = values.graph, values.dead_edges
    return (graph.edges[e].dst for e in graph.successors[node] if e not in dead)


class ResumedValues:
    """Values of the same graph from other starts, under an assumption; see ``ValueResults``.

    ``likely`` are states that may recur. ``ValueResults.resumed`` and ``ValueResults.layered`` make
    it.
    """

    def __init__(
        self,
        known: Fixpoint[AbstractState],
        domain: AbstractDomain[AbstractState],
        flow: ResumedFlow,
        likely: Sequence[AbstractState | None],
    ) -> None:
        graph, order, in_edges = flow
        self._known, self.domain = known, domain
        self._ascent = AscendingIteration(graph, order, domain, in_edges, likely)

    @property
    def states(self) -> Sequence[AbstractState | None]:
        """The states known so far."""
        return self._ascent.states

    def start(self, nodes: Iterable[int]) -> Fixpoint[AbstractState]:
        """The states when control may also start at ``nodes``, with the known states there."""
        states = self._known.states
        self._ascent.run(
            {n: state for n in nodes if (state := states[n % len(states)]) is not None}
        )
        return self._ascent.result()


class ValueResults:
    """The result: states at the start of every node, queried by node index."""

    def __init__(
        self, graph: Supergraph, domain: ContextDomain, fixpoint: Fixpoint[AbstractState]
    ) -> None:
        self.graph, self._domain, self._fixpoint = graph, domain, fixpoint
        self._accesses: dict[int, dict[int, KnownAddress]] = {}
        self._aliases: dict[int, Mapping[int, Term]] = {}
        self._in_edges: Sequence[int] | None = None
        self._stepping: ContextDomain | None = None
        # the last state with a word in memory: the state before, address and word, after
        self._with: tuple[AbstractState, tuple[int, Term], AbstractState] | None = None
        self._narrowing: ContextDomain | None = None
        self._layers: tuple[LayeredGraph, ResumedFlow] | None = None  # of the last request
        self._dead = frozenset(fixpoint.dead)

    def assume_targets(self, image: Image) -> None:
        """Add the assumptions about transfers; raises as ``checked_targets`` does."""
        found = checked_targets(self.graph, image, self._domain, self._fixpoint.states)
        self.environment.used.update(found)

    def resumed(
        self,
        given: Mapping[int, Fact],
        closed: frozenset[int] = frozenset(),
        like: ResumedValues | None = None,
    ) -> ResumedValues:
        """Values computed again, from nodes to be chosen, when device words read as ``given``.

        No state passes the edges ``closed``. ``like``: another such case, computed before and
        similar.
        """
        known = self._domain if like is None else like.domain
        assert isinstance(known, ContextDomain)
        domain = known.assuming(given, closed)
        if self._in_edges is None:
            self._in_edges = count_in_edges(domain.graph, domain.order)
        likely = self._fixpoint.states if like is None else like.states
        flow = domain.graph, domain.order, self._in_edges
        return ResumedValues(self._fixpoint, domain, flow, likely)

    def layered(
        self,
        layered: LayeredGraph,
        given: Sequence[Mapping[int, Fact]],
        elsewhere: Mapping[int, int],
        closed: frozenset[int] = frozenset(),
    ) -> ResumedValues:
        """As ``resumed``, on layers of this graph, in each of which device words read as ``given``.

        Loads of the nodes ``elsewhere`` read as in another layer. Starts are nodes of layers.
        """
        domains = [self._domain.assuming(words, frozenset()) for words in given]
        domain = LayeredDomain(layered, domains, elsewhere, closed)
        if self._layers is None or self._layers[0] is not layered:
            graph, order = layered.flow(), layered.order(self._domain.order)
            self._layers = layered, (graph, order, count_in_edges(graph, order))
        flow = self._layers[1]
        likely = [*self._fixpoint.states] * layered.layers
        return ResumedValues(self._fixpoint, domain, flow, likely)

    def along(self, edge: int, state: AbstractState | None = None) -> AbstractState | None:
        """The state behind ``edge`` when ``state`` holds before its source; None if it is not
        taken. Left out: the state of all executions there.
        """
        known = self._fixpoint.states[self.graph.edges[edge].src] if state is None else state
        return None if known is None else self._domain.transfer(edge, known)

    def word_step(
        self, edge: int, address: int, before: tuple[AbstractState, Term] | None = None
    ) -> WordStep | None:
        """The word at ``address`` of ordinary memory behind ``edge``, and its change along it.

        ``before``: the state at the source of the edge, and the word there; left out: all
        executions, with any word. None if the edge is not taken.
        """
        state = self._fixpoint.states[self.graph.edges[edge].src] if before is None else before[0]
        if state is None:
            return None
        word = state.globals.get(address) if before is None else before[1]
        if type(word) is not int:
            word = self.environment.names.of(BEFORE, ("word", address)) << 32
            state = self._with_word(state, address, word)
        if self._stepping is None:
            self._stepping = self._domain.assuming({}, frozenset())
        after = self._stepping.transfer(edge, state)
        if after is None:
            return None
        found, least = after.globals.get(address), plain(describe(word, state.facts)).low
        if type(found) is not int or found >> 32 != word >> 32:
            return WordStep(after, None, least, MASK, word)
        most = plain(describe(found, after.facts)).high
        return WordStep(after, (found - word) & MASK, least, most, found)

    def _with_word(self, state: AbstractState, address: int, word: Term) -> AbstractState:
        """``state`` with a word in memory; one object for all edges out of a node."""
        known = self._with
        if known is None or known[0] is not state or known[1] != (address, word):
            after = state._replace(globals={**state.globals, address: word})
            known = self._with = state, (address, word), after
        return known[2]

    def state(self, node: int) -> AbstractState | None:
        """The state of all executions at the start of ``node``; None if none gets there."""
        return self._fixpoint.states[node]

    def at_return(self, node: int) -> AbstractState | None:
        """The state of all executions that return at the end of ``node``; None if none does."""
        state = self._fixpoint.states[node]
        leave = None if state is None else self._domain.outcome(node, state).leave
        return None if leave is None else leave.state

    def apart(self) -> ContextDomain:
        """The domain of this graph, for other states; the record of used memory stays as it is."""
        return self._domain.apart()

    def assume_constants(self) -> None:
        """Add S3 if only it says that stores write none of the constants that were read by now."""
        if _assumes_constants_apart(self.environment):
            self.environment.used.add(S3)

    def forgets(self, node: int, address: int) -> bool:
        """Whether other code may run in ``node``, or the word at ``address`` may be another one."""
        memory = self.environment.map
        moves = bool(memory.regions) and not (memory.fixed(address) and memory.fixed(address + 3))
        forgetting = (forget_globals, retranslate) if moves else (forget_globals,)
        return any(
            isinstance(step, TrapStep)
            or (isinstance(step, StraightStep) and any(m[0] in forgetting for m in step.micros))
            for step in self._domain.blocks[node].steps
        )

    def reading(self, words: Iterable[int]) -> frozenset[int]:
        """The nodes that load one of ``words``, by any instruction, from a known address.

        Addresses known only under an assumption, from ``resumed``, count too.
        """
        wanted, position = frozenset(words), self._domain.order.position
        found = self._domain.environment.loaded
        return frozenset(
            node
            for node in range(len(self.graph.nodes))
            if self.reached(node) and not wanted.isdisjoint(found.get(position[node], ()))
        )

    def is_memory(self, address: int) -> bool:
        """Whether a byte holds the last stored value, or its loaded contents."""
        environment = self._domain.environment
        return environment.ordinary(address) or environment.read(address, 1) is not None

    def within(self, graph: Supergraph) -> ValueResults | None:
        """The values of this graph without its dead edges, if recomputation would give these.

        That holds if none of these edges was ever taken, except that another loop head may widen.
        The states were checked along the remaining edges (rule 5). None if they must be recomputed.
        """
        surviving = None if self._fixpoint.late else surviving_nodes(self.graph, graph)
        if surviving is None:
            return None
        states = tuple(self._fixpoint.states[node] for node in surviving)
        domain = self._domain.restricted(graph, surviving)
        return ValueResults(
            graph, domain, Fixpoint(states, frozenset(), 0, self._fixpoint.narrowed)
        )

    @property
    def dead_edges(self) -> frozenset[int]:
        """Edges that no execution takes in their context, edges from unreached nodes included."""
        return self._dead

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The named assumptions (rule 1) that the values depend on."""
        return tuple(sorted(self._domain.environment.used))

    @property
    def environment(self) -> AnalysisEnvironment:
        """The common inputs of all blocks."""
        return self._domain.environment

    @property
    def changed(self) -> frozenset[Span]:
        """Bytes of read-only sections that stores to known places write."""
        return self._domain.environment.changed

    @property
    def retranslates(self) -> bool:
        """Whether the graph has code that changes translations."""
        return self._domain.environment.retranslated

    @property
    def unknown(self) -> frozenset[int]:
        """Instructions with accesses of unknown address that a fact restricts."""
        return frozenset(self._domain.environment.unknown)

    @property
    def visits(self) -> int:
        """Number of interpreted nodes up to the fixed point, repetitions included."""
        return self._fixpoint.visits

    def preserved_registers(self) -> frozenset[int]:
        """Registers r0 to lr that have their entry value at every return of the entry."""
        preserved = frozenset(range(15))
        for node in self.graph.exits:
            state = self._fixpoint.states[node]
            if state is None or not self.graph.nodes[node].block.returns:
                continue
            leave = self._domain.outcome(node, state).leave
            if leave is None:
                return frozenset()
            preserved &= {r for r in preserved if leave.state.term(r) == entry_symbol(r) << 32}
        return preserved

    def restored(self, node: int) -> tuple[ValueSet, ValueSet] | None:
        """The target of an exception return at the end of ``node``, and the status it restores.

        Only the lowest byte of the status counts. None if it is never executed.
        """
        state = self._fixpoint.states[node]
        leave = None if state is None else self._domain.outcome(node, state).leave
        if leave is None:
            return None
        target, status = restored(leave)
        return self._words(target), status

    def returns(self, node: int) -> bool:
        """Whether some execution may return at the end of ``node``, by its values."""
        state = self._fixpoint.states[node]
        return state is not None and self._domain.outcome(node, state).leave is not None

    def reached(self, node: int) -> bool:
        """Whether some execution may reach ``node``, by its values."""
        return self._fixpoint.states[node] is not None

    def mode(self, node: int) -> int | None:
        """The processor mode at the start of ``node``, User for System; None if not known."""
        state = self._fixpoint.states[node]
        return None if state is None else state.known_mode

    def mode_stays(self, node: int, insn: int) -> bool | None:
        """Whether an instruction of ``node`` leaves the mode as it is; None if not known.

        True also for a conditional one that may be skipped, and for one that is never executed.
        """
        state, insns = self._fixpoint.states[node], self.graph.nodes[node].block.insns
        if state is None:
            return True
        before, after = (self._domain.before(node, state, insns[:n]) for n in (insn, insn + 1))
        modes = before.registers[MODE], after.registers[MODE]
        if None in modes:
            return None
        return True if modes[0] == modes[1] else None if ENTRY_MODE in modes else False

    def masked(self, node: int) -> bool | None:
        """Whether interrupts are masked at the start of ``node``; None if it is not known."""
        state = self._fixpoint.states[node]
        return None if state is None else state.known_mask

    def register(self, node: int, register: int) -> ValueSet:
        """The possible words of r0 to lr at the start of ``node``; any word if unreached."""
        state = self._fixpoint.states[node]
        if state is None:
            return ANY
        known = self._words(state.fact(register))
        return self._domain.code.stated(self.graph.nodes[node].block.addr, register, known)

    def operand(self, node: int, insn: int, register: int) -> ValueSet:
        """The possible words of r0 to lr just before an instruction of ``node``."""
        state = self._fixpoint.states[node]
        if state is None:
            return ANY
        before = self._domain.before(node, state, self.graph.nodes[node].block.insns[:insn])
        return self._words(before.fact(register))

    def field(self, node: int, insn: int, register: int, mask: int) -> Words:
        """The possible bits of ``mask`` in r0 to lr just before an instruction of ``node``."""
        state = self._fixpoint.states[node]
        if state is None:
            return ANY
        before = self._domain.before(node, state, self.graph.nodes[node].block.insns[:insn])
        return bit_and(known_bits(before.fact(register)), ValueSet.of(mask))

    def arriving(self, node: int, register: int) -> Iterator[ValueSet]:
        """The possible words of r0 to lr on arrival at ``node``, per edge that is not dead."""
        for edge in self.graph.predecessors[node]:
            before = self._fixpoint.states[self.graph.edges[edge].src]
            if before is None or edge in self._dead:
                continue
            out = self._domain.transfer(edge, before)
            if out is not None:
                yield self._words(out.fact(register))

    def word(self, node: int, insn: int, register: int) -> Term | None:
        """The term of r0 to lr just before an instruction of ``node``; None if it is not reached.

        Places of one symbol hold words with a constant difference
        (``quoll.abstract_domain.terms``).
        """
        state = self._fixpoint.states[node]
        if state is None:
            return None
        insns = self.graph.nodes[node].block.insns[:insn]
        return self._domain.before(node, state, insns).term(register)

    def access(self, node: int, insn: int) -> ValueSet | None:
        """First addresses of the data access of an instruction, in this context.

        None if the instruction makes no access, or is never executed. ANY if nothing is known.
        """
        known = self._node_accesses(node).get(insn)
        return None if known is None else self._words(known.fact)

    def frame_register(self, node: int, register: int) -> ValueSet | None:
        """The distance of a register above sp at entry when ``node`` begins, in bytes.

        With ``BIAS`` added; None if it is unknown.
        """
        state = self._fixpoint.states[node]
        return None if state is None else _above_entry(state.fact(register))

    def frame_access(self, node: int, insn: int) -> ValueSet | None:
        """As ``frame_register`` for the first address of the data access of an instruction."""
        known = self._node_accesses(node).get(insn)
        return None if known is None else _above_entry(known.fact)

    def near_a_stack(self, node: int, insn: int) -> bool:
        """Whether values compute the address of a data access from the address of a stack."""
        known = self._node_accesses(node).get(insn)
        return known is not None and isinstance(known.fact, AnchoredTerm)

    def origin(self, node: int, insn: int) -> SymbolicAddress | None:
        """The first address of the data access of an instruction, relative to a symbol.

        None if it is a constant, or differs between paths through the block.
        """
        known = self._node_accesses(node).get(insn)
        if known is None or known.term is None or known.term >> 32 == 0:
            return None
        return SymbolicAddress(known.term >> 32, (known.term + SIGN & MASK) - SIGN)

    def aliases(self, edge: int) -> Mapping[int, Term]:
        """The renaming of symbols along ``edge``: for each one at its target the term of the
        source.

        A term is ``symbol << 32 | constant``. Symbols that are not listed are undefined there.
        """
        known = self._aliases.get(edge)
        if known is None:
            known = self._aliases[edge] = self._find_aliases(edge)
        return known

    def _find_aliases(self, edge: int) -> Mapping[int, Term]:
        taken = self.graph.edges[edge]
        before, after = self._fixpoint.states[taken.src], self._fixpoint.states[taken.dst]
        if before is None or after is None:
            return {}
        out = self._domain.transfer(edge, before)
        return {} if out is None else aliases_between(out, after)

    def stride(self, node: int, insn: int, inside: Set[int]) -> int | None:
        """Bytes from the address of a cache operation to the next one (``address_stride``)."""
        return address_stride(self, node, insn, inside)

    def arriving_word(self, edge: int, symbol: int) -> ValueSet:
        """The possible words along ``edge`` of a symbol of its target."""
        term, out = self.aliases(edge).get(symbol), self.along(edge)
        return ANY if term is None or out is None else self._words(describe(term, out.facts))

    def accesses_with(self, node: int, words: Mapping[int, ValueSet]) -> Mapping[int, ValueSet]:
        """``access`` by instruction, when symbols at the start of ``node`` are among ``words``."""
        state = self._fixpoint.states[node]
        if state is None:
            return {}
        if self._narrowing is None:
            self._narrowing = self._domain.apart()
        narrower = state._replace(facts={**state.facts, **words})
        found = self._narrowing.outcome(node, narrower).accesses()
        return {insn: self._words(known.fact) for insn, known in found.items()}

    def stack(self, node: int) -> Iterator[tuple[int, ValueSet]]:
        """Words on stacks of known place at the start of ``node``: address, possible words."""
        state = self._fixpoint.states[node]
        stacks = self._domain.environment.stacks
        for key, cell in [] if state is None else sorted(state.frames.items()):
            if state is not None and type(cell) is int and key >> 32 in stacks:
                known = self._words(describe(cell, state.facts))
                if known != ANY:
                    yield stacks[key >> 32] + key & MASK, known

    def explain(self, edge: int) -> str:
        """The reason why ``edge`` is dead: the deciding instruction, and its values."""
        source = self.graph.edges[edge].src
        state = self._fixpoint.states[source]
        if state is None:
            return "not reached"
        outcome = self._domain.outcome(source, state)
        block = self.graph.nodes[source].block
        if outcome.decision is None:
            target = None if outcome.leave is None else outcome.leave.target
            return (
                "no such target"
                if target is None
                else f"goes to {self._show(target, outcome, source)}"
            )
        deciding = [i for i, insn in enumerate(block.insns) if insn.sets_flags]
        index = deciding[-1] if deciding else len(block.insns) - 1
        before = self._domain.before(source, state, block.insns[:index])
        known = (
            f"r{register} = {self._words(before.fact(register))}"
            for register in sorted(block.insns[index].reads - {15})
        )
        return f"{block.insns[index].text}: {', '.join(known) or 'decided before'}"

    def _show(self, term: int, outcome: BlockOutcome, node: int) -> str:
        assert outcome.leave is not None
        return str(self._words(describe(term, outcome.leave.state.facts)))

    @property
    def stored(self) -> frozenset[Span]:
        """First and last bytes of the stores at known places."""
        return frozenset(self._domain.environment.use.stored)

    def hands_on_a_stack_address(self, node: int) -> bool:
        """Whether the caller of the entry passes a stack address: never."""
        return False

    def _words(self, fact: Fact) -> ValueSet:
        return words(fact, self._domain.environment.stacks)

    def _node_accesses(self, node: int) -> dict[int, KnownAddress]:
        known = self._accesses.get(node)
        if known is None:
            state = self._fixpoint.states[node]
            known = {} if state is None else self._domain.outcome(node, state).accesses()
            self._accesses[node] = known
        return known


def _above_entry(fact: Fact) -> ValueSet | None:
    """The offsets of a fact from sp at entry."""
    return fact.offsets if isinstance(fact, AnchoredTerm) and fact.base == ENTRY_SP else None
