"""The rows of user constraints (rule 24), which are exact for instances entered at most once.

For an instance of f with N entries, x_a and x_b are the counts of the places in its extent, M_a and
M_b their proved maxima per invocation. N, x_a and x_b are sums of variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import gcd

from ilp.constraints.constraint import Constraint
from ilp.constraints.instance import CallStructure, ContextInstance
from ilp.solvers.integer_program import LinearRow
from quoll.facts.count_facts import AtMostFact, ConflictFact, ConsistentFact
from quoll.facts.fact import FactSource
from quoll.facts.guidance import RequireFact
from quoll.facts.linear import LinearFact
from quoll.inlining.supergraph import Supergraph

__all__ = ["ConstraintRows", "FlowCounts", "LinearSum", "constraint_rows"]


@dataclass(frozen=True, slots=True)
class LinearSum:
    """``sum(a * x[j]) + constant``."""

    terms: tuple[tuple[int, int], ...]
    constant: int

    def times(self, factor: int) -> LinearSum:
        """Every coefficient and the constant multiplied."""
        return LinearSum(tuple((j, a * factor) for j, a in self.terms), self.constant * factor)

    def plus(self, *others: LinearSum) -> LinearSum:
        """The sum of sums, terms of one variable together."""
        total: dict[int, int] = {}
        for addend in (self, *others):
            for j, a in addend.terms:
                total[j] = total.get(j, 0) + a
        constant = self.constant + sum(o.constant for o in others)
        return LinearSum(tuple((j, a) for j, a in total.items() if a), constant)

    def minus(self, other: LinearSum) -> LinearSum:
        """The difference."""
        return self.plus(other.times(-1))


class FlowCounts:
    """Executions and path ends, as sums of the variables of ``Ipet``."""

    def __init__(self, graph: Supergraph) -> None:
        self._graph = graph
        self._end = {n: len(graph.edges) + i for i, n in enumerate(graph.exits)}

    def executions(self, nodes: Iterable[int]) -> LinearSum:
        """The total executions of ``nodes``."""
        chosen = set(nodes)
        terms = tuple((e, 1) for n in sorted(chosen) for e in self._graph.predecessors[n])
        return LinearSum(terms, int(self._graph.entry in chosen))

    def entries(self, instance: ContextInstance) -> LinearSum:
        """N, the number of entries of an instance."""
        return LinearSum(tuple((e, 1) for e in instance.entries), int(instance.started))

    def exits(self, exits: Iterable[int]) -> LinearSum:
        """1 if the path ends after one of ``exits``, else 0."""
        return LinearSum(tuple((self._end[n], 1) for n in exits), 0)


@dataclass(frozen=True, slots=True)
class ConstraintRows:
    """Rows, with the names of their 0/1 variables."""

    rows: tuple[LinearRow, ...]
    names: tuple[str, ...] = ()


def constraint_rows(
    calls: CallStructure,
    counts: FlowCounts,
    constraint: Constraint,
    number: int,
    fresh: int,
    summarised: Callable[[FactSource], LinearSum] = lambda _: LinearSum((), 0),
) -> ConstraintRows:
    """The rows of one constraint; ``fresh`` is the index of the next new variable.

    ``summarised``: the executions of the fact's place in functions with a summary.
    """
    nodes = constraint.a | constraint.b
    if isinstance(constraint.fact, RequireFact):
        #   x >= 1
        executed = counts.executions(nodes)
        return ConstraintRows((at_most(constraint, f"u{number}", LinearSum((), 1), executed),))
    if constraint.function is None and isinstance(constraint.fact, LinearFact):
        total = weighted(counts, constraint.weights)
        limit = LinearSum((), constraint.fact.number)
        return ConstraintRows(related(constraint, constraint.fact, f"u{number}", total, limit))
    if constraint.function is None:
        assert isinstance(constraint.fact, AtMostFact), "the other forms are within a function"
        total = counts.executions(nodes).plus(summarised(constraint.fact.source))
        return ConstraintRows(
            (at_most(constraint, f"u{number}", total, LinearSum((), constraint.fact.count)),)
        )
    rows: list[LinearRow] = []
    names: list[str] = []
    for instance in instances(calls, constraint):
        extra = instance_rows(calls, counts, constraint, instance, number, fresh + len(names))
        rows += extra.rows
        names += extra.names
    return ConstraintRows(tuple(rows), tuple(names))


def instances(calls: CallStructure, constraint: Constraint) -> list[ContextInstance]:
    """The instances for which a constraint has rows: their extents contain its places.

    All instances, if zero executions violate the constraint.
    """
    assert constraint.function is not None
    found = calls.instances(constraint.a | constraint.b, constraint.function)
    if not isinstance(constraint.fact, LinearFact) or constraint.fact.holds(0):
        return found
    graph = calls.graph
    known = {instance.context for instance in found}
    more = {
        node.context
        for node in graph.nodes
        if graph.contexts[node.context].function == constraint.function
        and constraint.caller in (None, calls.caller(node.context))
    }
    return found + [calls.instance(context) for context in sorted(more - known)]


def instance_rows(
    calls: CallStructure,
    counts: FlowCounts,
    constraint: Constraint,
    instance: ContextInstance,
    number: int,
    fresh: int,
) -> ConstraintRows:
    """The rows of one constraint in one instance."""
    name = f"u{number}.c{instance.context}"
    a, b = (
        [n for n in sorted(nodes) if owner(calls, constraint, n) == instance.context]
        for nodes in (constraint.a, constraint.b)
    )
    n = counts.entries(instance)
    if isinstance(constraint.fact, LinearFact):
        return linear_rows(calls, counts, constraint, constraint.fact, instance, name, a)
    x_a, x_b = counts.executions(a), counts.executions(b)
    m_a, m_b = (calls.most_per_invocation(nodes, instance.context) for nodes in (a, b))
    match constraint.fact:
        case AtMostFact(count=k):
            #   x_a <= k * N
            return ConstraintRows((at_most(constraint, name, x_a, n.times(k)),))
        case ConsistentFact():
            #   x_a - x_b <= M_a * cut,  x_b - x_a <= M_b * cut,
            #   cut = [the path ends in the middle of an invocation of this instance]
            #         + [the path starts in the middle of one]
            cut = counts.exits(instance.cut).plus(LinearSum((), int(instance.partial)))
            return ConstraintRows(
                (
                    at_most(constraint, f"{name}.ab", x_a.minus(x_b), cut.times(m_a)),
                    at_most(constraint, f"{name}.ba", x_b.minus(x_a), cut.times(m_b)),
                )
            )
        case ConflictFact():
            if not m_a or not m_b:
                return ConstraintRows(())
            if instance.most > 1 or m_a == m_b == 1:
                #   x_a / M_a + x_b / M_b <= N
                m = m_a * m_b // gcd(m_a, m_b)
                both = x_a.times(m // m_a).plus(x_b.times(m // m_b))
                return ConstraintRows((at_most(constraint, name, both, n.times(m)),))
            #   N <= 1:  x_a <= M_a * z,  x_b <= M_b * (N - z),  z in {0, 1}
            z = LinearSum(((fresh, 1),), 0)
            rows = (
                at_most(constraint, f"{name}.a", x_a, z.times(m_a)),
                at_most(constraint, f"{name}.b", x_b, n.minus(z).times(m_b)),
            )
            return ConstraintRows(rows, (f"runs_a.{name}",))
    raise AssertionError("the other forms are about the whole path")


def linear_rows(
    calls: CallStructure,
    counts: FlowCounts,
    constraint: Constraint,
    fact: LinearFact,
    instance: ContextInstance,
    name: str,
    nodes: list[int],
) -> ConstraintRows:
    """The rows of a linear constraint in one instance.

    With x = sum(w * x_n) and k its number, x <= k * N. If it is not monotone, an invocation that
    is cut short is exempt: it is at most P, the sum of w * M_n over positive w, and

        x <= k * N + max(0, P - k) * cut

    For >= the same with every sign changed; for = both.
    """
    here = set(nodes)
    weights = [(n, w) for n, w in constraint.weights if n in here]
    entries = counts.entries(instance)
    cut = counts.exits(instance.cut).plus(LinearSum((), int(instance.partial)))
    rows: list[LinearRow] = []
    for sign in signs(fact):
        k = sign * fact.number
        limit = entries.times(k)
        if not fact.monotone:
            p = sum(
                sign * w * calls.most_per_invocation([n], instance.context)
                for n, w in weights
                if sign * w > 0
            )
            limit = limit.plus(cut.times(max(0, p - k)))
        total = weighted(counts, weights).times(sign)
        rows.append(at_most(constraint, f"{name}.{'le' if sign > 0 else 'ge'}", total, limit))
    return ConstraintRows(tuple(rows))


def signs(fact: LinearFact) -> tuple[int, ...]:
    """1 where the sum has an upper limit, -1 where it has a lower one."""
    return {"<=": (1,), ">=": (-1,), "=": (1, -1)}[fact.relation]


def weighted(counts: FlowCounts, weights: Iterable[tuple[int, int]]) -> LinearSum:
    """``sum(w * x_n)``."""
    return LinearSum((), 0).plus(*(counts.executions([n]).times(w) for n, w in weights))


def related(
    constraint: Constraint, fact: LinearFact, name: str, total: LinearSum, limit: LinearSum
) -> tuple[LinearRow, ...]:
    """``total relation limit`` as rows."""
    return tuple(
        at_most(constraint, f"{name}.{'le' if s > 0 else 'ge'}", total.times(s), limit.times(s))
        for s in signs(fact)
    )


def owner(calls: CallStructure, constraint: Constraint, node: int) -> int | None:
    """The instance whose extent contains ``node``."""
    assert constraint.function is not None
    return calls.activation(calls.graph.nodes[node].context, constraint.function)


def at_most(constraint: Constraint, name: str, left: LinearSum, right: LinearSum) -> LinearRow:
    """``left <= right`` as a row."""
    difference = left.minus(right)
    return LinearRow(
        name,
        str(constraint),
        difference.terms,
        equal=False,
        rhs=-difference.constant,
        fact=constraint.fact.source,
    )
