"""The abstract domain of values in calling contexts: transfer along the edges of a supergraph.

The initial state, memory under facts, and the transfer of calls and returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_memory import MemoryUsage
from quoll.abstract_domain.abstract_state import AbstractState, entry_state
from quoll.abstract_domain.condition import words
from quoll.abstract_domain.function_values import BlockCode, environment_of
from quoll.abstract_domain.havoc import after_call
from quoll.abstract_domain.steps import CompiledBlock
from quoll.abstract_domain.terms import Fact, describe
from quoll.abstract_domain.transfer import BlockOutcome, run
from quoll.abstract_domain.value_domain import ValueDomain
from quoll.arm.insn import SP, ControlFlow, Insn
from quoll.cfg.cfg import EdgeKind
from quoll.facts.regions import MemoryRegions
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet

__all__ = ["ContextDomain", "EntryRegisters", "environment_in", "flow_of", "start_of"]

WORD = 4  # bytes
INDIRECT = (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)


@dataclass(frozen=True, slots=True)
class EntryRegisters:
    """The state at the entry: the processor mode (CPSR bits 4 to 0), registers, interrupt mask.

    ``masked``: whether interrupts are masked; None if it is not known. ``words``: possible values
    of words of memory, by address and size in bytes.
    """

    mode: int | None = None
    registers: Mapping[int, ValueSet] = field(default_factory=dict)
    masked: bool | None = None
    words: Mapping[tuple[int, int], ValueSet] = field(default_factory=dict)


def flow_of(graph: Supergraph) -> FlowGraph:
    """The graph in the form of the fixed-point engine."""
    sources = [edge.src for edge in graph.edges]
    targets = [edge.dst for edge in graph.edges]
    return FlowGraph(graph.entry, sources, targets, graph.successors)


def environment_in(
    image: Image, regions: MemoryRegions, *, retranslated: bool = False
) -> AnalysisEnvironment:
    """The environment under facts: cached regions are ordinary memory, read-only ones constant.

    Objects of their own are ordinary memory, too, where the platform says that they are in RAM:
    no segment need hold them.

    ``retranslated``: the program changes translations, so only memory that the map fixes is.
    """
    fixed = regions.of_kind("read-only")
    environment = environment_of(image.holding((r.low, r.high) for r in fixed))
    if image.as_loaded:
        environment.apart = lambda addr: image.at_start(addr, 1) is not None
    ordinary = environment.ordinary
    cached = regions.of_kind("cached")
    if cached:
        environment.ordinary = lambda addr: (
            ordinary(addr)
            or (
                any(r.low <= addr <= r.high for r in cached)
                and not image.is_disturbed((addr, addr))
                and not (retranslated and not image.memory.fixed(addr))
            )
        )
    environment.retranslated = retranslated
    if image.owns:
        environment.own_object = image.own_object
        environment.ordinary = partial(_ordinary_or_own, image, environment.ordinary)
    return environment


def _ordinary_or_own(image: Image, ordinary: Callable[[int], bool], addr: int) -> bool:
    """``ordinary``, or a byte of an object of its own that only stores of the path change."""
    return ordinary(addr) or (
        image.own_object(addr, 1) != ""
        and image.memory.is_memory((addr, addr))
        and image.is_constant_range(addr, 1)
    )


def start_of(
    entry: EntryRegisters,
    environment: AnalysisEnvironment,
    contents: Mapping[int, int] | None = None,
) -> AbstractState:
    """The state at the entry; ``contents``: words of memory that are known there."""
    state = entry_state(environment.names, entry.mode, entry.masked)
    registers, facts = list(state.registers), dict(state.facts)
    for register, known in entry.registers.items():
        symbol = environment.names.of(-1, ("given", register))
        exact = known.exact
        registers[register] = symbol << 32 if exact is None else exact
        if exact is None:
            facts[symbol] = known
        elif register == SP:
            registers[register] = environment.stack(exact) << 32
    cells = stated_cells(entry.words, environment, facts)
    return AbstractState(tuple(registers), {}, {**cells, **(contents or {})}, {}, facts)


def stated_cells(
    stated: Mapping[tuple[int, int], ValueSet],
    environment: AnalysisEnvironment,
    facts: dict[int, Fact],
) -> dict[int, object]:
    """Cells for words of ordinary memory with known values, which ``facts`` gets."""
    cells: dict[int, object] = {}
    for (address, size), known in stated.items():
        places = range(address, address + size)
        if address % size or address in cells or not all(map(environment.ordinary, places)):
            continue
        term = known.exact
        if term is None:
            symbol = environment.names.of(-1, ("stated", address, size))
            facts[symbol], term = known, symbol << 32
        cells[address] = term if size == WORD else (size, term)
        if not environment.map.tells((address, address + size - 1)):
            environment.use.untold.add(address)
    return cells


class ContextDomain(ValueDomain):
    """Transfer on a supergraph: an indirect transfer follows the edges that the written word
    allows.
    """

    noting = True

    def __init__(
        self,
        graph: Supergraph,
        flow: FlowGraph,
        order: WeakOrder,
        blocks: Sequence[CompiledBlock],
        environment: AnalysisEnvironment,
        code: BlockCode,
    ) -> None:
        kinds = [edge.kind for edge in graph.edges]
        self._graph = graph
        super().__init__(flow, order, blocks, kinds, environment, self._special())
        self._closed: frozenset[int] = frozenset()
        self._like: ContextDomain | None = None  # the same domain without the assumption
        self._about: Set[int] = frozenset()  # words of its assumption, or of the one of ``_like``
        self._nodes = graph.nodes
        self.code = code
        self._indirect_sources = [n.block.last.flow in INDIRECT for n in graph.nodes]

    def _special(self) -> Mapping[EdgeKind, Callable[[int, BlockOutcome], AbstractState | None]]:
        return {
            EdgeKind.INDIRECT: self._indirect,
            EdgeKind.CALL: self._indirect,
            EdgeKind.ACROSS: self._passed,
            EdgeKind.RETURN: self._passed,
        }

    def assuming(self, given: Mapping[int, Fact], closed: frozenset[int]) -> ContextDomain:
        """The same domain where device words read as ``given`` and no state passes ``closed``."""
        domain = copy(self)
        domain.environment = replace(self.environment, given=given)
        domain.special = domain._special()
        domain._closed = closed
        domain._about = frozenset({*given, *self.environment.given})
        domain._like = self
        domain._outcomes, domain._climbs = {}, {}
        domain.noting = False
        return domain

    def apart(self) -> ContextDomain:
        """The same domain, which notes accesses, but does not change the record of used memory."""
        domain = self.assuming(self.environment.given, self._closed)
        domain.environment = replace(
            domain.environment,
            use=MemoryUsage(),
            limits={},
            loaded={},
            unknown=set(),
            lost=set(self.environment.lost),
        )
        domain.special = domain._special()
        domain._like, domain.noting = None, True
        return domain

    def outcome(self, node: int, state: AbstractState) -> BlockOutcome:
        """The outcome of ``node``; cached if the assumption does not affect it."""
        return self._known(node, state) or super().outcome(node, state)

    def _known(self, node: int, state: AbstractState) -> BlockOutcome | None:
        """The cached outcome of ``node`` from this very state."""
        known = self._outcomes.get(node)
        if known is not None and known[0] is state:
            return known[1]
        if self._like is None or self._depends(node):
            return None
        return self._like._known(node, state)

    def _depends(self, node: int) -> bool:
        """Whether ``node`` is known to load a word that the assumption concerns."""
        words = self.environment.loaded.get(self.order.position[node])
        return words is not None and not words.isdisjoint(self._about)

    def restricted(self, graph: Supergraph, nodes: Sequence[int]) -> ContextDomain:
        """The same domain on a graph of ``nodes``."""
        whole, order = self.order, self.order.restricted(nodes)
        positions = {
            whole.position[old]: order.position[new]
            for new, old in enumerate(nodes)
            if whole.position[old] >= 0
        }
        known = self.environment
        environment = replace(
            known,
            names=known.names.renumbered(positions),
            limits={positions[p]: found for p, found in known.limits.items() if p in positions},
            loaded={positions[p]: found for p, found in known.loaded.items() if p in positions},
        )
        blocks = [self.blocks[old] for old in nodes]
        domain = ContextDomain(graph, flow_of(graph), order, blocks, environment, self.code)
        outcomes = self._outcomes
        domain._outcomes = {new: outcomes[old] for new, old in enumerate(nodes) if old in outcomes}
        return domain

    def transfer(self, edge: int, state: AbstractState) -> AbstractState | None:
        """The state along ``edge``."""
        found = None if edge in self._closed else super().transfer(edge, state)
        if found is None or not self.code.unmasked:
            return found
        begins = self._nodes[self.graph.targets[edge]].block.addr in self.code.unmasked
        return found.unmasked() if begins and found.known_mask is None else found

    def before(self, node: int, state: AbstractState, insns: tuple[Insn, ...]) -> AbstractState:
        """The state after the first instructions of ``node``."""
        if not insns:
            return state
        position = self.order.position[node]
        fall = run(self.code(insns), state, self.environment, position).fall
        return state if fall is None else fall

    def _passed(self, edge: int, outcome: BlockOutcome) -> AbstractState | None:
        """The state along a return, or past a function that a fact replaces."""
        if outcome.leave is None:
            return None
        passed = self._graph.passed(edge)
        if not passed:
            return outcome.leave.state
        source = self.graph.sources[edge]
        saved = partial(self._graph.saved_words, source)
        position = self.order.position[source]
        frame, state = self._graph.frame_at(source), outcome.leave.state
        return after_call(state, self.environment, position, passed, saved, frame)

    def _indirect(self, edge: int, outcome: BlockOutcome) -> AbstractState | None:
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
