"""A check that the program, the loop bounds and the user's constraints allow a path.

It checks the integer program and the path builder independently, without code in common: it walks
the steps with a stack of invocations, counts, and compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from ilp.constraints.constraint import Constraint
from ilp.paths.solution import PathStep
from pipeline.costs import Costs, OptionCount
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import EdgeKind
from quoll.facts.count_facts import AtMostFact, ConflictFact, ConsistentFact
from quoll.facts.linear import LinearFact
from quoll.inlining.supergraph import Supergraph

__all__ = ["PathViolation", "check_path", "path_cycles", "violations"]


def path_cycles(costs: Costs, steps: Iterable[PathStep], calls: Iterable[OptionCount] = ()) -> int:
    """Cycles of a path: the costs of its start, its nodes and its edges, less its excess.

    ``calls``: the limited calls of which it takes an option.
    """
    nodes, edges = Counter[int](), Counter[int]()
    for step in steps:
        nodes[step.node] += 1
        if step.edge is not None:
            edges[step.edge] += 1
    spent = sum(costs.node_cycles(n) * count for n, count in nodes.items())
    spent += sum(costs.edge_cycles(e) * count for e, count in edges.items())
    less = costs.excess(nodes, edges) + sum(costs.saved(calls).values())
    return sum(costs.start) + spent - less


def check_path(
    graph: Supergraph,
    bounds: Sequence[int],
    constraints: Sequence[Constraint],
    steps: Sequence[PathStep],
    totals: Mapping[int, int] = MappingProxyType({}),
) -> tuple[str, ...]:
    """The reasons why ``steps`` are no execution; () for an execution.

    Checked: contiguous, from the entry to an exit; at most ``bounds[l]`` header executions per
    entry of loop l (rule 18), and ``totals[l]`` per entry of the enclosing loop; calls return to
    the frame that made them; every constraint, per invocation (rule 24).
    """
    found = violations(graph, bounds, constraints, steps, totals)
    return tuple(dict.fromkeys(violation.text for violation in found))


@dataclass(frozen=True, slots=True)
class PathViolation:
    """A violation, with the step of the last execution that counts towards it."""

    text: str
    step: int
    constraint: int | None = None  # index of the broken constraint
    counts: str = ""  # the counts of the broken constraint


def violations(
    graph: Supergraph,
    bounds: Sequence[int],
    constraints: Sequence[Constraint],
    steps: Sequence[PathStep],
    totals: Mapping[int, int] = MappingProxyType({}),
) -> tuple[PathViolation, ...]:
    """The violations that ``check_path`` lists, with their steps."""
    broken = contiguity(graph, steps)
    if broken:
        return tuple(PathViolation(text, 0) for text in broken)
    walker = PathChecker(graph, bounds, constraints, totals)
    for step in steps:
        walker.execute(step)
    return tuple(walker.finish(steps[-1].node))


def contiguity(graph: Supergraph, steps: Sequence[PathStep]) -> list[str]:
    """The violations of: each step's edge leads to the next step, from the entry to an exit."""
    if not steps:
        return ["the path has no steps"]
    wrong = []
    if steps[0].node != graph.entry:
        wrong.append("the path does not start at the entry")
    if steps[-1].edge is not None or steps[-1].node not in graph.exits:
        wrong.append("the path does not end at an exit")
    for number, (now, then) in enumerate(pairwise(steps)):
        edge = None if now.edge is None else graph.edges[now.edge]
        if edge is None or (edge.src, edge.dst) != (now.node, then.node):
            wrong.append(f"step {number} does not lead to step {number + 1}")
    return wrong


@dataclass(slots=True)
class OpenInvocation:
    """An open invocation: its context, and the counts of each constraint about it."""

    context: int
    partial: bool  # it began before the path did
    left: bool = False  # by a tail call: the callee returns for it
    a: dict[int, int] = field(default_factory=dict)  # by index of the constraint
    b: dict[int, int] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)  # step of the last count


class PathChecker:
    """Executes steps and records violations."""

    def __init__(
        self,
        graph: Supergraph,
        bounds: Sequence[int],
        constraints: Sequence[Constraint],
        totals: Mapping[int, int],
    ) -> None:
        self._graph, self._bounds, self._constraints = graph, bounds, constraints
        self._limits = totals
        self._violations: list[PathViolation] = []
        # Linear constraints by function: they are checked even if none of their nodes has executed.
        self._sums: dict[int, set[int]] = {}
        for i, constraint in enumerate(constraints):
            if isinstance(constraint.fact, LinearFact) and constraint.function is not None:
                self._sums.setdefault(constraint.function, set()).add(i)
        self._step = -1
        self._counted: dict[int, int] = {}  # constraint -> step of the last count in total
        self._headers: dict[int, list[tuple[int, bool]]] = {}  # edge -> (loop, is an entry)
        for loop in graph.loops:
            for e in loop.entries:
                self._headers.setdefault(e, []).append((loop.index, True))
            for e in loop.backs:
                self._headers.setdefault(e, []).append((loop.index, False))
        self._runs = [int(loop.header == graph.entry) for loop in graph.loops]
        self._inside = list(self._runs)  # per entry of the enclosing loop
        # node -> (constraint, whether a place a, weight of one execution)
        self._member: dict[int, list[tuple[int, bool, int]]] = {}
        for i, constraint in enumerate(constraints):
            factors = dict(constraint.weights)
            for n in constraint.a:
                self._member.setdefault(n, []).append((i, True, factors.get(n, 1)))
            for n in constraint.b:
                self._member.setdefault(n, []).append((i, False, 1))
        self._totals = [0] * len(constraints)
        start = graph.nodes[graph.entry]
        chain: list[int] = []
        at: int | None = start.context
        while at is not None:
            chain.append(at)
            at = graph.contexts[at].parent
        fresh = start.block.addr == graph.contexts[start.context].function
        self._stack = [
            OpenInvocation(c, partial=c != start.context or not fresh) for c in reversed(chain)
        ]

    def execute(self, step: PathStep) -> None:
        """Run the block of a step, then take its edge."""
        self._step += 1
        for i, is_a, amount in self._member.get(step.node, ()):
            self._count(i, amount, is_a=is_a)
        if step.edge is not None:
            self._take(step.edge)

    def _count(self, i: int, amount: int, *, is_a: bool) -> None:
        constraint = self._constraints[i]
        if constraint.function is None:
            self._totals[i] += amount
            self._counted[i] = self._step
            return
        for frame in reversed(self._stack):
            if self._graph.contexts[frame.context].function == constraint.function:
                counter = frame.a if is_a else frame.b
                counter[i] = counter.get(i, 0) + amount
                frame.counted[i] = self._step
                return

    def _take(self, e: int) -> None:
        for loop, entering in self._headers.get(e, ()):
            self._runs[loop] = 1 if entering else self._runs[loop] + 1
            self._inside[loop] += 1
            if entering:
                self._restart_sums(loop)
            if self._runs[loop] > self._bounds[loop]:
                self._note_loop(loop, f"{self._bounds[loop]} times per entry")
            if loop in self._limits and self._inside[loop] > self._limits[loop]:
                self._note_loop(loop, f"{self._limits[loop]} times per entry of the loop around it")
        edge = self._graph.edges[e]
        to = self._graph.nodes[edge.dst].context
        if edge.kind is EdgeKind.CALL:
            self._stack[-1].left = self._graph.nodes[edge.src].block.tail
            self._stack.append(OpenInvocation(to, partial=False))
        elif edge.kind is EdgeKind.RETURN:
            while self._stack and self._stack[-1].context != to:
                self._close(self._stack.pop(), cut=False)
            if self._stack:
                self._stack[-1].left = False
        if not self._stack or self._stack[-1].context != to:
            self._note(f"edge {e} returns to an invocation that is not open")
            self._stack.append(OpenInvocation(to, partial=False))

    def _restart_sums(self, outer: int) -> None:
        """Loop ``outer`` is entered: reset the counts per entry."""
        for loop in self._limits:
            if self._graph.loops[loop].parent == outer:
                self._inside[loop] = 0

    def _note_loop(self, loop: int, limit: str) -> None:
        header = self._graph.nodes[self._graph.loops[loop].header]
        self._note(
            f"the loop at {header.block.addr:#x} in context {header.context} runs more than {limit}"
        )

    def _close(self, frame: OpenInvocation, *, cut: bool) -> None:
        """Check the constraints of an invocation that is finished, or ``cut`` short."""
        function = self._graph.contexts[frame.context].function
        for i in sorted(frame.a.keys() | frame.b.keys() | self._sums.get(function, set())):
            constraint = self._constraints[i]
            parent = self._graph.contexts[frame.context].parent
            caller = None if parent is None else self._graph.contexts[parent].function
            if constraint.caller not in (None, caller):
                continue
            a, b = frame.a.get(i, 0), frame.b.get(i, 0)
            match constraint.fact:
                case ConflictFact():
                    broken = a > 0 and b > 0
                case ConsistentFact():
                    broken = a != b and not cut and not frame.partial
                case AtMostFact(count=most):
                    broken = a > most
                case LinearFact() as linear:
                    exempt = (cut or frame.partial) and not linear.monotone
                    broken = not linear.holds(a) and not exempt
                case _:
                    raise AssertionError(f"{constraint} is about the whole path")
            if broken:
                alone = isinstance(constraint.fact, (AtMostFact, LinearFact))
                counts = f"{a} times" if alone else f"{a} and {b}"
                where = f"{constraint} is broken in context {frame.context}"
                self._break(i, f"{where}: counts {counts}", f"counts {counts}", frame.counted)

    def _note(self, text: str) -> None:
        self._violations.append(PathViolation(text, self._step))

    def _break(self, constraint: int, text: str, counts: str, counted: Mapping[int, int]) -> None:
        step = counted.get(constraint, self._step)
        self._violations.append(PathViolation(text, step, constraint, counts))

    def finish(self, last: int) -> list[PathViolation]:
        """The violations, after closing the invocations that are open after node ``last``."""
        block = self._graph.nodes[last].block
        finished = block.returns or block.last.flow is ControlFlow.EXCEPTION_RETURN
        while self._stack:
            frame = self._stack.pop()
            self._close(frame, cut=not finished)
            finished = finished and bool(self._stack) and self._stack[-1].left
        for i, (total, constraint) in enumerate(zip(self._totals, self._constraints, strict=True)):
            broken = constraint.fact.broken(total) if constraint.function is None else ""
            if broken:
                self._break(i, f"{constraint} is broken: {broken}", broken, self._counted)
        return self._violations
