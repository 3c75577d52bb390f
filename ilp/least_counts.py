"""Facts about counts that the program contradicts, by counts that no execution falls below.

Two kinds of rows hold for every execution from the entry to an end of its path, though no bound
needs them:

    a loop that is always executed equally often has that count at each entry
    edges are taken as often as in the common prefix of all executions of the entry

A fact is contradicted if already the least value of one of its rows under these rows, which is
proved as any maximum (``ilp.solvers.solve``), exceeds its limit. Then no path satisfies it (rule
49). Nothing is solved if the counts of the bound satisfy these rows: they also satisfy the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ilp.constraints.constraint import Constraint
from ilp.constraints.flowfacts import FlowCounts, constraint_rows
from ilp.constraints.nest import checked_bounds, totals
from ilp.ipet import Ipet, build_ipet, nonzero
from ilp.paths.solution import IlpSolution
from ilp.solvers.integer_program import LinearRow
from ilp.solvers.solve import maximise
from ilp.solvers.solver_result import Solver
from loopbounds.execution.counts import ExecutionPrefix
from loopbounds.proof.bound import LoopBound
from pipeline.costs import Costs
from quoll.assumptions import if_they_hold
from quoll.errors import FactsError, InfeasibleError, SolverError
from quoll.facts.count_facts import AtMostFact
from quoll.inlining.supergraph import Supergraph, SuperLoop

__all__ = ["LeastCounts", "least_rows", "refuse_contradicted"]


def refuse_contradicted(
    graph: Supergraph,
    costs: Costs,
    bounds: Sequence[LoopBound],
    constraints: Sequence[Constraint],
    prefix: ExecutionPrefix | None,
    solution: IlpSolution,
    *,
    solver: Solver,
    seconds: float | None = None,
    place: Callable[[int], str] = hex,
) -> None:
    """Raise FactsError for the first constraint that no execution of ``graph`` satisfies.

    ``graph`` has whole paths from an entry, which begin with ``prefix``, if one is known.
    ``solution`` satisfies all ``constraints``. ``seconds`` limits each run of the solver.
    """
    rows = least_rows(graph, bounds, prefix)
    if not constraints or not rows:
        return
    if solution.edges and all(row.holds(solution.edges) for row in rows):
        return
    paths = LeastCounts.of_paths(graph, costs, bounds, prefix, solver, seconds)
    for constraint in constraints:
        least = paths.of(constraint)
        if least is not None:
            said = _evidence(graph, bounds, constraint, prefix, place)
            raise _contradicted(constraint, least, said)


def least_rows(
    graph: Supergraph, bounds: Sequence[LoopBound], prefix: ExecutionPrefix | None
) -> tuple[LinearRow, ...]:
    """The rows of counts that no execution from the entry to an end of its path falls below."""
    taken = () if prefix is None else prefix.edges
    return (
        *(_loop_row(graph.loops[b.loop], b.bound or 0) for b in _always(graph, bounds)),
        *(_edge_row(edge, least) for edge, least in enumerate(taken) if least),
    )


def _always(graph: Supergraph, bounds: Sequence[LoopBound]) -> Iterator[LoopBound]:
    """The loops that are always executed equally often, and in which no path starts or ends."""
    outside = {graph.entry, *graph.exits}
    for bound in bounds:
        if bound.always and bound.bound and outside.isdisjoint(graph.loops[bound.loop].nodes):
            yield bound


def _loop_row(loop: SuperLoop, least: int) -> LinearRow:
    """Header executions per entry.

    (least - 1) * sum(x_e : e entry edge) <= sum(x_e : e back edge)
    """
    terms = dict.fromkeys(loop.backs, -1) | dict.fromkeys(loop.entries, least - 1)
    return LinearRow(f"least.loop{loop.index}", "least count", nonzero(terms), equal=False, rhs=0)


def _edge_row(edge: int, least: int) -> LinearRow:
    """least <= x_e"""
    return LinearRow(f"least.x{edge}", "least count", ((edge, -1),), equal=False, rhs=-least)


@dataclass(frozen=True, slots=True)
class LeastCounts:
    """The least values of sums of counts on the paths of ``ipet`` that satisfy ``rows``."""

    ipet: Ipet
    rows: tuple[LinearRow, ...]
    solver: Solver
    seconds: float | None

    @staticmethod
    def of_paths(
        graph: Supergraph,
        costs: Costs,
        bounds: Sequence[LoopBound],
        prefix: ExecutionPrefix | None,
        solver: Solver,
        seconds: float | None,
    ) -> LeastCounts:
        """The least counts of whole paths, as for ``refuse_contradicted``."""
        ipet = build_ipet(graph, costs, checked_bounds(graph, bounds), (), totals(graph, bounds))
        return LeastCounts(ipet, least_rows(graph, bounds, prefix), solver, seconds)

    def executions(self, nodes: Iterable[int]) -> int:
        """A proved lower limit of the executions of ``nodes`` on a path."""
        total = FlowCounts(self.ipet.graph).executions(nodes)
        return self._least(total.terms, 0) + total.constant

    def of(self, constraint: Constraint) -> int | None:
        """The amount by which every path exceeds the limit of a row; None if some path may not.

        Rows with further variables are left out: they restrict counts only together.
        """
        counts = FlowCounts(self.ipet.graph)
        rows = constraint_rows(self.ipet.calls, counts, constraint, 0, len(self.ipet.model.names))
        if rows.names:
            return None
        over = (self._least(row.terms, row.rhs) - row.rhs for row in rows.rows)
        return next((more for more in over if more > 0), None)

    def _least(self, terms: Iterable[tuple[int, int]], otherwise: int) -> int:
        """A proved lower limit of a sum; ``otherwise`` if nothing is proved."""
        weights = dict(terms)
        objective = tuple(-weights.get(j, 0) for j in range(len(self.ipet.model.names)))
        model = replace(self.ipet.model, objective=objective, constant=0).with_rows(self.rows)
        try:
            return -maximise(model, self.solver, self.seconds).bound
        except (InfeasibleError, SolverError):
            return otherwise


def _evidence(
    graph: Supergraph,
    bounds: Sequence[LoopBound],
    constraint: Constraint,
    prefix: ExecutionPrefix | None,
    place: Callable[[int], str],
) -> str:
    """The counts of loops around the places of a constraint, and the common prefix."""
    nodes = constraint.a | constraint.b
    around = (b for b in _always(graph, bounds) if nodes & graph.loops[b.loop].nodes)
    texts = dict.fromkeys(_of_loop(graph, bound, place) for bound in around)
    if prefix is not None:
        same = f"every execution begins with the same {prefix.instructions:,} instructions"
        texts[same + if_they_hold(prefix.assumed)] = None
    return "; ".join(texts)


def _of_loop(graph: Supergraph, bound: LoopBound, place: Callable[[int], str]) -> str:
    loop = graph.loops[bound.loop]
    times = (bound.bound or 0) + graph.apart(loop)
    header = place(graph.nodes[loop.header].block.addr)
    held = if_they_hold(bound.assumed)
    return f"the loop at {header} is executed {times} times whenever it is entered{held}"


def _contradicted(constraint: Constraint, over: int, evidence: str) -> FactsError:
    fact = constraint.fact
    if isinstance(fact, AtMostFact) and fact.function is None:
        least = fact.count + over
        text = f"{fact.place} is executed at least {least} times on every path, not at most "
        text, hint = f"{text}{fact.count}", f"state at least {least}, or remove the fact"
    else:
        text, hint = f"no path satisfies '{fact}'", "correct the fact, or remove it"
    return FactsError.contradicted(f"{text}: {evidence}", about=fact.key, hint=hint)
