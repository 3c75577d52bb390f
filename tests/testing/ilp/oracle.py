"""The longest allowed path by searching all of them: the concrete twin of the integer program.

An execution is simulated state by state: its node, the executions of each enclosing loop since its
entry, the open invocations and each constraint's counts in them. The longest completion of every
state is computed once. Only the types are shared with ``ilp``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pipeline.costs import Costs
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import EdgeKind
from quoll.facts.count_facts import AtMostFact, ConflictFact, ConsistentFact
from quoll.facts.guidance import RequireFact
from quoll.facts.linear import LinearFact
from quoll.inlining.supergraph import Supergraph
from tests.testing.ilp.programs import Case

__all__ = ["TooManyStates", "longest_allowed_path"]

MOST_STATES = 60_000
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))


class TooManyStates(Exception):
    """The case is too large to search."""


@dataclass(frozen=True)
class Open:
    """An open invocation. ``counts[i]``: the counter of constraint i (``counted``)."""

    context: int
    partial: bool
    tail_called: bool = False  # its last transfer was a tail call
    counts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class State:
    """Before the execution of ``node``."""

    node: int
    runs: tuple[tuple[int, int], ...]  # header executions of each loop around the node
    stack: tuple[Open, ...]
    totals: tuple[int, ...]
    balance: int = 0  # write-backs charged, less dirty lines


@dataclass
class Search:
    """The search over one case."""

    case: Case
    best: dict[State, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph: Supergraph = self.case.graph
        self.costs: Costs = self.case.costs
        self.around = [
            tuple(l.index for l in self.graph.loops if n in l.nodes)  # noqa: E741
            for n in range(len(self.graph.nodes))
        ]

    def start(self) -> State:
        """The state at the entry."""
        graph, entry = self.graph, self.graph.entry
        runs = tuple((i, int(graph.loops[i].header == entry)) for i in self.around[entry])
        here = graph.nodes[entry].context
        stack: list[Open] = []
        at: int | None = here
        while at is not None:
            whole = at == here and graph.nodes[entry].block.addr == graph.contexts[at].function
            stack.insert(0, Open(at, not whole))
            at = graph.contexts[at].parent
        pool = self.costs.pool
        balance = 0 if pool is None else -pool.start
        return State(entry, runs, tuple(stack), (0,) * len(self.case.constraints), balance)

    def longest(self, before: State) -> int | None:
        """Most cycles from ``before`` to an allowed end; None if there is none."""
        if before in self.best:
            return self.best[before]
        if len(self.best) >= MOST_STATES:
            raise TooManyStates
        self.best[before] = None
        result: int | None = None
        state = self.execute(before)
        if state is not None:
            options = []
            if state.node in self.graph.exits and self.may_end(state):
                pool = self.costs.pool
                options.append(0 if pool is None else -pool.cycles * max(0, state.balance))
            for e in self.graph.successors[state.node]:
                taken = self.take(state, e)
                for after, less in [] if taken is None else self.called(taken, e):
                    rest = self.longest(after)
                    if rest is not None:
                        options.append(rest + sum(self.costs.edges[e]) - less)
            if options:
                result = max(options) + sum(self.costs.nodes[state.node])
        self.best[before] = result
        return result

    def execute(self, state: State) -> State | None:
        """Count the block; None if that alone breaks a constraint."""
        stack, totals = list(state.stack), list(state.totals)
        pool = self.costs.pool
        balance = state.balance + (0 if pool is None else pool.balance(state.node))
        for i, c in enumerate(self.case.constraints):
            factor = dict(c.weights).get(state.node, 1)
            for nodes, is_a in ((c.a, True), (c.b, False)):
                if state.node not in nodes:
                    continue
                if c.function is None:
                    totals[i] += factor
                    if isinstance(c.fact, RequireFact):
                        totals[i] = 1
                    if isinstance(c.fact, AtMostFact) and totals[i] > c.fact.count:
                        return None
                    continue
                depth = max(
                    d
                    for d, frame in enumerate(stack)
                    if self.graph.contexts[frame.context].function == c.function
                )
                counts = dict(stack[depth].counts)
                assert isinstance(c.fact, (AtMostFact, ConflictFact, ConsistentFact, LinearFact))
                now = counted(c.fact, counts.get(i, 0), is_a, factor)
                if now is None:
                    return None
                counts[i] = now
                stack[depth] = replace(stack[depth], counts=tuple(sorted(counts.items())))
        return replace(state, stack=tuple(stack), totals=tuple(totals), balance=balance)

    def take(self, state: State, e: int) -> State | None:
        """Take an edge; None if that breaks a loop bound or a constraint."""
        graph, edge = self.graph, self.graph.edges[e]
        runs = dict(state.runs)
        for loop in graph.loops:
            if e in loop.entries:
                runs[loop.index] = 1
            elif e in loop.backs:
                runs[loop.index] += 1
            if runs.get(loop.index, 0) > self.case.bounds[loop.index]:
                return None
        stack = list(state.stack)
        if edge.kind is EdgeKind.CALL:
            stack[-1] = replace(stack[-1], tail_called=graph.nodes[edge.src].block.tail)
            stack.append(Open(graph.nodes[edge.dst].context, False))
        while stack[-1].context != graph.nodes[edge.dst].context:
            if not self.satisfied(stack.pop(), cut=False):
                return None
        around = tuple((i, runs[i]) for i in self.around[edge.dst])
        pool = self.costs.pool
        dirty = 0 if pool is None or e not in pool.restarts else pool.every
        return State(edge.dst, around, tuple(stack), state.totals, state.balance - dirty)

    def called(self, state: State, e: int) -> Iterator[tuple[State, int]]:
        """The options of a limited call along an edge, each with the cycles that it saves."""
        call = next((one for one in self.costs.limited if one.edge == e), None)
        if call is None:
            yield state, 0
            return
        for option in (call.charged, *call.options):
            counts, totals = dict(option.counts), list(state.totals)
            allowed = True
            for i, c in enumerate(self.case.constraints):
                if c.function is None and isinstance(c.fact, AtMostFact):
                    totals[i] += counts.get(c.fact.source, 0)
                    allowed = allowed and totals[i] <= c.fact.count
            if allowed:
                yield replace(state, totals=tuple(totals)), call.charged.cycles - option.cycles

    def may_end(self, state: State) -> bool:
        """Whether the path may end after the node, with these open invocations."""
        block = self.graph.nodes[state.node].block
        complete = block.returns or block.last.flow is ControlFlow.EXCEPTION_RETURN
        for frame in reversed(state.stack):
            if frame is not state.stack[-1]:
                complete = complete and frame.tail_called
            if not self.satisfied(frame, cut=not complete):
                return False
        for total, c in zip(state.totals, self.case.constraints, strict=True):
            if isinstance(c.fact, RequireFact) and not total:
                return False
            if isinstance(c.fact, LinearFact) and c.function is None and not compare(c.fact, total):
                return False
        return True

    def satisfied(self, frame: Open, *, cut: bool) -> bool:
        """Whether an invocation may be over; consistency and sums are judged at the end."""
        counts, short = dict(frame.counts), cut or frame.partial
        context = self.graph.contexts[frame.context]
        parent = None if context.parent is None else self.graph.contexts[context.parent].function
        for i, c in enumerate(self.case.constraints):
            if isinstance(c.fact, ConsistentFact) and counts.get(i, 0) and not short:
                return False
            if not isinstance(c.fact, LinearFact) or c.function != context.function:
                continue
            if c.caller not in (None, parent) or (short and can_recover(c.fact)):
                continue
            if not compare(c.fact, counts.get(i, 0)):
                return False
        return True


def compare(fact: LinearFact, total: int) -> bool:
    """Whether a sum is as the fact says."""
    return {
        "<=": total <= fact.number, ">=": total >= fact.number, "=": total == fact.number
    }[fact.relation]  # fmt: skip


def can_recover(fact: LinearFact) -> bool:
    """Whether executions that are not on the path could make a wrong sum right."""
    factors = [factor for factor, _ in fact.terms]
    if fact.relation == "<=":
        return min(factors) < 0
    return max(factors) > 0 if fact.relation == ">=" else True


def counted(
    fact: AtMostFact | ConflictFact | ConsistentFact | LinearFact, now: int, is_a: bool, factor: int
) -> int | None:
    """The counter of a constraint after one more execution; None if it must not happen.

    AtMost: executions. Conflict: 1 after a, 2 after b. Consistent: executions of a minus executions
    of b. Linear: the sum.
    """
    if isinstance(fact, LinearFact):
        return now + factor
    if isinstance(fact, AtMostFact):
        return now + 1 if now < fact.count else None
    if isinstance(fact, ConflictFact):
        side = 1 if is_a else 2
        return side if now in (0, side) else None
    return now + (1 if is_a else -1)


def longest_allowed_path(case: Case) -> int | None:
    """Its cycles, or None if no path is allowed. Raises TooManyStates."""
    search = Search(case)
    return search.longest(search.start())
