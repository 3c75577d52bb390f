"""The code that loops are sliced from: the acyclic supergraph and the effect of each block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.cell import Cell, MemoryCell
from loopbounds.slicing.effects import FLAG, BlockEffect, LoadEffect, block_effect
from loopbounds.slicing.stacks import FRAMES, StackSpans
from loopbounds.terms.bit_vectors import Term, sub
from quoll.assumptions import Assumption
from quoll.cfg.cfg import Block, EdgeKind
from quoll.facts.contract import CALLEE_SAVED
from quoll.facts.entry_invariants import LocatedInvariant
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = [
    "CellStep",
    "GraphCode",
    "KnownValues",
    "LoopContinuation",
    "PassedCall",
    "UnknownValues",
    "is_steady",
]


def is_steady(image: Image, address: int, size: int) -> bool:
    """Whether only stores of the program change memory there, in a section of the image."""
    section = image.section_at(address)
    if section is None or not image.is_constant_range(address, size):
        return False
    return address + size <= section.addr + section.size


class KnownValues(Protocol):
    """The results of value analysis, for every execution of a node in its context."""

    def register(self, node: int, register: int, /) -> ValueSet:
        """The values of a general register when a node begins."""

    def access(self, node: int, insn: int, /) -> ValueSet | None:
        """The first addresses that an instruction of the node's block accesses; None: no access."""

    def frame_register(self, node: int, register: int, /) -> ValueSet | None:
        """The distance of a register from sp at the entry, plus ``BIAS``; None: unknown."""

    def frame_access(self, node: int, insn: int, /) -> ValueSet | None:
        """The distances of the first addresses that an instruction accesses; None: unknown."""

    def hands_on_a_stack_address(self, node: int, /) -> bool:
        """Whether the function of ``node`` may receive an address in a caller's stack."""


@dataclass(frozen=True, slots=True)
class CellStep:
    """The constant that every iteration of a loop adds to a cell."""

    amount: int
    assumed: frozenset[Assumption]  # named assumptions


@dataclass(frozen=True, slots=True)
class LoopContinuation:
    """Conditions on the header's cells that hold whenever an iteration returns to the header.

    ``leaves``: each symbol of the conditions, with its cell and the constant that an iteration
    adds. ``assumed``: the assumptions of the conditions, and of the loop's bound.
    """

    conditions: tuple[Term, ...]
    leaves: dict[Term, tuple[Cell, int]]
    assumed: frozenset[Assumption]  # named assumptions


@dataclass(frozen=True, slots=True)
class PassedCall:
    """A call that every way to some node passes, from ``edge`` on; with all calls inside.

    ``storing``: its nodes with stores. ``replaced``: its edges that stand for a function outside
    the graph.
    """

    edge: int
    nodes: frozenset[int]
    storing: tuple[int, ...]
    replaced: tuple[int, ...]


class UnknownValues:
    """Any word, anywhere."""

    def register(self, node: int, register: int, /) -> ValueSet:
        """Any word."""
        return ANY

    def access(self, node: int, insn: int, /) -> ValueSet | None:
        """Any address."""
        return ANY

    def frame_register(self, node: int, register: int, /) -> ValueSet | None:
        """None: no known distance from sp."""
        return None

    def frame_access(self, node: int, insn: int, /) -> ValueSet | None:
        """None: no known distance from sp."""
        return None

    def hands_on_a_stack_address(self, node: int, /) -> bool:
        """False: callers are not part of the program."""
        return False


@dataclass(slots=True)
class GraphCode:
    """The code, the values and the proved bounds; effects of blocks are computed on demand."""

    graph: Supergraph
    acyclic: AcyclicGraph
    image: Image
    values: KnownValues
    stacks: StackSpans  # all stacks of the program, also outside of ``graph``
    bounds: dict[int, int] = field(default_factory=dict)  # proved bounds, by loop index
    steps: dict[tuple[int, Cell], CellStep] = field(
        default_factory=dict
    )  # by loop and cell, if known
    continued: dict[int, LoopContinuation] = field(default_factory=dict)  # by loop, if bounded
    at_start: bool = False  # the graph's entry is where paths start, with memory as loaded
    s1: bool = True  # rule 1: stores of unknown address spare live stack frames
    lists: dict[int, int] = field(default_factory=dict)  # loop -> elements of its list
    arrived: bool = False  # gates of a join do not repeat that earlier loops were left
    pointed: bool = False  # words behind pointers are followed (``PointedWords``)
    invariants: tuple[LocatedInvariant, ...] = ()  # of words when the graph's entry is reached
    by_address: bool = False  # a store at one of several places hits a cell by its address
    tables: Callable[[int, int], ValueSet | None] | None = None  # as ``table``, if not by values
    # the assumptions under which a store, by node and instruction, spares a word of the image
    spared: Callable[[int, int, MemoryCell], frozenset[Assumption] | None] | None = None
    _effects: dict[int, BlockEffect] = field(default_factory=dict)  # by block
    _at: dict[int, BlockEffect] = field(default_factory=dict)  # by node
    _stores: tuple[int, ...] | None = None  # nodes with stores at no constant distance from sp
    _written: dict[int, frozenset[int]] = field(default_factory=dict)
    _one_way_out: dict[int, bool] = field(default_factory=dict)
    _stored_before: dict[int, bool] = field(default_factory=dict)  # by node
    _near_stack: dict[int, bool] = field(default_factory=dict)  # by constant
    _storing_in: dict[int, tuple[int, ...]] = field(default_factory=dict)  # by loop
    _begins: dict[int, int] | None = None  # by context
    _calls: dict[int, PassedCall | None] = field(default_factory=dict)  # by the node behind

    def effect(self, node: int) -> BlockEffect:
        """The effect of the block of ``node``."""
        known = self._at.get(node)
        if known is None:
            known = self._at[node] = self._effect_of(self.graph.nodes[node].block)
        return known

    def _effect_of(self, block: Block) -> BlockEffect:
        known = self._effects.get(id(block))
        if known is None:
            known = self._effects[id(block)] = block_effect(block, self.stacks.apart)
        return known

    def written(self, loop: int) -> frozenset[int]:
        """Registers that some block of a loop writes."""
        known = self._written.get(loop)
        if known is None:
            nodes = self.graph.loops[loop].nodes
            known = frozenset(r for node in nodes for r in self.effect(node).registers)
            passed = [callee for e in self.passed_in(loop) for callee in self.graph.passed(e)]
            for callee in passed:
                known |= frozenset(range(FLAG + 4)) - callee.preserved
            self._written[loop] = known
        return known

    def given_back(self, node: int, load: LoadEffect) -> tuple[int, int] | None:
        """The node at which the activation began, and the register that a load may restore.

        None unless ``node`` returns.
        """
        graph, registers = self.graph, self.effect(node).registers
        if not any(graph.edges[e].kind is EdgeKind.RETURN for e in graph.successors[node]):
            return None
        loaded = next((r for r in CALLEE_SAVED if registers.get(r) is load.symbol), None)
        began = self._beginnings().get(graph.nodes[node].context)
        return None if loaded is None or began is None else (began, loaded)

    def _beginnings(self) -> dict[int, int]:
        """The node at which the function of each context begins, where it is a single one."""
        if self._begins is None:
            found: dict[int, list[int]] = {}
            for index, node in enumerate(self.graph.nodes):
                if node.block.addr == self.graph.contexts[node.context].function:
                    found.setdefault(node.context, []).append(index)
            self._begins = {c: nodes[0] for c, nodes in found.items() if len(nodes) == 1}
        return self._begins

    def call_before(self, node: int) -> PassedCall | None:
        """The call from which all edges come to ``node``, if a single edge enters it."""
        if node not in self._calls:
            self._calls[node] = self._call_before(node)
        return self._calls[node]

    def _call_before(self, node: int) -> PassedCall | None:
        graph = self.graph
        back = [graph.edges[e].src for e in self.acyclic.predecessors[node]]
        if len({graph.nodes[n].context for n in back}) != 1:
            return None
        called = graph.nodes[back[0]].context
        if graph.contexts[called].parent != graph.nodes[node].context:
            return None
        inside = graph.called_by(called)
        found, enters = set(back), set[int]()
        while back:
            for edge in graph.predecessors[back.pop()]:
                source = graph.edges[edge].src
                if graph.nodes[source].context not in inside:
                    enters.add(edge)
                elif source not in found:
                    found.add(source)
                    back.append(source)
        if len(enters) != 1:
            return None
        passed = [e for n in found for e in graph.successors[n] if graph.passed(e)]
        storing = tuple(n for n in sorted(found) if self.effect(n).stores)
        return PassedCall(enters.pop(), frozenset(found), storing, tuple(passed))

    def storing_in(self, loop: int) -> tuple[int, ...]:
        """The nodes of a loop with stores."""
        if loop not in self._storing_in:
            nodes = sorted(self.graph.loops[loop].nodes)
            self._storing_in[loop] = tuple(n for n in nodes if self.effect(n).stores)
        return self._storing_in[loop]

    def passed_in(self, loop: int) -> list[int]:
        """The edges of a loop that stand for a function outside the graph."""
        nodes = self.graph.loops[loop].nodes
        return [e for n in nodes for e in self.graph.successors[n] if self.graph.passed(e)]

    def has_one_way_out(self, loop: int) -> bool:
        """Whether a single edge leaves a loop, which every terminating execution takes."""
        known = self._one_way_out.get(loop)
        if known is None:
            graph, nodes = self.graph, self.graph.loops[loop].nodes
            out = sum(graph.edges[e].dst not in nodes for n in nodes for e in graph.successors[n])
            known = self._one_way_out[loop] = out == 1
        return known

    def passes(self, edge: int, register: int) -> bool:
        """Whether a function outside the graph may change ``register`` along ``edge``."""
        passed = self.graph.passed(edge)
        return bool(passed) and any(register not in callee.preserved for callee in passed)

    def stored_before(self, node: int) -> bool:
        """Whether a store at no constant distance from sp may run before ``node``."""
        known = self._stored_before.get(node)
        if known is None:
            order, loops = self.acyclic.order, self.graph.loops
            around = [loop.nodes for loop in loops if node in loop.nodes]
            known = self._stored_before[node] = any(
                order[n] <= order[node] or any(n in nodes for nodes in around)
                for n in self._storing()
            )
        return known

    def _storing(self) -> tuple[int, ...]:
        if self._stores is None:
            self._stores = tuple(
                n
                for n in range(len(self.graph.nodes))
                for store in self.effect(n).stores
                if sub(store.address, store.sp).constant is None
            )
        return self._stores

    def steady(self, address: int, size: int) -> bool:
        """Whether only stores of this program change memory there, in a section of the image."""
        return is_steady(self.image, address, size)

    def is_frame(self, address: Term, stack_pointer: Term) -> bool:
        """Whether an address is within the live stack frames at a stack pointer."""
        distance = sub(address, stack_pointer).constant
        if distance is None or distance >= FRAMES:
            return False
        if address.constant is None:
            return True
        return self.stacks.hold(stack_pointer.value, address.value)

    def number(self, node: int, register: int) -> int | None:
        """A register when ``node`` begins, if value analysis gives one number outside of stacks."""
        number = self.values.register(node, register).exact
        return None if number is None or self.near_stack(number) else number

    def table(self, node: int, insn: int) -> ValueSet | None:
        """Addresses at which an instruction may read a table: a guess, as it may read elsewhere."""
        return (self.tables or self.values.access)(node, insn)

    def near_stack(self, value: int) -> bool:
        """Whether a constant may be an address in a stack."""
        known = self._near_stack.get(value)
        if known is None:
            names = self.image.memory.names(value, 1)
            known = self._near_stack[value] = any(map(self.stacks.reach, names))
        return known

    def near_stack_in_section(self, value: int) -> bool:
        """Whether a constant may be an address in a stack that is in a section."""
        return any(map(self.stacks.reach_in_section, self.image.memory.names(value, 1)))
