"""All executions of an entry, followed together: the most executions of each loop.

The executions are followed as if every loop were unrolled. Where an unknown word decides a branch,
both ways are followed. A place is a block in one iteration of each loop around it. Executions that
arrive at one place with the same words in the registers that may decide something go on as one,
with the words and ranges of memory in which they agree, and with the highest counts. If they differ
in too many ways, only a few registers tell them apart, and the others have ranges. The words that
decide the loops of a nest, such as the width that doubles and the start that moves by it, have the
values of the program in each iteration.

A place is written as the position of the header of each loop around in the graph without back
edges, with the iteration, from the outermost on, and the position of the block. Every edge leads to
a greater place. The least place is followed first, so that all executions have arrived there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import chain
from typing import NamedTuple

from cache.executed.access_trace import AccessTrace, TracedCode
from loopbounds.budgets import table
from loopbounds.execution.branch_relation import (
    BranchRelation,
    branch_relation,
    condition_groups,
    condition_relation,
)
from loopbounds.execution.counts import ExecutionCounts, UnfinishedCounts
from loopbounds.execution.deciding import (
    deciding_in_block,
    deciding_registers,
    deciding_words,
)
from loopbounds.execution.generated_code import NEXT, NOWHERE
from loopbounds.execution.machine import (
    REGISTERS,
    CompiledInsn,
    ConcreteMachine,
    StateWords,
)
from loopbounds.execution.memory import RecordedWord
from loopbounds.execution.monotone_words import MonotoneWord, NodeAccesses, monotone_words
from loopbounds.execution.packed_counts import PackedCounts, count_of, one_of
from loopbounds.execution.value import ConcreteValue, Undecided, joined
from loopbounds.execution.word_range import WordRange
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import KnownValues
from quoll.arm.insn import PC, Condition
from quoll.cfg.cfg import Block, EdgeKind
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.intervals.strided_interval import ANY
from quoll.semantics.ops import OpCode, Var

__all__ = ["executed_together"]

WORD_SIZE = 4
Words = StateWords  # of registers and of memory; None if one is a range, or does not decide
_Before = tuple["Place", dict[Words, ConcreteMachine]]  # the states of an iteration
Place = tuple[int, ...]  # order and iteration of each loop around, outermost first; order of node


def executed_together(
    graph: Supergraph,
    image: Image,
    values: KnownValues,
    bounds: Mapping[int, int],
    cached: TracedCode | None = None,
) -> ExecutionCounts | UnfinishedCounts:
    """The most that any execution of an entry counts; unfinished if too little is known.

    ``bounds``: of the header executions of loops per entry, if known. ``cached``: the data cache is
    followed, too. Raises ControlFlowError for an instruction without semantics.
    """
    if graph.guidance.replaced:
        return UnfinishedCounts((0,) * len(graph.loops))
    for most in (table.FOLLOWED_STATES, table.FEWER_STATES):
        executions = _Together(graph, image, values, bounds, cached, most)
        try:
            return executions.followed()
        except TooLong:
            continue
        except Undecided:
            break
    return executions.unfinished


class TooLong(Undecided):
    """There are too many instructions in all states together."""


@dataclass(slots=True)
class _Arrived:
    """The executions at a place: the words in which they agree, and their highest counts."""

    node: int
    machine: ConcreteMachine
    edges: int  # packed traversals
    headers: int  # packed executions


class _Parted(NamedTuple):
    """Two states that an unknown condition has parted, from an instruction to a group's end."""

    first: int
    end: int
    one: ConcreteMachine
    other: ConcreteMachine


class _Step(NamedTuple):
    """An edge between places: the new one has the first ``shared`` loops of the old one.

    ``back``: the last of these loops repeats. ``entered``: the rest of the new place. ``left``: the
    loops that are left, with the positions of their iterations in the old place.
    """

    node: int
    shared: int
    back: bool
    entered: Place
    left: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Place:
    """The executions at a place, by the words in the ``columns`` that tell them apart; all: None.

    The words of a state are in its machine; a word of another column may be a range.
    """

    states: dict[Words, _Arrived] = field(default_factory=dict)
    columns: frozenset[int] | None = None

    def key(self, words: Words) -> Words:
        """The words that tell a state apart."""
        if self.columns is None:
            return words
        return tuple([w if i in self.columns else None for i, w in enumerate(words)])


def told_apart(states: Sequence[Words], most: int) -> frozenset[int]:
    """Columns with few different words, which leave at most so many of these states different."""
    columns = sorted((len(set(words)), i) for i, words in enumerate(zip(*states, strict=True)))
    chosen: list[int] = []
    for count, column in columns:
        tried = [*chosen, column]
        if count > 1 and len({tuple([s[i] for i in tried]) for s in states}) <= most:
            chosen = tried
    return frozenset(chosen)


@dataclass(slots=True)
class _Together:
    graph: Supergraph
    image: Image
    values: KnownValues
    bounds: Mapping[int, int]
    cached: TracedCode | None
    most_states: int  # of a place
    _acyclic: AcyclicGraph = field(init=False)
    _around: tuple[tuple[int, ...], ...] = field(init=False)  # node -> loops, outermost first
    _headed: dict[int, int] = field(init=False)  # header -> loop
    _backs: frozenset[int] = field(init=False)
    _inside: dict[int, list[int]] = field(init=False, default_factory=dict)  # loop -> inner loops
    _waiting: list[Place] = field(init=False, default_factory=list)
    _arrived: dict[Place, _Place] = field(init=False, default_factory=dict)
    _deciding: list[frozenset[int]] = field(init=False)
    _deciding_words: list[tuple[RecordedWord, ...]] = field(init=False)
    _of_edges: PackedCounts = field(init=False)
    _of_headers: PackedCounts = field(init=False)
    _once: list[int] = field(init=False)  # the packed counts of one traversal of each edge
    _entering: dict[int, int] = field(init=False)  # loop -> mask that resets its inner loops
    _limits: dict[int, list[tuple[int, ConcreteValue]]] = field(init=False, default_factory=dict)
    _relations: dict[int, BranchRelation | None] = field(init=False, default_factory=dict)
    _conditions: dict[tuple[int, int], BranchRelation | None] = field(
        init=False, default_factory=dict
    )
    _groups: dict[int, dict[int, int]] = field(init=False, default_factory=dict)  # by block
    _parted_insns: int = field(init=False, default=0)  # of further states in blocks
    _vain: dict[tuple[int, int], int] = field(init=False, default_factory=dict)  # by instruction
    _inside_blocks: dict[tuple[int, frozenset[int]], list[frozenset[int]]] = field(
        init=False, default_factory=dict
    )
    _steps: dict[int, _Step] = field(init=False, default_factory=dict)  # by edge
    _ways: dict[tuple[int, int], list[int]] = field(init=False, default_factory=dict)
    _most: list[int] = field(init=False)
    _fewest: dict[int, int] = field(init=False, default_factory=dict)  # of entries that are left
    _totals: list[int] = field(init=False)
    _ended: int | None = field(init=False, default=None)
    _ends: set[int] = field(init=False, default_factory=set)
    _open: set[int] = field(init=False, default_factory=set)
    _endless: set[int] = field(init=False, default_factory=set)
    _before: dict[int, _Before] = field(init=False, default_factory=dict)  # by loop
    _missed: AccessTrace | None = field(init=False, default=None)
    _monotone: dict[int, list[MonotoneWord]] = field(init=False, default_factory=dict)  # by loop
    _columns: dict[int, tuple[int, ...]] = field(init=False, default_factory=dict)  # by node
    _cells: NodeAccesses = field(init=False, default_factory=dict)
    _spans: dict[tuple[int, Var | RecordedWord], int | WordRange | None] = field(
        init=False, default_factory=dict
    )  # by loop: the words of its monotone words at the header
    _executed: int = field(init=False, default=0)
    _apart: int = field(init=False, default=0)  # of these, where several states are at a place

    def __post_init__(self) -> None:
        graph, loops = self.graph, self.graph.loops
        self._deciding = deciding_registers(graph)
        self._deciding_words = deciding_words(graph, self.values)
        self._acyclic = AcyclicGraph.of(graph)
        around = (tuple(self._acyclic.around(n))[::-1] for n in range(len(graph.nodes)))
        self._around = tuple(around)
        self._headed = {loop.header: loop.index for loop in loops}
        self._backs = frozenset(chain.from_iterable(loop.backs for loop in loops))
        for loop in loops:
            if loop.parent is not None:
                self._inside.setdefault(loop.parent, []).append(loop.index)
        self._of_edges = PackedCounts(len(graph.edges))
        self._of_headers = PackedCounts(len(loops))
        self._once = list(map(one_of, range(len(graph.edges))))
        self._entering = {i: self._of_headers.others(inner) for i, inner in self._inside.items()}
        self._most, self._totals = [0] * len(loops), [0] * len(loops)

    @property
    def unfinished(self) -> UnfinishedCounts:
        """The counts so far, with the loops that need a bound."""
        often = {i for i in self._open if self._most[i] >= table.ENDLESS_ITERATIONS}
        needed = self._endless or often - self.bounds.keys()
        return UnfinishedCounts(tuple(self._most), frozenset(needed))

    def followed(self) -> ExecutionCounts:
        graph = self.graph
        known = (self.values.register(graph.entry, register) for register in range(PC))
        machine = ConcreteMachine(self.image, [one.exact for one in known])
        machine.follow_cache(self.cached)
        first = _Arrived(graph.entry, machine, 0, 0)
        if graph.entry in self._headed:
            self._count(self._headed[graph.entry], 0, first)
        self._arrive(self._place(graph.entry, 0), first)
        while self._waiting:
            place = heappop(self._waiting)
            here = self._arrived.pop(place)
            self._refuse_endless(place, here)
            alone = len(here.states) == 1
            for at in here.states.values():
                going: tuple[Place, _Arrived] | None = (place, at)
                while going is not None:
                    going = self._follow(*going, alone=alone)
        if self._ended is None:
            raise Undecided("no path ends")
        edges = list(self._of_edges.values(self._ended))
        for loop in graph.loops:  # outer loops come first
            self._limit_by_words(loop, edges)
        return ExecutionCounts(
            self._executed,
            tuple(self._most),
            tuple(self._totals),
            tuple(edges),
            frozenset(self._ends),
            machine.assumed,
            only=False,
            open=frozenset(self._open),
            misses=None if self._missed is None else self._missed.misses,
            always=frozenset(i for i, few in self._fewest.items() if few == self._most[i]),
        )

    def _limit_by_words(self, loop: SuperLoop, edges: list[int]) -> None:
        """Lower the total of an inner loop, and the traversals of its edges."""
        for word in self._words_of(loop):
            span = self._spans.get((loop.index, word.location))
            if span is None:
                continue
            outer = self.graph.loops[word.outer]
            executed = sum(
                most * sum(map(len, self._cells[edge.src]))
                for edge, most in zip(self.graph.edges, edges, strict=True)
                if edge.src in outer.nodes
            )
            width = 0 if isinstance(span, int) else span.high - span.low
            total = word.total(width, self._entries(loop, outer), executed)
            if total is None:
                continue
            if outer.index == loop.parent:
                self._totals[loop.index] = min(self._totals[loop.index], total)
            starts_inside = self.graph.entry in outer.nodes  # entered by no edge
            most = total * (starts_inside + sum(edges[e] for e in outer.entries))
            for number, edge in enumerate(self.graph.edges):
                if self._around[edge.src][-1:] == (loop.index,):
                    edges[number] = min(edges[number], most)

    def _entries(self, loop: SuperLoop, outer: SuperLoop) -> int:
        """The most entries into a loop per entry of a loop around it."""
        entries = 1
        while loop.index != outer.index and loop.parent is not None:
            loop = self.graph.loops[loop.parent]
            entries *= self._most[loop.index]
        return entries

    def _words_of(self, loop: SuperLoop) -> list[MonotoneWord]:
        """The words that only grow, or only fall, at the header of an inner loop."""
        if loop.index not in self._monotone:
            found = monotone_words(self.graph, self.image, self.values, loop, self._cells)
            self._monotone[loop.index] = found
        return self._monotone[loop.index]

    def _monotone_columns(self, node: int) -> tuple[int, ...]:
        """The places, in the words of a state, of positions that only grow or fall in a loop here.

        They tell no states apart: totals need only their ranges.
        """
        if node not in self._columns:
            words = {
                word.location
                for inner in self.graph.loops
                if set(self._around[inner.header]).intersection(self._around[node])
                for word in self._words_of(inner)
                if word.outer in self._around[node]
            }
            cells = self._deciding_words[node]
            registers = [word.offset for word in words if isinstance(word, Var)]
            stored = [REGISTERS + at for at, cell in enumerate(cells) if cell in words]
            self._columns[node] = (*registers, *stored)
        return self._columns[node]

    def _note_words(self, loop: SuperLoop, machine: ConcreteMachine) -> None:
        """Note the words with which a header is executed."""
        for word in self._words_of(loop):
            key, new = (loop.index, word.location), machine.content(word.location)
            number = new if isinstance(new, int | WordRange) else None
            old = self._spans.get(key, number)
            both = None if old is None or number is None else joined(old, number)
            self._spans[key] = both if isinstance(both, int | WordRange) else None

    def _refuse_endless(self, place: Place, here: _Place) -> None:
        """Raise Undecided if a loop without a bound begins as its last iteration began.

        It is compared with iterations that are powers of two.
        """
        loop = self._headed.get(next(iter(here.states.values())).node)
        if loop is None or loop in self.bounds or place[-2] < table.REPEATED_ITERATIONS:
            return
        last = (*place[:-2], place[-2] - 1, place[-1])
        states = {words: at.machine for words, at in here.states.items()}
        compared, before = self._before.get(loop, (place, states))
        if (
            compared == last
            and before.keys() == states.keys()
            and all(machine.in_state_of(before[words]) for words, machine in states.items())
        ):
            self._endless.add(loop)
            raise Undecided("a loop repeats its state")
        if place[-2] & place[-2] - 1 == 0:
            self._before[loop] = place, {words: m.fork() for words, m in states.items()}

    def _follow(self, place: Place, at: _Arrived, *, alone: bool) -> tuple[Place, _Arrived] | None:
        """Follow the block at a place; the place of each state after it takes the state in.

        Returns the only state after it with its place instead, if no other state can arrive there.
        ``alone``: no other state is at this place.
        """
        graph, node = self.graph, at.node
        block = graph.nodes[node].block
        if block.passes:
            raise Undecided("a call is passed over")
        self._executed += len(block.insns)
        self._apart += 0 if alone else len(block.insns)
        if self._executed > table.FOLLOWED_INSTRUCTIONS or self._apart > table.FOLLOWED_APART:
            raise TooLong("too many instructions")
        done, end = at.machine.decided(node, block)
        if end != NEXT or done == len(block.insns):
            after = [(block.end if end == NEXT else end, at.machine)]
        else:
            after = list(self._after_block(node, at.machine, done))
        ways = [(e, m) for target, m in after for e in self._edges(node, target)]
        if node in graph.exits:
            self._end(node, at, (at.machine, *(machine for _, machine in after)))
        if len(ways) > 1:
            self._leave_open(node, {e for e, _ in ways})
        for number, (edge, machine) in enumerate(ways):
            again = any(machine is other for _, other in ways[number + 1 :])
            new = self._take(edge, place, machine.fork() if again else machine, at)
            if new is None:
                continue
            if alone and len(ways) == 1 and new[1].node not in self._headed and self._is_first(new):
                new[1].machine.limit(self._limits_at(new[1].node))
                return new
            self._arrive(*new)
        return None

    def _is_first(self, new: tuple[Place, _Arrived]) -> bool:
        """Whether all other states have passed the place."""
        return not self._waiting or new[0] < self._waiting[0]

    def _after_block(
        self, node: int, machine: ConcreteMachine, done: int
    ) -> Iterator[tuple[int, ConcreteMachine]]:
        """The states after the block of a node, each with the address of the next block.

        ``done``: the number of its instructions that the machine has executed.
        """
        block, states = self.graph.nodes[node].block, [machine]
        steps = machine.steps(block)
        parted: list[_Parted] = []
        for index, step in enumerate(steps[done:], done):
            going: list[ConcreteMachine] = []
            always = step.condition is Condition.AL
            for state in states if always else self._parted(node, index, states, parted):
                ways = state.ways(step, partial(self._reach, node, index, step))
                for target, one in ways:
                    last = len(ways) > 1 and index + 1 == len(steps)
                    if last and not self._may_branch(block, one, taken=target != NEXT):
                        continue
                    one.note(node, index, step)
                    if target == NEXT:
                        going.append(one)
                    else:
                        yield target, one
            self._parted_insns += max(len(going) - 1, 0)
            states = self._together_again(node, index + 1, going, parted)
        for state in states:
            yield block.end, state

    def _parted(
        self,
        node: int,
        index: int,
        states: Sequence[ConcreteMachine],
        parted: list[_Parted],
    ) -> Iterator[ConcreteMachine]:
        """The states before an instruction, two for each one in which it parts them.

        States that may go on together behind its group are added to ``parted``.
        """
        block = self.graph.nodes[node].block
        end = self._groups_of(block).get(index)
        for state in states:
            step, other = state.steps(block)[index], None
            if not state.parts_at(block, index):
                few = len(states) + len(parted) <= table.PARTED_STATES
                few = few and self._parted_insns <= table.PARTED_INSTRUCTIONS
                vain = self._vain.get((id(block), index), 0) >= table.VAIN_PARTINGS
                if end is None or vain or not few or not state.is_undecided(step):
                    yield state
                    continue
                other = end
            condition = block.insns[index].cond
            if (id(block), index) not in self._conditions:
                ops = [step.ops for step in state.steps(block)[:index]]
                relation = condition_relation(condition, block.insns[:index], ops)
                self._conditions[id(block), index] = relation
            relation = self._conditions[id(block), index]
            both = []
            for one, holds in ((state.fork(), True), (state, False)):
                if relation is None or one.branched(relation, taken=holds):
                    one.assume(condition, holds=holds)
                    both.append(one)
            if len(both) == 2 and other is not None:
                parted.append(_Parted(index, other, both[0], both[1]))
            yield from both

    def _together_again(
        self,
        node: int,
        end: int,
        states: list[ConcreteMachine],
        parted: list[_Parted],
    ) -> list[ConcreteMachine]:
        """Join states behind the group that has parted them, unless it told numbers apart.

        ``end``: of the instructions that have been followed. A joined state leaves ``parted``.
        """
        for pair in [pair for pair in parted if pair.end == end]:
            parted.remove(pair)
            both = [s for s in states if s is pair.one or s is pair.other]
            if len(both) < 2:
                continue
            place = id(self.graph.nodes[node].block), pair.first
            if both[0].parts_from(both[1], self._deciding_in(node)[end]):
                self._vain[place] = -table.FOLLOWED_INSTRUCTIONS  # it has told numbers apart
                continue
            self._vain[place] = self._vain.get(place, 0) + 1
            both[0].join(both[1])
            states = [s for s in states if s is not both[1]]
        return states

    def _groups_of(self, block: Block) -> dict[int, int]:
        if id(block) not in self._groups:
            self._groups[id(block)] = condition_groups(block.insns)
        return self._groups[id(block)]

    def _deciding_in(self, node: int) -> list[frozenset[int]]:
        """The registers that decide between the instructions of a node."""
        graph = self.graph
        following = (self._deciding[graph.edges[e].dst] for e in graph.successors[node])
        after = frozenset[int]().union(*following)
        key = id(graph.nodes[node].block), after
        if key not in self._inside_blocks:
            self._inside_blocks[key] = deciding_in_block(graph.nodes[node].block, after)
        return self._inside_blocks[key]

    def _may_branch(self, block: Block, machine: ConcreteMachine, *, taken: bool) -> bool:
        """Limit the words of a state by the last branch of a block; False if it cannot be so."""
        if id(block) not in self._relations:
            ops = [step.ops for step in machine.steps(block)]
            self._relations[id(block)] = branch_relation(block.insns, ops)
        relation = self._relations[id(block)]
        return relation is None or machine.branched(relation, taken=taken)

    def _reach(self, node: int, insn: int, step: CompiledInsn) -> tuple[int, int] | None:
        """The range of the first byte of each store of an instruction, if it is narrow."""
        known = self.values.access(node, insn)
        stores = sum(op.code is OpCode.STORE for op in step.ops)
        if known is None or known.high - known.low > table.FORGOTTEN_BYTES or not stores:
            return None
        further = WORD_SIZE * (stores - 1)
        return known.low - further, known.high + further

    def _edges(self, node: int, target: int) -> list[int]:
        """The edges to a block; if its address is not known, all edges of its last instruction.

        No execution goes to an address that is no successor, except to end.
        """
        if (node, target) not in self._ways:
            self._ways[node, target] = self._found_edges(node, target)
        return self._ways[node, target]

    def _found_edges(self, node: int, target: int) -> list[int]:
        graph, edges = self.graph, self.graph.successors[node]
        if target == NOWHERE:
            returns = graph.nodes[node].block.returns
            past = EdgeKind.FALLTHROUGH if returns else None
            return [e for e in edges if graph.edges[e].kind is not past]
        return [e for e in edges if graph.nodes[graph.edges[e].dst].block.addr == target]

    def _leave_open(self, node: int, edges: set[int]) -> None:
        for loop in self._around[node]:
            inside = self.graph.loops[loop].nodes
            if any(self.graph.edges[e].dst not in inside for e in edges):
                self._open.add(loop)

    def _end(self, node: int, at: _Arrived, states: Iterable[ConcreteMachine]) -> None:
        self._ends.add(node)
        self._ended = self._of_edges.most(self._ended or 0, at.edges)
        for trace in (machine.trace for machine in states if machine.trace is not None):
            if self._missed is None:
                self._missed = trace.fork()
            self._missed.count(trace)

    def _take(
        self, edge: int, place: Place, machine: ConcreteMachine, at: _Arrived
    ) -> tuple[Place, _Arrived] | None:
        """Let executions pass an edge from a place; None if its loop repeats no more."""
        node, shared, back, entered, left = self._steps.get(edge) or self._step(edge)
        for loop, position in left:
            turn = place[position] + 1
            self._fewest[loop] = min(self._fewest.get(loop, turn), turn)
        around = place[: 2 * shared]
        if back:
            around = (*around[:-1], around[-1] + 1)
        new = _Arrived(node, machine, at.edges + self._once[edge], at.headers)
        loop_here = self._headed.get(node)
        if loop_here is not None:
            turn = around[-1] if back else 0
            if turn >= self.bounds.get(loop_here, table.FOLLOWED_ITERATIONS):
                if loop_here in self.bounds:
                    return None
                self._endless.add(loop_here)
                raise Undecided("a loop may be executed too often")
            self._count(loop_here, turn, new)
        return (*around, *entered), new

    def _step(self, edge: int) -> _Step:
        """The step of an edge; computed once."""
        graph, around = self.graph, self._around
        node, source = graph.edges[edge].dst, around[graph.edges[edge].src]
        shared = sum(1 for loop in around[node] if loop in source)
        left = tuple((loop, 2 * at + 1) for at, loop in enumerate(source) if at >= shared)
        found = _Step(node, shared, edge in self._backs, self._place(node, shared), left)
        self._steps[edge] = found
        return found

    def _place(self, node: int, first: int) -> Place:
        """A place of a node in the first iterations of the loops around it, from ``first`` on."""
        order, loops = self._acyclic.order, self.graph.loops
        around = ((order[loops[i].header], 0) for i in self._around[node][first:])
        return (*chain.from_iterable(around), order[node])

    def _arrive(self, place: Place, new: _Arrived) -> None:
        """Let executions come to a place."""
        if place not in self._arrived:
            self._arrived[place] = _Place()
            heappush(self._waiting, place)
        self._keep_apart(self._arrived[place], new)

    def _join(self, one: _Arrived, other: _Arrived) -> None:
        one.machine.join(other.machine)
        one.edges = self._of_edges.most(one.edges, other.edges)
        one.headers = self._of_headers.most(one.headers, other.headers)

    def _keep_apart(self, here: _Place, new: _Arrived) -> None:
        """Add executions to those at a place; they join if too many states differ."""
        new.machine.limit(self._limits_at(new.node))
        if new.node in self._headed:
            self._note_words(self.graph.loops[self._headed[new.node]], new.machine)
        known = new.machine.known(self._deciding[new.node], self._deciding_words[new.node])
        for column in self._monotone_columns(new.node):
            known = (*known[:column], None, *known[column + 1 :])
        words = here.key(known)
        if words in here.states:
            self._join(here.states[words], new)
            return
        here.states[words] = new
        most = self.most_states
        if self._apart > table.FREELY_APART:
            most = min(most, table.FEWER_STATES)
        if here.columns is None and len(here.states) > table.APART_BY_MEMORY:
            apart = told_apart([words[REGISTERS:] for words in here.states], table.MODES)
            self._tell_apart(here, {*range(REGISTERS), *(REGISTERS + at for at in apart)})
        if len(here.states) > most:
            left = min(table.JOINED_STATES, max(1, most // 4))
            self._tell_apart(here, told_apart(list(here.states), left))

    def _tell_apart(self, here: _Place, columns: Collection[int]) -> None:
        """Let only some words tell the states of a place apart; the others join."""
        states, here.states, here.columns = here.states, {}, frozenset(columns)
        for old, state in states.items():
            words = here.key(old)
            if words in here.states:
                self._join(here.states[words], state)
            else:
                here.states[words] = state

    def _limits_at(self, node: int) -> list[tuple[int, ConcreteValue]]:
        """The registers that decide, with the ranges that value analysis gives them."""
        if node not in self._limits:
            each = ((r, self.values.register(node, r)) for r in self._deciding[node] if r < PC)
            self._limits[node] = [
                (
                    r,
                    known.low
                    if known.low == known.high
                    else WordRange(known.low, known.high, known.stride),
                )
                for r, known in each
                if known != ANY
            ]
        return self._limits[node]

    def _count(self, loop: int, turn: int, at: _Arrived) -> None:
        """Count an execution of a header, in all and since the loop around it was entered."""
        self._most[loop] = max(self._most[loop], turn + 1)
        if not turn and loop in self._entering:
            at.headers &= self._entering[loop]
        at.headers += one_of(loop)
        self._totals[loop] = max(self._totals[loop], count_of(at.headers, loop))
