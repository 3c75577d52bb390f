"""Concrete execution of an entry: it counts loops as long as no unknown word decides a branch.

At the entry a register holds the word that value analysis knows, or any word. Memory has its
content as loaded, or any content. The execution follows the edges of the supergraph, so that it is
in one calling context at a time. Where it leaves a node for an address that is no successor, paths
must end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cache.executed.access_trace import TracedCode
from loopbounds.budgets import table
from loopbounds.execution.counts import ExecutionCounts, ExecutionPrefix
from loopbounds.execution.generated_code import NOWHERE
from loopbounds.execution.machine import ConcreteMachine, longest_execution
from loopbounds.execution.value import Undecided
from loopbounds.slicing.code import KnownValues
from quoll.arm.insn import PC
from quoll.assumptions import Assumption, if_they_hold
from quoll.errors import ControlFlowError
from quoll.facts.guidance import PathStartFact
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = [
    "LoopExecution",
    "at_the_end",
    "common_prefix",
    "concrete_execution",
    "executed_most",
    "follow",
]

Limits = tuple[tuple[int, ValueSet], ...]  # registers with their values


@dataclass(frozen=True, slots=True)
class LoopExecution:
    """``executions`` of a loop per entry from outside, in so many ``instructions``.

    ``ended``: the execution is complete; otherwise the loop may be executed more often.
    """

    executions: int
    instructions: int
    ended: bool
    assumed: tuple[Assumption, ...]

    def __str__(self) -> str:
        return (
            f"an execution of {self.instructions:,} instructions from the entry shows it"
            f"{if_they_hold(self.assumed)}"
        )


def concrete_execution(
    graph: Supergraph,
    image: Image,
    values: KnownValues,
    facts: Facts,
    cached: TracedCode | None = None,
) -> ExecutionCounts | None:
    """The concrete execution of an entry; None if there may be several, or an unknown word decides.

    ``values`` give the registers at the entry. Others as for ``follow``, which raises the same.
    """
    if facts.of(PathStartFact):
        return None
    known = [values.register(graph.entry, register).exact for register in range(PC)]
    try:
        return follow(graph, image, known, longest_execution(image), cached)
    except Undecided:
        return None


def follow(
    graph: Supergraph,
    image: Image,
    registers: Sequence[int | None],
    steps: int = table.EXECUTED_INSTRUCTIONS,
    cached: TracedCode | None = None,
) -> ExecutionCounts:
    """The concrete execution of ``graph`` from these general registers on; None: any word.

    ``cached``: the data cache is followed, too, if that is not too long. Raises Undecided where an
    unknown word decides a branch, after ``steps`` instructions, for calls that facts replace, and
    as ``ConcreteMachine.execute``.
    """
    if graph.guidance.replaced:
        raise Undecided("calls are not followed")
    walk = _Walk(graph, image, registers)
    walk.machine.follow_cache(cached)
    return walk.followed(steps)


def at_the_end(
    graph: Supergraph,
    image: Image,
    registers: Sequence[int | None],
    words: Mapping[tuple[int, int], int],
) -> ConcreteMachine:
    """The machine at the end of the path from these general registers on; raises as ``follow``.

    ``words``: words of memory at the entry, by address and size; others are as loaded.
    """
    if graph.guidance.replaced:
        raise Undecided("calls are not followed")
    walk = _Walk(graph, image, registers)
    for (address, size), word in words.items():
        walk.machine.put(address, size, word)
    walk.followed(table.EXECUTED_INSTRUCTIONS)
    return walk.machine


def executed_most(
    graph: Supergraph,
    image: Image,
    values: KnownValues,
    registers: Sequence[int | None],
    loop: int,
    steps: int,
) -> LoopExecution | None:
    """How often an execution that starts with these general registers executes a loop.

    It stops where an unknown word decides a branch, after ``steps`` instructions, or where it
    contradicts ``values``, which include facts about values. None if it cannot start. Raises
    ControlFlowError for an instruction without semantics.
    """
    walk = _Walk(graph, image, registers)
    ended = walk.follow_for(steps, values)
    machine = walk.machine
    return LoopExecution(walk.most[loop], machine.executed, ended, machine.assumed)


def common_prefix(graph: Supergraph, image: Image, values: KnownValues) -> ExecutionPrefix | None:
    """The common prefix of all executions of an entry, up to a decision by an unknown word.

    ``values`` give the registers at the entry. None if it is not known.
    """
    known = (values.register(graph.entry, register) for register in range(PC))
    walk = _Walk(graph, image, [one.exact for one in known])
    try:
        walk.follow_for(table.REPLAYED_INSTRUCTIONS, values)
    except ControlFlowError:  # an instruction without semantics
        return None
    return ExecutionPrefix(walk.machine.executed, tuple(walk.edges), walk.machine.assumed)


class _Walk:
    def __init__(self, graph: Supergraph, image: Image, registers: Sequence[int | None]) -> None:
        self._graph = graph
        self.machine = ConcreteMachine(image, registers)
        self._headed: dict[int, list[int]] = {}  # loops by header
        self._entered: dict[int, list[int]] = {}  # loops by edge
        self._inside: dict[int, list[int]] = {}  # inner loops by the enclosing one
        self._ways: dict[tuple[int, int], int | None] = {}  # edges by source and address
        self._limits: dict[int, Limits] = {}  # by node, of one analysis of values
        for loop in graph.loops:
            self._headed.setdefault(loop.header, []).append(loop.index)
            for edge in loop.entries:
                self._entered.setdefault(edge, []).append(loop.index)
            if loop.parent is not None:
                self._inside.setdefault(loop.parent, []).append(loop.index)
        self._running = [0] * len(graph.loops)
        self.most = [0] * len(graph.loops)
        self._total = [0] * len(graph.loops)
        self._totals = [0] * len(graph.loops)
        self.edges = [0] * len(graph.edges)

    def followed(self, steps: int) -> ExecutionCounts:
        node, machine = self._graph.entry, self.machine
        self._count(node)
        while True:
            if machine.executed > steps:
                raise Undecided(f"it is longer than {steps:,} instructions")
            block = self._graph.nodes[node].block
            if machine.executed > table.TRACED_INSTRUCTIONS:
                machine.follow_cache(None)
            traced = machine.trace is not None
            target = machine.execute_at(node, block) if traced else machine.execute(block)
            edge = self._edge(node, target)
            if edge is None:
                break
            self.edges[edge] += 1
            for loop in self._entered.get(edge, ()):
                self._enter(loop)
            node = self._graph.edges[edge].dst
            self._count(node)
        counted = tuple(self.most), tuple(self._totals), tuple(self.edges)
        found = ExecutionCounts(machine.executed, *counted, frozenset({node}), machine.assumed)
        return found if machine.trace is None else replace(found, misses=machine.trace.misses)

    def follow_for(self, steps: int, values: KnownValues) -> bool:
        """Follow so many instructions at most; whether the path ended."""
        node: int | None = self._graph.entry
        machine = self.machine
        try:
            while node is not None and machine.executed <= steps:
                if not machine.agrees(self._limits_at(node, values)):
                    break
                self._count(node)
                block = self._graph.nodes[node].block
                if block.passes:
                    break
                edge = self._edge(node, machine.execute(block))
                if edge is None:
                    node = None
                    break
                self.edges[edge] += 1
                for entered in self._entered.get(edge, ()):
                    self._enter(entered)
                node = self._graph.edges[edge].dst
        except Undecided:
            pass
        return node is None

    def _limits_at(self, node: int, values: KnownValues) -> Limits:
        """The registers that cannot hold any word where a node begins."""
        if node not in self._limits:
            each = ((register, values.register(node, register)) for register in range(PC))
            self._limits[node] = tuple((register, held) for register, held in each if held != ANY)
        return self._limits[node]

    def _enter(self, loop: int) -> None:
        self._running[loop] = 0
        for inner in self._inside.get(loop, ()):
            self._total[inner] = 0

    def _count(self, node: int) -> None:
        for loop in self._headed.get(node, ()):
            self._running[loop] += 1
            self._total[loop] += 1
            self.most[loop] = max(self.most[loop], self._running[loop])
            self._totals[loop] = max(self._totals[loop], self._total[loop])

    def _edge(self, node: int, target: int) -> int | None:
        """The edge by which control gets to ``target``; None where the path ends."""
        if (node, target) not in self._ways:
            self._ways[node, target] = self._found_edge(node, target)
        return self._ways[node, target]

    def _found_edge(self, node: int, target: int) -> int | None:
        graph = self._graph
        found = [e for e in graph.successors[node] if self._first(e) == target]
        if len(found) == 1:
            return found[0]
        ways = {self._first(e) for e in graph.successors[node]}
        returns = target == NOWHERE and ways <= {graph.nodes[node].block.end}  # not one of them
        ends = node in graph.exits and (returns or not ways)
        if ends and target not in graph.left_out.get(node, ()):
            return None
        raise Undecided("where it goes is not known")

    def _first(self, edge: int) -> int:
        return self._graph.nodes[self._graph.edges[edge].dst].block.addr
