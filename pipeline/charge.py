"""From classes and block times to cycles: the sum that the ILP maximises.

Every access beyond L1 is charged in full where it is due, as if the pipeline stalled until it
completes. The sum covers every overlap and every order in which memory serves fills, write-backs
and stores: in each cycle either memory is busy with a charged access, or the pipeline advances at
least as far as it does when all references hit, because a delay never makes an in-order pipeline
faster (rules 14 and 16). Stores are charged per word (rule 14a).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import add

from cache.data_cache import DataAddresses
from cache.events import FlowOrder
from cache.geometry import CacheHierarchy
from cache.reference import CacheClassification, HitClass, Reference, ReferenceKind
from pipeline.block_times import BlockTime, BlockTimer, BlockTimes, block_times
from pipeline.core import CoreTable
from pipeline.costs import CostCause, Costs
from pipeline.limited_calls import limited_calls
from pipeline.maxplus import IssueTime
from pipeline.timing_model import MemoryLatencies, TimingModel
from pipeline.tlb import translations
from pipeline.write_backs import write_back_pool
from quoll.arm.floating_point import vector_role
from quoll.arm.insn import Insn
from quoll.facts.applied import FunctionReplacement
from quoll.inlining.supergraph import Supergraph

__all__ = [
    "ChargedCosts",
    "InsnTime",
    "UndelayedTimes",
    "access_cycles",
    "charge",
    "due_cycles",
    "entry_cycles",
    "latencies",
    "undelayed",
]

CAUSES = {
    ReferenceKind.FETCH: CostCause.FETCH_MISS,
    ReferenceKind.PREFETCH: CostCause.FETCH_MISS,
    ReferenceKind.LOAD: CostCause.LOAD_MISS,
    ReferenceKind.STORE: CostCause.STORE,
    ReferenceKind.WRITE_BACK: CostCause.OTHER,
}
Cycles = tuple[int, ...]  # by Cause
NONE: Cycles = (0,) * len(CostCause)


@dataclass(frozen=True, slots=True)
class InsnTime:
    """Cycles of one instruction of a node in the pipeline, and the references due at it."""

    insn: Insn
    step: IssueTime
    references: tuple[tuple[Reference, int], ...]  # each with the cycles charged for it here


@dataclass(frozen=True, slots=True)
class UndelayedTimes:
    """Costs of nodes when all references hit: block times, and the cycles of translations."""

    times: BlockTimes
    walks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChargedCosts:
    """Costs and their components."""

    costs: Costs
    graph: Supergraph
    classes: CacheClassification
    times: BlockTimes
    memory: MemoryLatencies

    def explain(self, node: int) -> tuple[InsnTime, ...]:
        """The cycles of ``node`` by instruction, without its edges; empty if it is unreachable."""
        time = self.times.nodes[node]
        if time is None:
            return ()
        insns = self.graph.nodes[node].block.insns
        rows: list[InsnTime] = []
        for index, (insn, step) in enumerate(zip(insns, time.steps, strict=True)):
            references = tuple(
                (r, due_cycles(r, self.memory))
                for r in self.classes.references[node]
                if r.insn == index
            )
            rows.append(InsnTime(insn, step, references))
        return tuple(rows)


def access_cycles(reference: Reference, memory: MemoryLatencies) -> int:
    """Cycles of ``reference`` when it misses or bypasses the caches."""
    if reference.kind is ReferenceKind.STORE:
        cached = memory.store(reference.words, reference.l2)
    elif reference.kind is ReferenceKind.WRITE_BACK:
        return reference.words // memory.line_words * memory.write_back
    elif reference.kind is ReferenceKind.LOAD:
        cached = memory.load_miss(reference.l2)
    else:
        cached = memory.fetch_miss(reference.l2)
    past = _past_caches(reference, memory)
    if not reference.cacheable:
        return past
    if reference.l1 is HitClass.AH or reference.credited:
        return past  # only an uncached access is charged here
    return max(cached, past) if reference.uncached else cached


def _past_caches(reference: Reference, memory: MemoryLatencies) -> int:
    """Cycles of ``reference`` past the caches, behind the write-back of its line."""
    first = memory.vacated if reference.vacates else 0
    return first + reference.words * memory.uncached_word


def due_cycles(reference: Reference, memory: MemoryLatencies) -> int:
    """Cycles beyond a hit that are charged where ``reference`` stands."""
    if reference.drops is not None:
        return reference.drops.cycles(memory.fetch_miss(reference.l2))[1]
    if reference.stream is not None:
        return stream_cycles(reference, memory)[1]
    due = access_cycles(reference, memory) if reference.due else 0
    if reference.kind is ReferenceKind.STORE and reference.cacheable:
        past = reference.words * memory.store_word(reference.l2)
        due = max(due, past if memory.write_through else memory.made_dirty)
    return due


def entry_cycles(reference: Reference, memory: MemoryLatencies) -> int:
    """Cycles charged for ``reference`` where a loop is entered."""
    if reference.drops is not None:
        return reference.drops.cycles(memory.fetch_miss(reference.l2))[0]
    if reference.stream is not None:
        return stream_cycles(reference, memory)[0]
    return reference.misses * access_cycles(reference, memory)


def stream_cycles(reference: Reference, memory: MemoryLatencies) -> tuple[int, int]:
    """Cycles of a load that misses once per line: per loop entry, and per execution.

    If the memory is not cached, each of n executions takes ``past`` cycles. If some of the lines
    are cached, a line that is neither the first nor the last of an entry is accessed line_bytes /
    stride times, provided that this is a whole number. A charge per execution of a share of a miss,
    or of ``past`` if it is more, then covers the line. A load that runs too seldom to gain is
    charged a miss per execution.
    """
    stream, alone = reference.stream, access_cycles(reference, memory)
    assert stream is not None
    past = _past_caches(reference, memory) if reference.uncached else 0
    miss = memory.load_miss(reference.l2)
    each, first = max(past, stream.share(miss)), stream.first(miss)
    even = not stream.stride or not stream.line_bytes % stream.stride
    iterations = stream.iterations
    gains = each < alone if iterations is None else iterations * each + first < iterations * alone
    return (first, each) if gains and (even or not past) else (0, alone)


def undelayed(
    graph: Supergraph,
    addresses: DataAddresses,
    hierarchy: CacheHierarchy,
    timing: TimingModel,
    timer: BlockTimer | None = None,
    flow: FlowOrder | None = None,
) -> UndelayedTimes:
    """Cycles that do not depend on references; ``timer`` may hold times of such code already.

    ``flow``: the order of ``graph``, if known.
    """
    flow = flow or FlowOrder.of(graph)
    timer = timer or BlockTimer(timing, aligned=hierarchy.aligned)
    return UndelayedTimes(
        block_times(graph, flow, addresses, timer),
        _walks(graph, flow, addresses, hierarchy, timing),
    )


def charge(
    graph: Supergraph,
    classes: CacheClassification,
    addresses: DataAddresses,
    hierarchy: CacheHierarchy,
    timing: TimingModel,
    *,
    exception: bool = True,
    called: bool = False,
    known: UndelayedTimes | None = None,
) -> ChargedCosts:
    """Cycles of all nodes and edges; ``known``: the cycles that do not depend on references.

    ``exception``: the path starts by taking an exception, whose own cycles are charged; otherwise
    it starts at its first instruction. ``called``: a call starts the path, from code that is
    charged for every outstanding access.
    """
    known = known or undelayed(graph, addresses, hierarchy, timing)
    times, walks = known.times, known.walks
    memory = latencies(graph, hierarchy, timing.memory)
    misses = _Misses(memory)
    exits = frozenset(graph.exits)
    in_unit = _in_vector_unit(graph, times.core)
    outstanding = _outstanding(timing) + in_unit
    nodes: list[Cycles] = []
    for index, time in enumerate(times.nodes):
        if time is None:
            nodes.append(NONE)
            continue
        cycles = list(misses.sum(classes.references[index]))
        cycles[CostCause.ISSUE] += time.issue
        cycles[CostCause.STALL] += time.stall
        cycles[CostCause.TLB] += walks[index]
        if index in exits:
            cycles = list(map(add, cycles, misses.sum(classes.leaving[index])))
            cycles[CostCause.BRANCH] += time.leaving
            cycles[CostCause.OTHER] += time.drain + _replaced_at_end(graph, index, outstanding)
        nodes.append(tuple(cycles))
    edges = tuple(
        _past(
            _edge(times, misses, classes, index, times.nodes[edge.src]),
            graph.passed(index),
            outstanding,
        )
        for index, edge in enumerate(graph.edges)
    )
    assumptions = tuple(dict.fromkeys(classes.assumptions))
    start = misses.charged(classes.start_misses)
    start[CostCause.OTHER] += in_unit
    start[CostCause.OTHER] += 0 if called else _entry(times, timing, exception=exception)
    pool = write_back_pool(graph, classes.references, hierarchy, memory, due_cycles)
    limited = limited_calls(graph, outstanding)
    costs = Costs(tuple(nodes), edges, assumptions, tuple(start), pool, limited)
    return ChargedCosts(costs, graph, classes, times, memory)


def latencies(
    graph: Supergraph, hierarchy: CacheHierarchy, memory: MemoryLatencies
) -> MemoryLatencies:
    """The access latencies that hold on the paths of ``graph``.

    If no data line is dirty at the start, a write-back needs a store that has hit the line since
    its fill: the store is charged, not the load that evicts the line. Code that is not analysed may
    leave dirty lines without a charge.
    """
    unseen = any(graph.passed(edge) for edge in range(len(graph.edges)))
    return replace(memory, stores_pay=hierarchy.initial_d.clean and not unseen)


def _walks(
    graph: Supergraph,
    flow: FlowOrder,
    addresses: DataAddresses,
    hierarchy: CacheHierarchy,
    timing: TimingModel,
) -> tuple[int, ...]:
    """Cycles of translation per node; zeros if translations are assumed to be present."""
    if timing.tlb is None:
        return (0,) * len(graph.nodes)
    access = timing.memory.write_back  # past L1, and possibly a dirty line out of L2
    return translations(graph, flow, addresses, hierarchy, timing.tlb, access)


def _edge(
    times: BlockTimes,
    misses: _Misses,
    classes: CacheClassification,
    edge: int,
    time: BlockTime | None,
) -> Cycles:
    if time is None:
        return NONE
    takes = times.takes[edge]
    way = time.taken if takes and time.taken is not None else time.falls
    cycles = misses.charged(classes.first_misses[edge])
    for cause, due in enumerate(misses.sum(classes.prefetches[edge])):
        cycles[cause] += due
    cycles[CostCause.BRANCH] += way[0]
    return tuple(cycles)


def _entry(times: BlockTimes, timing: TimingModel, *, exception: bool) -> int:
    """Cycles to take the exception, and of memory accesses begun before it (rule 15)."""
    taking = (
        times.core.row("EXCEPTION_ENTRY", condition).issue for condition in ("any", "asynchronous")
    )
    return _outstanding(timing) + (max(taking) if exception else 0)


def _in_vector_unit(graph: Supergraph, core: CoreTable) -> int:
    """Cycles of other code's operations in the floating-point unit, if the graph uses it.

    A caller of a summarised function may not use the unit, so they are charged at the call.
    """
    blocks = {id(node.block): node.block for node in graph.nodes}
    used = any(vector_role(insn) for block in blocks.values() for insn in block.insns)
    return core.row("VFP_OUTSTANDING").issue if used else 0


def _outstanding(timing: TimingModel) -> int:
    """Cycles of the most outstanding memory accesses of other code (rule 15)."""
    state, memory = timing.entry, timing.memory
    return (
        state.load_misses * memory.load_miss(None)
        + state.store_words * memory.store_word(None)
        + state.fetch_misses * memory.fetch_miss(None)
    )


def _past(cycles: Cycles, passed: tuple[FunctionReplacement, ...], outstanding: int) -> Cycles:
    """Cycles of an edge: ``cycles``, and the function replaced along it (rule 2)."""
    if not passed:
        return cycles
    other = CostCause.OTHER
    return (*cycles[:other], cycles[other] + _replaced(passed, outstanding), *cycles[other + 1 :])


def _replaced_at_end(graph: Supergraph, node: int, outstanding: int) -> int:
    """Cycles of a replaced function that the entry tail-calls: its return ends the path."""
    block = graph.nodes[node].block
    passed = [graph.guidance.replaced[callee] for callee in block.passes] if block.tail else []
    return _replaced(passed, outstanding)


def _replaced(passed: Sequence[FunctionReplacement], outstanding: int) -> int:
    """Cycles of the longest of some replaced functions, with its outstanding accesses."""
    return max((known_cycles(r) + (0 if r.settled else outstanding) for r in passed), default=0)


def known_cycles(replacement: FunctionReplacement) -> int:
    """The cycles of a replaced function, which must have been bounded."""
    assert replacement.cycles is not None, "charged before it was bounded"
    return replacement.cycles


class _Misses:
    """Sums of charges, by cause; tuples of references repeat across contexts."""

    def __init__(self, memory: MemoryLatencies) -> None:
        self.memory = memory
        self._known: dict[int, tuple[tuple[Reference, ...], Cycles]] = {}

    def charged(self, references: tuple[Reference, ...]) -> list[int]:
        """Cycles of references that are charged here although they stand elsewhere."""
        cycles = list(NONE)
        for reference in references:
            cycles[CAUSES[reference.kind]] += entry_cycles(reference, self.memory)
        return cycles

    def sum(self, references: tuple[Reference, ...]) -> Cycles:
        """Cycles, by cause, of the references that are due."""
        if not references:
            return NONE
        known = self._known.get(id(references))
        if known is not None:
            return known[1]
        cycles = [0] * len(CostCause)
        for reference in references:
            cycles[CAUSES[reference.kind]] += due_cycles(reference, self.memory)
        result = tuple(cycles)
        self._known[id(references)] = (references, result)  # kept alive, so ids stay unique
        return result
