"""The proved bound and the path that reaches it, from costs, bounds and constraints."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.nest import checked_bounds, totals
from ilp.constraints.parameters import VisitLimit
from ilp.cutting_planes import cost_cuts, cycles_per_iteration, repeated_contexts
from ilp.ipet import Ipet, build_ipet
from ilp.longest_path import proved_maximum
from ilp.paths.path_check import check_path, path_cycles
from ilp.paths.path_from_counts import Order, build_path
from ilp.paths.solution import IlpSolution, PathStep, WorstPath
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.solve import BoundProof
from ilp.solvers.solver_result import Solver
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.proof.bound import LoopBound
from pipeline.costs import Costs
from quoll.errors import SolverError
from quoll.inlining.supergraph import Supergraph

__all__ = ["WorstCase", "solution_of", "worst_case"]

CUT_ITERATIONS = 5  # cuts are added at most this often (rule 26)
SHUFFLES = 8  # random orders tried before counts are called unrealisable


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The solution for one entry, and its program; None for a cached solution.

    ``ilp.solvers.pulp_problem`` converts the program to PuLP and writes it.
    """

    solution: IlpSolution
    path: WorstPath
    model: IntegerProgram | None


def worst_case(
    graph: Supergraph,
    costs: Costs,
    bounds: Sequence[LoopBound],
    constraints: Sequence[Constraint] = (),
    limits: Sequence[VisitLimit] = (),
    execution: ExecutionCounts | None = None,
    exclusions: Sequence[ProvedRow] = (),
    *,
    solver: Solver,
    seconds: float | None = None,
    place: Callable[[int], str] = hex,
    with_path: bool = True,
) -> WorstCase:
    """The longest path through ``graph``; without ``with_path`` only its bound and counts.

    ``limits`` apply to the whole path. ``execution``: the concrete execution, if known: no path
    takes an edge more often. ``exclusions``: edges that no execution takes together. ``seconds``
    limits each run of the solver; ``place`` prints addresses in errors. Raises UnboundedLoop naming
    the loops without a bound, InfeasibleError naming the facts that exclude every path, SolverError
    if no bound is proved, ControlFlowError if the loops do not cover the cycles of the graph.
    """

    def cost_of_one(loop: int) -> int | None:
        known = {b.loop: b.bound for b in bounds if b.bound is not None}
        return cycles_per_iteration(graph, costs, known, loop, solver, seconds)

    numbers = checked_bounds(graph, bounds, place, cost_of_one)
    inside = totals(graph, bounds)
    ipet = build_ipet(graph, costs, numbers, constraints, inside, limits, execution, exclusions)
    cuts: list[LinearRow] = []
    for _ in range(CUT_ITERATIONS):
        model = ipet.model.with_rows(cuts)
        proof = proved_maximum(ipet, solver, seconds, cuts)
        if not with_path:
            path = WorstPath((), 0, "no path was asked for")
            break
        path = realise(ipet, costs, constraints, proof, inside)
        if execution is not None and proof.values is not None:
            path = _of_execution(path, ipet.edge_counts(proof.values) == execution.edges)
        if path.unrealisable is None or proof.values is None:
            break
        new = cost_cuts(ipet, costs, constraints, proof.values, solver, seconds)
        if not new:
            break
        cuts += new
    return WorstCase(solution_of(ipet, proof), path, model)


def _of_execution(path: WorstPath, executed: bool) -> WorstPath:
    """The path; if ``executed``, its reason tells that only the order is unknown."""
    if path.unrealisable is None or not executed:
        return path
    return replace(
        path, unrealisable="these are the counts of the concrete execution in another order"
    )


def solution_of(ipet: Ipet, proof: BoundProof) -> IlpSolution:
    """The proof in terms of the graph; without counts if none are known."""
    values = proof.values
    return IlpSolution(
        cycles=proof.bound,
        optimal=proof.attained,
        nodes=() if values is None else ipet.node_counts(values),
        edges=() if values is None else ipet.edge_counts(values),
        solver=proof.solver,
        method=proof.method,
        calls=() if values is None else ipet.options.taken(values),
    )


def realise(
    ipet: Ipet,
    costs: Costs,
    constraints: Sequence[Constraint],
    proof: BoundProof,
    totals: Mapping[int, int] = MappingProxyType({}),
) -> WorstPath:
    """An execution order of the counts that passes the checker; else one with the reason."""
    if proof.values is None:
        return WorstPath((), 0, "no counts are known that reach it")
    if not proof.attained:
        note = f"the counts known reach {ipet.model.value(proof.values)} of {proof.bound} cycles"
    else:
        note = None
    edges, last = ipet.edge_counts(proof.values), ipet.last_node(proof.values)
    calls = ipet.options.taken(proof.values)
    wrong: tuple[str, ...] = ()
    steps: tuple[PathStep, ...] = ()
    for order in orders(several=bool(repeated_contexts(ipet, constraints))):
        try:
            steps = build_path(ipet.nest, edges, last, order)
        except SolverError as error:
            return WorstPath((), 0, f"counts not realisable: {error}")
        wrong = check_path(ipet.graph, ipet.nest.bounds, constraints, steps, totals)
        if not wrong:
            return WorstPath(steps, path_cycles(costs, steps, calls), note)
    cycles = path_cycles(costs, steps, calls)
    return WorstPath(steps, cycles, "counts not realisable: " + "; ".join(wrong))


def orders(*, several: bool) -> Iterator[Order]:
    """Orders of choice among edges: one, or several with random choices."""
    yield lambda edges: edges[0]
    if several:
        yield lambda edges: edges[-1]
        for seed in range(SHUFFLES):
            yield random.Random(seed).choice
