"""Why a place is on a worst path: the bound without it, or what a path through it costs.

A place that is on the path is excluded by ``PLACE never executes``, and the program is solved
again; one that is not is forced to execute at least once. What changes between the two paths,
call by call, says what the place was traded for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ilp.constraints.constraint import Constraint, locate_in, resolve_constraints
from ilp.ipet import build_ipet
from ilp.paths.outline import Outline, Stretch, outline
from ilp.paths.solution import Solution
from ilp.solvers.solve import maximise, solver_named
from quoll.errors import InfeasibleError, UsageError
from quoll.facts import AtMost, Facts, Require, Source
from wcet.analysis.options import Options
from wcet.analysis.result import EntryResult, Result

__all__ = ["Change", "Why", "explain"]


@dataclass(frozen=True, slots=True)
class Change:
    """Cycles of a call on both paths, without those of the calls and loops inside it."""

    stretch: Stretch
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Why:
    """The answer about one place. Cycles; ``other`` is None where there is no other path."""

    place: str
    addresses: tuple[int, ...]  # of the blocks that the place stands for
    executions: int  # on the worst path
    own: int  # cycles of those blocks on it
    bound: int
    other: int | None  # the bound without the place, or through it if ``executions`` is 0
    changes: tuple[Change, ...]  # the largest first


def explain(result: Result, entry: EntryResult, place: str, options: Options) -> Why:
    """Solve again without ``place``, or through it.

    Raises FactsError if the place does not exist or cannot be counted, UsageError if the entry
    does not reach it.
    """
    source = Source("--why", 1, f"{place} never executes")
    fact = AtMost(source, place, 0, None)
    found = resolve_constraints(entry.graph, Facts((fact,)), locate_in(result.image))
    if not found:
        raise UsageError(f"--why {place}: entry {entry.name} does not reach it")
    nodes = found[0].a
    executions = sum(entry.solution.nodes[n] for n in nodes)
    before = outline(entry.graph, entry.costs, entry.solution)
    own = sum(c for _, part in before.walk() for n, _, c in part.blocks if n in nodes)
    addresses = tuple(sorted({entry.graph.nodes[n].block.addr for n in nodes}))
    extra = found[0] if executions else replace(found[0], fact=Require(source, place))
    try:
        solution = solve(entry, (*entry.constraints, extra), options)
    except InfeasibleError:
        return Why(place, addresses, executions, own, entry.cycles, None, ())
    changes = differences(before, outline(entry.graph, entry.costs, solution))
    return Why(place, addresses, executions, own, entry.cycles, solution.cycles, changes)


def solve(entry: EntryResult, constraints: tuple[Constraint, ...], options: Options) -> Solution:
    """The solution with other constraints."""
    ipet = build_ipet(entry.graph, entry.costs, entry.numbers, constraints)
    proof = maximise(ipet.model, solver_named(options.solver), options.time_limit)
    values = proof.values
    return Solution(
        cycles=proof.bound,
        optimal=proof.attained,
        nodes=() if values is None else ipet.node_counts(values),
        edges=() if values is None else ipet.edge_counts(values),
        solver=proof.solver,
        method=proof.method,
    )


def differences(before: Outline, after: Outline) -> tuple[Change, ...]:
    """The calls and loops whose own cycles are not the same on both paths."""
    cycles = [
        {part.stretch: sum(part.own) for _, part in whole.walk()} for whole in (before, after)
    ]
    stretches = dict.fromkeys([*cycles[0], *cycles[1]])
    changes = (Change(s, cycles[0].get(s, 0), cycles[1].get(s, 0)) for s in stretches)
    different = (c for c in changes if c.before != c.after)
    return tuple(sorted(different, key=lambda c: -abs(c.before - c.after)))
