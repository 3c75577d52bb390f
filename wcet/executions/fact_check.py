"""Facts against recorded executions: no execution may violate one (rule 28).

An execution is followed through the graph of its entry (``quoll.recordings.follow``); an execution
that leaves the graph refutes guidance or a fact about control. On its path,
``ilp.paths.path_check`` checks constraints, and this module counts the iterations of each loop. The
recorded addresses decide facts about memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ilp.constraints.constraint import Constraint, resolve_constraints
from ilp.constraints.uncounted import counted
from ilp.paths.path_check import violations
from ilp.paths.solution import PathStep
from loopbounds.places import loops_meant
from quoll.assumptions import stated
from quoll.extraction.called_tables import CalledTables
from quoll.facts.control_flow_facts import (
    CallsThroughFact,
    NeverReturnsFact,
    ReturnsFact,
    TargetsFact,
)
from quoll.facts.count_facts import AtMostFact, LoopFact, LoopParameter, NeverExecutesFact
from quoll.facts.fact import Fact
from quoll.facts.invariants import ListAtMostFact
from quoll.facts.located import LocatedFacts
from quoll.facts.memory_facts import InitialContentsFact
from quoll.facts.regions import MemoryRegions
from quoll.image.image import Image
from quoll.image.vtables import Vtables
from quoll.indirect.address_taken import AddressTaken
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.follow import WIDEST, MissingEdge, NodeVisit, RefutedFact, follow
from quoll.recordings.observations import observations
from quoll.recordings.trace import End, Execution, Trace

__all__ = ["FactRecord", "Walks", "check_facts", "gone_elsewhere"]

UNLIMITED = 1 << 62
Walks = Mapping[int, int]  # header's address -> iterations in any context, by a list's length
NO_WALKS: Mapping[int, Walks] = {}


@dataclass(slots=True)
class FactRecord:
    """The verdict of executions on one fact. ``most``: for loops, the most iterations per entry."""

    fact: Fact
    reached: int = 0  # executions that reached its subject
    most: int | None = None
    broken: int = 0  # executions that violate it
    first: str = ""  # the place of the first violation


@dataclass(slots=True)
class _Entry:
    """One entry with the facts that concern it."""

    graph: Supergraph
    constraints: tuple[Constraint, ...]
    never: tuple[tuple[Fact, Sequence[bool]], ...]  # whose code is cut; invocations by context
    loops: tuple[tuple[Fact, ...], ...]  # per loop
    walks: Mapping[int, int]  # loop -> iterations that facts about its list allow
    known: dict[bytes, _Judged] = field(default_factory=dict)  # by path

    def most(self, loop: int, fact: Fact) -> int:
        """The iterations of a loop that a fact allows."""
        if isinstance(fact, LoopFact):
            return fact.bound
        return self.walks.get(loop, UNLIMITED) if isinstance(fact, ListAtMostFact) else UNLIMITED


@dataclass(frozen=True, slots=True)
class _Judged:
    """One path: reached facts, iterations, and violations with their positions in the execution."""

    reached: tuple[Fact, ...]
    iterations: tuple[tuple[Fact, int], ...]
    broken: tuple[tuple[Fact, str], ...]


def check_facts(
    image: Image,
    facts: LocatedFacts,
    graphs: Mapping[int, Supergraph],
    name: str,
    trace: Trace,
    unknown: frozenset[int] = frozenset(),
    walks: Mapping[int, Walks] = NO_WALKS,
    width: int = WIDEST,
) -> tuple[list[FactRecord], int]:
    """One record per fact, and the number of checked executions.

    ``graphs``: by entry address; executions of other entries, and incomplete ones, are left out.
    ``walks``: by entry address, too. ``name``: the recording. ``width``: the most instructions that
    the core issues in a cycle.
    ``unknown``: the instructions whose addresses the analysis does not know. Raises MissingEdge for
    an execution that leaves the graph although no fact excludes it.
    """
    records = {id(fact): FactRecord(fact) for fact in facts.facts}
    entries = {
        address: entry_of(image, facts, graph, walks.get(address, {}))
        for address, graph in graphs.items()
    }
    judged, stores = 0, _Stores(image, facts.regions)
    alone: dict[Execution, tuple[_Judged, tuple[Fact, ...], dict[Fact, str]]] = {}
    for number, execution in enumerate(trace.executions, 1):
        contents = {} if execution.path_only else stores.before(number, execution)
        entry = entries.get(execution.entry)
        if entry is None or execution.end is End.STOPPED:
            continue
        judged += 1
        if execution not in alone:
            path = execution.pcs.tobytes()
            if path not in entry.known:
                entry.known[path] = judge(image, facts, entry, execution, width)
            memory = judge_memory(image, facts.regions, unknown, execution)
            alone[execution] = entry.known[path], *memory
        found, reached, broken = alone[execution]
        broken = broken | {fact: where for fact, where in contents.items() if where}
        for fact in (*found.reached, *reached, *contents):
            records[id(fact)].reached += 1
        for fact, iterations in found.iterations:
            record = records[id(fact)]
            record.most = max(iterations, record.most or 0)
        for fact, where in (dict(found.broken) | broken).items():
            record = records[id(fact)]
            record.broken += 1
            record.first = record.first or f"{name}, execution {number}, {where}"
    return list(records.values()), judged


def entry_of(image: Image, facts: LocatedFacts, graph: Supergraph, walks: Walks) -> _Entry:
    """The facts about one graph. Raises FactsError as the analysis does."""
    loops: list[list[Fact]] = [[] for _ in graph.loops]
    about = [
        f
        for f in facts.facts
        if isinstance(f, LoopFact | ListAtMostFact)
        or (isinstance(f, LoopParameter) and not f.total)
    ]
    for fact in about:
        for loop, found in enumerate(loops_meant(graph, image, facts, (fact,))):
            if found:
                loops[loop].append(fact)
    constraints = counted(graph, image, facts, resolve_constraints(graph, facts))
    headers = {x.index: graph.nodes[x.header].block.addr for x in graph.loops}
    allowed = {loop: walks[address] for loop, address in headers.items() if address in walks}
    known = {id(constraint.fact) for constraint in constraints}
    never = [
        (fact, graph.invocations(*facts.limits(fact)))
        for fact in facts.of(NeverExecutesFact)
        if id(fact) not in known
    ]
    return _Entry(graph, constraints, tuple(never), tuple(map(tuple, loops)), allowed)


def judge(
    image: Image, facts: LocatedFacts, entry: _Entry, execution: Execution, width: int
) -> _Judged:
    """The evidence of one path."""
    try:
        visits = follow(entry.graph, image, execution.pcs, width)
    except MissingEdge as error:
        found = refuted(image, facts, execution, error)
        if found is None:
            raise
        return _Judged((found[0],), (), (found,))
    reached = list(reached_by(entry, visits))
    iterations: dict[int, tuple[Fact, int, int]] = {}
    over: dict[int, tuple[Fact, int, int]] = {}
    for loop, count, start in iterations_of(entry.graph, visits):
        for fact in entry.loops[loop]:
            for totals in (iterations, over) if count > entry.most(loop, fact) else (iterations,):
                if count > totals.get(id(fact), (fact, 0, 0))[1]:
                    totals[id(fact)] = fact, count, start
    broken: list[tuple[Fact, str]] = [
        (fact, f"{at(image, execution, start)}: {count} rounds")
        for fact, count, start in over.values()
    ]
    steps = [PathStep(visit.node, visit.edge) for visit in visits]
    unlimited = [UNLIMITED] * len(entry.graph.loops)
    for broke in violations(entry.graph, unlimited, entry.constraints, steps):
        if broke.constraint is not None:
            place = at(image, execution, visits[broke.step].start)
            broken.append((entry.constraints[broke.constraint].fact, f"{place}: {broke.counts}"))
    reached += [fact for fact, _, _ in iterations.values()]
    return _Judged(
        tuple(reached),
        tuple((fact, count) for fact, count, _ in iterations.values()),
        tuple(broken),
    )


def judge_memory(
    image: Image, regions: MemoryRegions, unknown: frozenset[int], execution: Execution
) -> tuple[tuple[Fact, ...], dict[Fact, str]]:
    """The facts about memory that an execution's accesses reach, and the places of violations."""
    if not regions.regions and not regions.pointers:
        return (), {}
    reached: dict[int, Fact] = {}
    broken: dict[Fact, str] = {}
    for seen in observations(regions, image, execution, unknown):
        reached[id(seen.fact)] = seen.fact
        if not seen.holds:
            place = at(image, execution, seen.position)
            broken.setdefault(seen.fact, f"{place}: access of {seen.address:#x}")
    return tuple(reached.values()), broken


class _Stores:
    """Tracks stores of a recording's executions into regions that facts describe."""

    def __init__(self, image: Image, regions: MemoryRegions) -> None:
        self._image, self._regions = image, regions
        self._stored: dict[InitialContentsFact, str] = {}  # place of the first store

    def before(self, number: int, execution: Execution) -> dict[Fact, str]:
        """The facts about the contents of memory when ``execution`` starts.

        Each with the place of an earlier store, or "". A recording has no values: a store of the
        old value counts, too. Stores of ``execution`` are recorded for later executions.
        """
        initial = self._regions.initial
        found: dict[Fact, str] = {
            fact: self._stored.get(fact, "") for fact in initial.get(execution.entry, ())
        }
        for fact in (fact for facts in initial.values() for fact in facts):
            if fact in self._stored:
                continue
            region = self._regions.regions[fact.region]
            stored = next(
                (
                    access.index
                    for access in execution.accesses()
                    if access.store
                    and access.addr <= region.high
                    and region.low < access.addr + access.size
                ),
                None,
            )
            if stored is not None:
                place = at(self._image, execution, stored)
                self._stored[fact] = f"after execution {number}, {place}"
        return found


def reached_by(entry: _Entry, visits: Sequence[NodeVisit]) -> Iterator[Fact]:
    """The facts of the constraints that an execution reaches, because one of their places executes.

    A fact that a place never executes is reached by an invocation in which it might execute.
    """
    graph = entry.graph
    executed = {visit.node for visit in visits}
    contexts = {graph.nodes[node].context for node in executed}

    def is_entered(constraint: Constraint) -> bool:
        inside = graph.invocations(constraint.function, constraint.caller)
        return any(inside[context] for context in contexts)

    for constraint in entry.constraints:
        never = isinstance(constraint.fact, AtMostFact) and not constraint.fact.count
        if executed & (constraint.a | constraint.b) or (never and is_entered(constraint)):
            yield constraint.fact
    for fact, inside in entry.never:
        if any(inside[context] for context in contexts):
            yield fact


def iterations_of(graph: Supergraph, visits: Sequence[NodeVisit]) -> Iterator[tuple[int, int, int]]:
    """Each execution of a header: the loop, its iteration since entry, and its position."""
    headers: dict[int, list[int]] = {}
    for loop in graph.loops:
        headers.setdefault(loop.header, []).append(loop.index)
    count = [0] * len(graph.loops)
    came: int | None = None
    for visit in visits:
        for index in headers.get(visit.node, ()):
            again = came is not None and came in graph.loops[index].backs
            count[index] = count[index] + 1 if again else 1
            yield index, count[index], visit.start
        came = visit.edge


def at(image: Image, execution: Execution, position: int) -> str:
    """A position as text: ``instruction 12 at 0x8000 <f> a.c:1``."""
    return f"instruction {position:,} at {image.place(execution.pcs[position])}"


def refuted(
    image: Image, facts: LocatedFacts, execution: Execution, error: MissingEdge
) -> tuple[Fact, str] | None:
    """The fact that an execution refutes, with the place; None if there is none."""
    for fact in facts.facts:
        if isinstance(error, RefutedFact) and stated(fact) == error.fact:
            return fact, str(error)
        if isinstance(fact, TargetsFact):
            targets = {a for text in fact.targets for a in facts.at(fact, text).addresses}
            position = other_target(facts, fact, targets, execution.pcs)
        elif isinstance(fact, CallsThroughFact):
            tables = CalledTables(image, Vtables(image), AddressTaken(image), facts, fact)
            position = other_target(facts, fact, tables.functions, execution.pcs)
        elif isinstance(fact, NeverReturnsFact):
            position = returned(facts, fact, execution.pcs)
        elif isinstance(fact, ReturnsFact):
            position = gone_elsewhere(facts, fact, execution.pcs)
        else:
            continue
        if position is not None:
            return fact, at(image, execution, position)
    return None


def other_target(
    facts: LocatedFacts, fact: Fact, targets: Container[int], pcs: Sequence[int]
) -> int | None:
    """The position after the first transfer at the fact's places to none of ``targets``."""
    places = {a for text in fact.places() for a in facts.at(fact, text).addresses}
    for position, (here, then) in enumerate(pairwise(pcs), 1):
        if here in places and then not in targets and then not in (here + 2, here + 4):
            return position
    return None


def gone_elsewhere(facts: LocatedFacts, fact: ReturnsFact, pcs: Sequence[int]) -> int | None:
    """The position after the first return to a place behind no earlier transfer."""
    places = set(facts.at(fact, fact.place).addresses)
    after: set[int] = set()
    for position, (here, then) in enumerate(pairwise(pcs), 1):
        if here in places and then not in after:
            return position
        after |= {here + 2, here + 4}
    return None


def returned(facts: LocatedFacts, fact: NeverReturnsFact, pcs: Sequence[int]) -> int | None:
    """The position of the first return from a call of the function."""
    (entry,) = facts.at(fact, fact.function).addresses
    waiting: dict[int, None] = {}
    for position, (before, here) in enumerate(pairwise(pcs), 1):
        if here in waiting:
            return position
        if here == entry:
            waiting |= dict.fromkeys((before + 2, before + 4))
    return None
