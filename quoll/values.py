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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quoll.arm.insn import Flow, Insn
from quoll.cfg import EdgeKind
from quoll.condition import words
from quoll.domain import ValueDomain
from quoll.fixpoint import Ascent, Fixpoint, solve
from quoll.havoc import after_call
from quoll.image import Image
from quoll.localvalues import BlockCode, environment_of
from quoll.machine import Environment
from quoll.state import State, entry_state, images
from quoll.steps import CompiledBlock
from quoll.supergraph import Supergraph
from quoll.terms import MASK, SIGN, Fact, Term, describe
from quoll.transfer import Address, Outcome, run
from quoll.valueset import ANY, ValueSet
from quoll.wto import FlowGraph, WeakOrder

__all__ = ["Entry", "Origin", "Resumed", "Values", "analyse"]

SP = 13
INDIRECT = (Flow.INDIRECT, Flow.INDIRECT_CALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known when the entry is reached: the processor mode (CPSR bits 4 to 0), registers."""

    mode: int | None = None
    registers: Mapping[int, ValueSet] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Origin:
    """An address as a symbol plus a constant; the symbol is a word that is followed, not known.

    Equal symbols are equal words, as long as ``Values.images`` does not say otherwise.
    """

    symbol: int
    offset: int  # bytes, may be negative


def analyse(graph: Supergraph, image: Image, entry: Entry | None = None) -> Values:
    """The values of ``graph``. Raises ControlFlowError for an instruction without semantics."""
    environment = environment_of(image)
    flow = FlowGraph(
        graph.entry, [e.src for e in graph.edges], [e.dst for e in graph.edges], graph.successors
    )
    order = WeakOrder.of(flow)
    code = BlockCode()
    compiled = {id(node.block): node.block for node in graph.nodes}
    blocks = {key: code(block.insns) for key, block in compiled.items()}
    bodies = [blocks[id(node.block)] for node in graph.nodes]
    domain = _ContextDomain(graph, flow, order, bodies, environment, code)
    start = _start(entry or Entry(), environment)
    return Values(graph, domain, solve(flow, order, domain, start))


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

    def __init__(
        self,
        graph: Supergraph,
        flow: FlowGraph,
        order: WeakOrder,
        blocks: Sequence[CompiledBlock],
        environment: Environment,
        code: BlockCode,
    ) -> None:
        kinds = [edge.kind for edge in graph.edges]
        special = {
            EdgeKind.INDIRECT: self._indirect,
            EdgeKind.CALL: self._indirect,
            EdgeKind.ACROSS: self._passed,
            EdgeKind.RETURN: self._passed,
        }
        self._graph = graph
        super().__init__(flow, order, blocks, kinds, environment, special)
        self._closed: frozenset[int] = frozenset()
        self._nodes = graph.nodes
        self._code = code
        self._indirect_sources = [n.block.last.flow in INDIRECT for n in graph.nodes]

    def assuming(self, given: Mapping[int, ValueSet], closed: frozenset[int]) -> _ContextDomain:
        """The same where words of a device read as ``given`` and nothing passes ``closed``."""
        environment = replace(self.environment, given=given)
        domain = _ContextDomain(
            self._graph, self.graph, self.order, self.blocks, environment, self._code
        )
        domain._closed = closed
        return domain

    def transfer(self, edge: int, state: State) -> State | None:
        """The state along ``edge``."""
        return None if edge in self._closed else super().transfer(edge, state)

    def before(self, node: int, state: State, insns: tuple[Insn, ...]) -> State:
        """The state after the first instructions of ``node``."""
        if not insns:
            return state
        position = self.order.position[node]
        fall = run(self._code(insns), state, self.environment, position).fall
        return state if fall is None else fall

    def _passed(self, edge: int, outcome: Outcome) -> State | None:
        """Along a return, or past a function that a fact replaces."""
        if outcome.leave is None:
            return None
        passed = self._graph.passed(edge)
        if not passed:
            return outcome.leave.state
        position = self.order.position[self.graph.sources[edge]]
        preserves = all(replacement.preserves for replacement in passed)
        return after_call(outcome.leave.state, self.environment, position, preserves=preserves)

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
    """Values of the same graph from other starts, under an assumption: see ``Values.resumed``."""

    def __init__(self, known: Fixpoint[State], domain: _ContextDomain) -> None:
        self._known = known
        self._ascent = Ascent(domain.graph, domain.order, domain)

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

    def resumed(
        self, given: Mapping[int, ValueSet], closed: frozenset[int] = frozenset()
    ) -> Resumed:
        """Values once more, from nodes to be chosen, when words of a device read as ``given``.

        Nothing passes the edges ``closed``.
        """
        return Resumed(self._fixpoint, self._domain.assuming(given, closed))

    @property
    def dead_edges(self) -> frozenset[int]:
        """Edges that cannot be taken in their context, those out of unreached nodes included."""
        return self._fixpoint.dead

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The named assumptions (rule 1) that the values rest on."""
        return tuple(sorted(self._domain.environment.used))

    @property
    def visits(self) -> int:
        """Nodes interpreted until nothing changed, repetitions included."""
        return self._fixpoint.visits

    def reached(self, node: int) -> bool:
        """Whether some execution may reach ``node``, as far as values tell."""
        return self._fixpoint.states[node] is not None

    def register(self, node: int, register: int) -> ValueSet:
        """What r0 to lr may hold at the start of ``node``; any word if it is never reached."""
        state = self._fixpoint.states[node]
        return ANY if state is None else self._words(state.fact(register))

    def access(self, node: int, insn: int) -> ValueSet | None:
        """First addresses of the data access of an instruction, in this context.

        None if the instruction makes no access, or is never executed. ANY if nothing is known.
        """
        known = self._node_accesses(node).get(insn)
        return None if known is None else self._words(known.fact)

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
        taken = self.graph.edges[edge]
        before, after = self._fixpoint.states[taken.src], self._fixpoint.states[taken.dst]
        if before is None or after is None:
            return {}
        out = self._domain.transfer(edge, before)
        return {} if out is None else images(out, after)

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
            return "no such target" if target is None else f"goes to {self._show(target, outcome)}"
        deciding = [i for i, insn in enumerate(block.insns) if insn.sets_flags]
        index = deciding[-1] if deciding else len(block.insns) - 1
        before = self._domain.before(source, state, block.insns[:index])
        known = (
            f"r{register} = {self._words(before.fact(register))}"
            for register in sorted(block.insns[index].reads - {15})
        )
        return f"{block.insns[index].text}: {', '.join(known) or 'decided before'}"

    def _show(self, term: int, outcome: Outcome) -> str:
        assert outcome.leave is not None
        return str(self._words(describe(term, outcome.leave.state.facts)))

    def _words(self, fact: Fact) -> ValueSet:
        return words(fact, self._domain.environment.stacks)

    def _node_accesses(self, node: int) -> dict[int, Address]:
        known = self._accesses.get(node)
        if known is None:
            state = self._fixpoint.states[node]
            known = {} if state is None else self._domain.accesses(node, state)
            self._accesses[node] = known
        return known
