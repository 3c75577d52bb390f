"""Values in every calling context: registers, data addresses, and edges that cannot be taken.

    values = analyse(graph, image)
    values.register(node, 3)     what r3 may hold when control is at the start of the node
    values.access(node, 2)       first addresses of the data access of its third instruction
    values.dead_edges            edges that no execution takes in their context (rule 4)

The supergraph has every call in it, so that nothing is assumed of callees: registers are saved
and restored by the code itself. Constants come from non-writable memory; S1 and S2 (rule 1) are
listed in ``assumptions`` where a store of unknown address made use of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

from quoll.arithmetic import add, subtract
from quoll.arm.insn import Flow, Insn
from quoll.cfg import EdgeKind
from quoll.condition import words
from quoll.domain import ValueDomain
from quoll.fixpoint import Ascent, Fixpoint, count_in_edges, solve
from quoll.guidance import Replacement
from quoll.havoc import after_call, entered, hands_on_a_stack_address
from quoll.image import Image
from quoll.localvalues import BlockCode, environment_of
from quoll.machine import Environment
from quoll.parts import Step, steps_over_parts
from quoll.regions import NO_REGIONS, Regions
from quoll.state import State, entry_state, images
from quoll.steps import CompiledBlock
from quoll.supergraph import Supergraph
from quoll.terms import BIAS, ENTRY_SP, MASK, SIGN, Anchored, Fact, Term, describe, entry_symbol
from quoll.transfer import Address, Outcome, run
from quoll.trim import nodes_kept
from quoll.valueset import ANY, ValueSet, join
from quoll.wto import FlowGraph, WeakOrder

__all__ = ["Entry", "Origin", "Resumed", "Values", "analyse"]

SP = 13
INDIRECT = (Flow.INDIRECT, Flow.INDIRECT_CALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known when the entry is reached: the processor mode (CPSR bits 4 to 0), registers."""

    mode: int | None = None
    registers: Mapping[int, ValueSet] = field(default_factory=dict)


class Origin(NamedTuple):
    """An address as a symbol plus a constant; the symbol is a word that is followed, not known.

    Equal symbols are equal words, as long as ``Values.images`` does not say otherwise.
    """

    symbol: int
    offset: int  # bytes, may be negative


def analyse(
    graph: Supergraph, image: Image, entry: Entry | None = None, regions: Regions = NO_REGIONS
) -> Values:
    """The values of ``graph``, under what facts say of memory.

    Raises ControlFlowError for an instruction without semantics.
    """
    environment = _environment(image, regions)
    steps = steps_over_parts(graph)
    flow = _flow(graph, steps)
    order = WeakOrder.of(flow)
    code = BlockCode(
        {at: tuple((p.register, p.known) for p in known) for at, known in regions.pointers.items()},
        regions.elsewhere,
    )
    compiled = {id(node.block): node.block for node in graph.nodes}
    blocks = {key: code(block.insns) for key, block in compiled.items()}
    bodies = [blocks[id(node.block)] for node in graph.nodes]
    domain = _ContextDomain(graph, steps, flow, order, bodies, environment, code)
    start = _start(entry or Entry(), environment)
    return Values(graph, domain, solve(flow, order, domain, start))


def _flow(graph: Supergraph, steps: Sequence[Step]) -> FlowGraph:
    """The graph with a step past each call of another part in place of that part's returns."""
    first = len(graph.edges)
    successors = [[e for e in edges if graph.edges[e].call is None] for edges in graph.successors]
    for index, step in enumerate(steps):
        successors[step.call].append(first + index)
    sources = [*(e.src for e in graph.edges), *(s.call for s in steps)]
    targets = [*(e.dst for e in graph.edges), *(s.after for s in steps)]
    return FlowGraph(graph.entry, sources, targets, successors)


def _environment(image: Image, regions: Regions) -> Environment:
    """Cached regions are ordinary memory; read-only ones hold what the image says."""
    fixed = regions.of_kind("read-only")
    environment = environment_of(image.holding((r.low, r.high) for r in fixed))
    ordinary = environment.ordinary
    cached = regions.of_kind("cached")
    if cached:
        environment.ordinary = lambda addr: (
            ordinary(addr) or any(r.low <= addr <= r.high for r in cached)
        )
    return environment


def _start(entry: Entry, environment: Environment) -> State:
    state = entry_state(environment.names, entry.mode)
    registers, facts = list(state.registers), dict(state.facts)
    for register, known in entry.registers.items():
        symbol = environment.names.of(-1, ("given", register))
        exact = known.exact
        registers[register] = symbol << 32 if exact is None else exact
        if exact is None:
            facts[symbol] = known
        elif register == SP:
            registers[register] = environment.stack(exact) << 32
    return State(tuple(registers), {}, {}, {}, facts)


class _ContextDomain(ValueDomain):
    """Transfer on a supergraph: an indirect transfer goes only where the word written says."""

    noting = True

    def __init__(
        self,
        graph: Supergraph,
        steps: Sequence[Step],
        flow: FlowGraph,
        order: WeakOrder,
        blocks: Sequence[CompiledBlock],
        environment: Environment,
        code: BlockCode,
    ) -> None:
        kinds = [*(edge.kind for edge in graph.edges), *(EdgeKind.ACROSS for _ in steps)]
        self.steps = steps
        self._graph = graph
        super().__init__(flow, order, blocks, kinds, environment, self._special())
        self._closed: frozenset[int] = frozenset()
        self._like: _ContextDomain | None = None  # the same but for an assumption
        self._reads: Set[int] = frozenset()  # positions of blocks that it may be about
        self._nodes = graph.nodes
        self.code = code
        self._indirect_sources = [n.block.last.flow in INDIRECT for n in graph.nodes]

    def _special(self) -> Mapping[EdgeKind, Callable[[int, Outcome], State | None]]:
        return {
            EdgeKind.INDIRECT: self._indirect,
            EdgeKind.CALL: self._call,
            EdgeKind.ACROSS: self._passed,
            EdgeKind.RETURN: self._passed,
        }

    def assuming(self, given: Mapping[int, ValueSet], closed: frozenset[int]) -> _ContextDomain:
        """The same where words of a device read as ``given`` and nothing passes ``closed``."""
        domain = copy(self)
        domain.environment = replace(self.environment, given=given)
        domain.special = domain._special()
        domain._closed = closed
        loaded = self.environment.loaded
        either = {*given, *self.environment.given}
        domain._reads = {p for p, words in loaded.items() if not words.isdisjoint(either)}
        domain._like = self
        domain._outcomes, domain._climbs = {}, {}
        domain.noting = False
        return domain

    def outcome(self, node: int, state: State) -> Outcome:
        """What comes out of ``node``; where the assumption decides nothing, as without it."""
        return self._known(node, state) or super().outcome(node, state)

    def _known(self, node: int, state: State) -> Outcome | None:
        """What is known to come out of ``node`` from this very state."""
        known = self._outcomes.get(node)
        if known is not None and known[0] is state:
            return known[1]
        if self._like is None or self.order.position[node] in self._reads:
            return None
        return self._like._known(node, state)

    def restricted(self, graph: Supergraph, kept: Sequence[int]) -> _ContextDomain:
        """The same on a graph of the nodes ``kept``, without merged contexts."""
        whole, order = self.order, self.order.restricted(kept)
        positions = {
            whole.position[old]: order.position[new]
            for new, old in enumerate(kept)
            if whole.position[old] >= 0
        }
        known = self.environment
        environment = replace(
            known,
            names=known.names.renumbered(positions),
            limits={positions[p]: found for p, found in known.limits.items() if p in positions},
            loaded={positions[p]: found for p, found in known.loaded.items() if p in positions},
        )
        blocks = [self.blocks[old] for old in kept]
        domain = _ContextDomain(graph, (), _flow(graph, ()), order, blocks, environment, self.code)
        outcomes = self._outcomes
        domain._outcomes = {new: outcomes[old] for new, old in enumerate(kept) if old in outcomes}
        return domain

    def transfer(self, edge: int, state: State) -> State | None:
        """The state along ``edge``."""
        return None if edge in self._closed else super().transfer(edge, state)

    def before(self, node: int, state: State, insns: tuple[Insn, ...]) -> State:
        """The state after the first instructions of ``node``."""
        if not insns:
            return state
        position = self.order.position[node]
        fall = run(self.code(insns), state, self.environment, position).fall
        return state if fall is None else fall

    def _passed(self, edge: int, outcome: Outcome) -> State | None:
        """Along a return, or past a function that a fact replaces."""
        if outcome.leave is None:
            return None
        passed = self._passes(edge)
        if not passed:
            return outcome.leave.state
        position = self.order.position[self.graph.sources[edge]]
        return after_call(outcome.leave.state, self.environment, position, passed)

    def _passes(self, edge: int) -> tuple[Replacement, ...]:
        graph = self._graph
        if edge < len(graph.edges):
            return graph.passed(edge)
        callee = graph.contexts[self.steps[edge - len(graph.edges)].callee].function
        return (graph.summaries[callee],)

    def _call(self, edge: int, outcome: Outcome) -> State | None:
        """Into the callee; a shared context takes only what all its callers have in common."""
        state = self._indirect(edge, outcome)
        if state is None or self._graph.origin(edge) is not None:
            return state
        return entered(state, self.environment)

    def _indirect(self, edge: int, outcome: Outcome) -> State | None:
        leave = outcome.leave
        if leave is None:
            return None
        if self._indirect_sources[self.graph.sources[edge]]:
            target = describe(leave.target, leave.state.facts)
            addr = self._nodes[self.graph.targets[edge]].block.addr
            possible = words(target, self.environment.stacks)
            if addr not in possible and addr | 1 not in possible:
                return None
        return leave.state


class Resumed:
    """Values of the same graph from other starts, under an assumption: see ``Values.resumed``.

    ``likely`` are states to be recognised.
    """

    def __init__(
        self,
        known: Fixpoint[State],
        domain: _ContextDomain,
        in_edges: Sequence[int],
        likely: Sequence[State | None],
    ) -> None:
        self._known, self.domain = known, domain
        self._ascent = Ascent(domain.graph, domain.order, domain, in_edges, likely)

    @property
    def states(self) -> Sequence[State | None]:
        """What is known so far."""
        return self._ascent.states

    def start(self, nodes: Iterable[int]) -> Fixpoint[State]:
        """The states when control starts at ``nodes`` also, with what was known there."""
        states = self._known.states
        self._ascent.run({n: state for n in nodes if (state := states[n]) is not None})
        return self._ascent.result()


class Values:
    """The result: states at the start of every node, queried by node index."""

    def __init__(
        self, graph: Supergraph, domain: _ContextDomain, fixpoint: Fixpoint[State]
    ) -> None:
        self.graph, self._domain, self._fixpoint = graph, domain, fixpoint
        self._accesses: dict[int, dict[int, Address]] = {}
        self._images: dict[int, Mapping[int, Term]] = {}
        self._in_edges: Sequence[int] | None = None
        self._stacks: dict[int, ValueSet] = {}
        self._calls: dict[int, list[int]] = {}  # shared context -> edges that call it
        for index, edge in enumerate(graph.edges):
            if graph.origin(index) is None:
                self._calls.setdefault(graph.part_of(edge.dst), []).append(index)
        self._dead = frozenset(e for e in fixpoint.dead if e < len(graph.edges)) | _dead_returns(
            graph, domain, fixpoint
        )

    def resumed(
        self,
        given: Mapping[int, ValueSet],
        closed: frozenset[int] = frozenset(),
        like: Resumed | None = None,
    ) -> Resumed:
        """Values once more, from nodes to be chosen, when words of a device read as ``given``.

        Nothing passes the edges ``closed``. ``like``: another such case, done before and similar.
        """
        domain = (self._domain if like is None else like.domain).assuming(given, closed)
        if self._in_edges is None:
            self._in_edges = count_in_edges(domain.graph, domain.order)
        likely = self._fixpoint.states if like is None else like.states
        return Resumed(self._fixpoint, domain, self._in_edges, likely)

    def within(self, graph: Supergraph) -> Values | None:
        """The values of this graph without its dead edges, where computing them again gives these.

        That is so if none of these edges was ever taken (but that another head of a loop may
        widen). The states were checked along the edges that are left (rule 5). None if they
        have to be computed.
        """
        kept = None if self._fixpoint.late else nodes_kept(self.graph, graph)
        if kept is None:
            return None
        states = tuple(self._fixpoint.states[node] for node in kept)
        domain = self._domain.restricted(graph, kept)
        return Values(graph, domain, Fixpoint(states, frozenset(), 0, self._fixpoint.narrowed))

    @property
    def dead_edges(self) -> frozenset[int]:
        """Edges that cannot be taken in their context, those out of unreached nodes included."""
        return self._dead

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The named assumptions (rule 1) that the values rest on."""
        return tuple(sorted(self._domain.environment.used))

    @property
    def unknown(self) -> frozenset[int]:
        """Instructions of whose accesses nothing was known but that a fact is about these."""
        return frozenset(self._domain.environment.unknown)

    @property
    def visits(self) -> int:
        """Nodes interpreted until nothing changed, repetitions included."""
        return self._fixpoint.visits

    def given_back(self) -> frozenset[int]:
        """Registers r0 to lr that hold at every return of the entry what they held at the entry."""
        kept = frozenset(range(15))
        for node in self.graph.exits:
            state = self._fixpoint.states[node]
            if state is None:
                continue
            leave = self._domain.outcome(node, state).leave
            if leave is None:
                return frozenset()
            kept &= {r for r in kept if leave.state.term(r) == entry_symbol(r) << 32}
        return kept

    def reached(self, node: int) -> bool:
        """Whether some execution may reach ``node``, as far as values tell."""
        return self._fixpoint.states[node] is not None

    def register(self, node: int, register: int) -> ValueSet:
        """What r0 to lr may hold at the start of ``node``; any word if it is never reached."""
        state = self._fixpoint.states[node]
        if state is None:
            return ANY
        known = self._words(state.fact(register), node)
        return self._domain.code.stated(self.graph.nodes[node].block.addr, register, known)

    def access(self, node: int, insn: int) -> ValueSet | None:
        """First addresses of the data access of an instruction, in this context.

        None if the instruction makes no access, or is never executed. ANY if nothing is known.
        """
        known = self._node_accesses(node).get(insn)
        return None if known is None else self._words(known.fact, node)

    def frame_register(self, node: int, register: int) -> ValueSet | None:
        """How far above sp at the entry of its part a register is when ``node`` begins.

        With ``BIAS`` added; None if that is not known.
        """
        state = self._fixpoint.states[node]
        return None if state is None else _above_entry(state.fact(register))

    def frame_access(self, node: int, insn: int) -> ValueSet | None:
        """As ``frame_register`` for the first address of the data access of an instruction."""
        known = self._node_accesses(node).get(insn)
        return None if known is None else _above_entry(known.fact)

    def origin(self, node: int, insn: int) -> Origin | None:
        """The first address of the data access of an instruction, relative to a symbol.

        None if it is a constant, or differs between ways through the block.
        """
        known = self._node_accesses(node).get(insn)
        if known is None or known.term is None or known.term >> 32 == 0:
            return None
        return Origin(known.term >> 32, (known.term + SIGN & MASK) - SIGN)

    def images(self, edge: int) -> Mapping[int, Term]:
        """How symbols change along ``edge``: for each one at its target the term of the source.

        A term is ``symbol << 32 | constant``. Symbols that are not listed mean nothing there.
        """
        known = self._images.get(edge)
        if known is None:
            known = self._images[edge] = self._find_images(edge)
        return known

    def _find_images(self, edge: int) -> Mapping[int, Term]:
        taken = self.graph.edges[edge]
        before, after = self._fixpoint.states[taken.src], self._fixpoint.states[taken.dst]
        if before is None or after is None:
            return {}
        out = self._domain.transfer(edge, before)
        return {} if out is None else images(out, after)

    def stack(self, node: int) -> Iterator[tuple[int, ValueSet]]:
        """Words on stacks of known place at the start of ``node``: address, what it may hold."""
        state = self._fixpoint.states[node]
        stacks = self._domain.environment.stacks
        for key, cell in [] if state is None else sorted(state.frames.items()):
            if state is not None and type(cell) is int and key >> 32 in stacks:
                known = self._words(describe(cell, state.facts), node)
                if known != ANY:
                    yield stacks[key >> 32] + key & MASK, known

    def explain(self, edge: int) -> str:
        """Why ``edge`` is dead: the instruction that decides, and the values it decides by."""
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
            f"r{register} = {self._words(before.fact(register), source)}"
            for register in sorted(block.insns[index].reads - {15})
        )
        return f"{block.insns[index].text}: {', '.join(known) or 'decided before'}"

    def _show(self, term: int, outcome: Outcome, node: int) -> str:
        assert outcome.leave is not None
        return str(self._words(describe(term, outcome.leave.state.facts), node))

    def _words(self, fact: Fact, node: int) -> ValueSet:
        part = self.graph.part_of(node)
        if isinstance(fact, Anchored) and fact.base == ENTRY_SP and part != self.graph.part[0]:
            return subtract(add(fact.offsets, self._stack(part)), ValueSet.of(BIAS))
        return words(fact, self._domain.environment.stacks)

    def _stack(self, part: int) -> ValueSet:
        """sp when a shared context is entered, over all of its callers."""
        known = self._stacks.get(part)
        if known is None:
            calls = [(self.graph.edges[e].src, s) for e, s in self._calling(part)]
            found = [self._words(state.fact(SP), node) for node, state in calls]
            known = self._stacks[part] = reduce(join, found) if found else ANY
        return known

    def _calling(self, part: int) -> Iterator[tuple[int, State]]:
        """The edges that call a shared context, and the states in which they do."""
        for edge in self._calls.get(part, ()):
            source = self.graph.edges[edge].src
            state = self._fixpoint.states[source]
            leave = None if state is None else self._domain.outcome(source, state).leave
            if leave is not None and edge not in self._dead:
                yield edge, leave.state

    def hands_on_a_stack_address(self, node: int) -> bool:
        """Whether the part of ``node`` may be handed an address in a caller's stack."""
        calling = self._calling(self.graph.part_of(node))
        return any(hands_on_a_stack_address(state) for _, state in calling)

    def _node_accesses(self, node: int) -> dict[int, Address]:
        known = self._accesses.get(node)
        if known is None:
            state = self._fixpoint.states[node]
            known = {} if state is None else self._domain.outcome(node, state).accesses()
            self._accesses[node] = known
        return known


def _above_entry(fact: Fact) -> ValueSet | None:
    """The offsets of a fact from sp at entry."""
    return fact.offsets if isinstance(fact, Anchored) and fact.base == ENTRY_SP else None


def _dead_returns(
    graph: Supergraph, domain: _ContextDomain, fixpoint: Fixpoint[State]
) -> frozenset[int]:
    """The returns out of shared contexts whose source is never left, or whose call is not made."""
    first = len(graph.edges)
    dead = {(s.call, s.after, s.callee) for i, s in enumerate(domain.steps)
            if first + i in fixpoint.dead}  # fmt: skip
    found: set[int] = set()
    for index, edge in enumerate(graph.edges):
        if edge.call is None:
            continue
        state = fixpoint.states[edge.src]
        left = state is not None and domain.outcome(edge.src, state).leave is not None
        if not left or (edge.call, edge.dst, graph.part_of(edge.src)) in dead:
            found.add(index)
    return frozenset(found)
