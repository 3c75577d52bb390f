"""The proved maximum of an integer program: solvers propose, exact integers decide (rule 23).

First comes a proposal, if any: the longest path over the loop nest (``ilp.longest_path``). If its
counts satisfy every row, and reach the bound certified from its dual values in exact integers, that
bound is proved, and no solver runs. This suffices where user constraints do not bind.

Otherwise the linear relaxation is solved. If its solution is integral, satisfies every row, and
reaches the bound certified from its duals in exact integers, that bound is proved for any
tolerances of the solver, and nothing else runs. This suffices for a program without user
constraints. Otherwise a certified branch and bound over relaxations follows, with a few subproblems
for a few conflicts. Only if it needs too many, the solver gets the integer program, with gaps of 0;
the bound is then the smaller one of the certified bound and the solver's dual bound rounded up.

Unless the user names a solver, a failure moves on to the next one: HiGHS, CBC, then the simplex
method in exact fractions (``ilp.solvers.exact``), the only one for figures beyond doubles.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from ilp.solvers.branch import branch_and_bound, exact_values, proved_empty
from ilp.solvers.cbc import Cbc
from ilp.solvers.certificate import weak_duality
from ilp.solvers.exact import ExactSimplex
from ilp.solvers.highs import Highs
from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solver_result import Proposal, SimplexBasis, Solver, SolverResult, SolverStatus
from quoll.errors import InfeasibleError, SolverError

__all__ = ["BoundProof", "maximise", "solver_named"]

CERTIFIED = "exact dual certificate"
EVERYTHING = "every edge as often as its loops allow"
STOPPED = "dual bound when the time limit was reached"
SUBPROBLEMS = 100  # relaxations that the certified search may solve
TOLERANCE = 1e-6  # absolute tolerance of the solvers' dual bounds
REDUCED = 10**7  # reciprocal of the solvers' tolerance of reduced costs


@dataclass(frozen=True, slots=True)
class BoundProof:
    """No solution exceeds ``bound``; ``values`` satisfy every row; None: none are known."""

    bound: int
    values: tuple[int, ...] | None
    attained: bool  # the values' objective equals the bound
    method: str  # the kind of proof
    solver: str

    def __post_init__(self) -> None:
        assert self.values is not None or not self.attained


def solver_named(name: str) -> Solver:
    """The solver for ``--solver``, whose library is loaded on demand.

    The empty name is HiGHS, which runs only if a proposal does not decide.

    Raises UsageError if there is no such solver, SolverError if it is not installed.
    """
    if name == "cbc":
        return Cbc()
    if name in ("", "highs"):
        return Highs(preferred=bool(name))
    from ilp.solvers.pulp_problem import PulpSolver

    return PulpSolver(name)


def maximise(
    model: IntegerProgram,
    solver: Solver,
    seconds: float | None = None,
    proposal: Proposal | None = None,
) -> BoundProof:
    """The proved maximum of ``model``, and values that reach it.

    ``seconds`` limits each run of a solver and its whole search; the bound is then the best one
    proved. Raises InfeasibleError naming a smallest set of facts that exclude every path, and
    SolverError, naming all solvers, if none succeeds or one contradicts exact arithmetic.
    """
    proposed = None if proposal is None else certified(model, proposal)
    if proposed is not None and proposed.attained and not solver.preferred:
        return proposed
    start = None if proposal is None else proposal.basis
    found: list[BoundProof] = []
    refused: list[SolverError] = []
    solvers = solver_sequence(model, solver)
    for one in solvers:
        try:
            proof = searched(model, one, seconds, start, alone=len(solvers) == 1)
        except SolverError as error:
            refused.append(error)
            continue
        if proof is not None:
            found.append(proof)
            if proof.attained or proof.method == STOPPED:
                break
    if found:
        reached = [model.value(proof.values) for proof in found if proof.values is not None]
        consistent = [
            p for p in found if all(p.bound >= r for r in reached)
        ]  # a search may claim a lower bound
        best = min(consistent, key=lambda proof: (proof.bound, not proof.attained))
        return best if proposed is None or best.bound <= proposed.bound else proposed
    too_large = model.inexact()
    if refused and proposed is None and not too_large:
        raise refused[0] if len(refused) == 1 else all_failed(refused)
    why = [f"no double holds its figures: {too_large}"] if too_large else []
    why += [error.message for error in refused]
    if proposed is not None and (why or proposed.bound < everything(model)):
        why = why or ["the time limit was reached"]
        method = f"{CERTIFIED}, constraints left out; {'; '.join(why)}"
        return proposed if proposed.attained else replace(proposed, method=method)
    method = f"{EVERYTHING}, {'; '.join(why) or 'as the time limit was reached'}"
    return BoundProof(everything(model), None, False, method, "none" if too_large else solver.name)


def solver_sequence(model: IntegerProgram, solver: Solver) -> tuple[Solver, ...]:
    """The solvers to try in order, or only the one that the user names.

    Figures beyond doubles need exact arithmetic.
    """
    if model.inexact():
        return (ExactSimplex(),)
    if isinstance(solver, Highs) and not solver.preferred:
        return solver, Cbc(), ExactSimplex()
    return (solver,)


def all_failed(refused: Sequence[SolverError]) -> SolverError:
    """The error of all solvers together."""
    return SolverError(
        f"no solver succeeded: {'; '.join(error.message for error in refused)}",
        hint="report this model (--lp FILE)",
    )


def unproved(solver: Solver) -> SolverError:
    """The error for a solver that only claims that the program has no solution."""
    return SolverError(f"{solver.name} claims that there is no path, and does not prove it")


def searched(
    model: IntegerProgram,
    solver: Solver,
    seconds: float | None,
    start: SimplexBasis | None,
    *,
    alone: bool,
) -> BoundProof | None:
    """The bound proved by one solver; None: no proof within the time limit.

    Raises as ``maximise``; a claim of infeasibility counts if it is certified, or if the solver
    runs ``alone``.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    relaxed = solver.solve(model, relaxed=True, seconds=seconds, start=start)
    if relaxed.status is SolverStatus.INFEASIBLE:
        if not alone and not proved_empty(model, solver, seconds):
            raise unproved(solver)
        raise infeasible(model, solver, seconds)
    search = branch_and_bound(model, relaxed, solver, SUBPROBLEMS, deadline)
    certificate, values = None, None
    if search is not None:
        certificate, values = search.bound, search.values
        if certificate is None:
            raise infeasible(model, solver, seconds)
        if values is not None and model.value(values) == certificate:
            count = search.subproblems
            method = CERTIFIED if count == 1 else f"{CERTIFIED}s of {count} subproblems"
            return BoundProof(certificate, values, True, method, solver.name)
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        return stopped(model, solver, certificate, values, None)
    try:
        result = solver.solve(model, relaxed=False, seconds=left)
    except SolverError as error:
        if certificate is None:
            raise
        method = f"{CERTIFIED} of the relaxation; {error.message}"
        return BoundProof(certificate, values, False, method, solver.name)
    if result.status is SolverStatus.INFEASIBLE:
        raise infeasible(model, solver, seconds) if alone else unproved(solver)
    return combine(model, solver, certificate, result, values)


def certified(model: IntegerProgram, proposal: Proposal) -> BoundProof:
    """The bound proved by a proposal."""
    rest = (0,) * (len(model.rows) - len(proposal.duals))
    bound = weak_duality(model, (*proposal.duals, *rest), 1)
    values = None if model.violations(proposal.values) else proposal.values
    attained = values is not None and model.value(values) == bound
    return BoundProof(bound, values, attained, CERTIFIED, proposal.name)


def combine(
    model: IntegerProgram,
    solver: Solver,
    certificate: int | None,
    result: SolverResult,
    relaxed: tuple[int, ...] | None,
) -> BoundProof | None:
    """The verdict on an integer solution, or on an interrupted search."""
    candidates = [v for v in (exact_values(model, result), relaxed) if v is not None]
    best = max(candidates, key=model.value, default=None)
    claimed = None if result.bound is None else at_most(model, result.bound)
    if best is not None and certificate is not None and claimed is not None:
        claimed = claimed if claimed >= model.value(best) else None  # the figures were too large
    bounds = [b for b in (certificate, claimed) if b is not None]
    if best is not None and bounds and model.value(best) > min(bounds):
        raise SolverError(
            f"{solver.name} claims a maximum of {min(bounds)} cycles, "
            f"but its counts reach {model.value(best)}",
            hint="use the other solver, and report this model (--lp FILE)",
        )
    if result.status is SolverStatus.STOPPED:
        return stopped(model, solver, certificate, best, claimed)
    if not bounds:
        raise SolverError(
            f"{solver.name} ended and proved no bound",
            hint="use the other solver, and report this model (--lp FILE)",
        )
    bound = min(bounds)
    method = CERTIFIED if bound == certificate else "dual bound of the solver's search"
    return BoundProof(
        bound, best, best is not None and model.value(best) == bound, method, solver.name
    )


def stopped(
    model: IntegerProgram,
    solver: Solver,
    certificate: int | None,
    values: tuple[int, ...] | None,
    claimed: int | None,
) -> BoundProof | None:
    """The labelled bound proved by an interrupted search; None: no bound."""
    bounds = [b for b in (certificate, claimed) if b is not None]
    if not bounds:
        return None
    bound = min(bounds)
    attained = values is not None and model.value(values) == bound
    return BoundProof(bound, values, attained, STOPPED, solver.name)


def everything(model: IntegerProgram) -> int:
    """A bound without a solver: each count at its proved maximum."""
    gains = (c * most for c, most in zip(model.objective, model.upper, strict=True) if c > 0)
    return model.constant + sum(gains)


def at_most(model: IntegerProgram, bound: float) -> int:
    """The upper bound from a search's dual bound.

    A solver treats a reduced cost of 1 in ``REDUCED`` cycles as 0, which adds up over many counts.
    """
    return model.constant + rounded_up(bound) + sum(model.upper) // REDUCED


def rounded_up(bound: float) -> int:
    """The least integer not below ``bound``, which is exact up to the solver's tolerance.

    The maximum is an integer, so a bound within the tolerance above an integer is that integer.
    """
    tolerance = TOLERANCE + abs(bound) * 2.0**-50
    down = floor(bound)
    return down if bound - down <= tolerance else ceil(bound)


def infeasible(model: IntegerProgram, solver: Solver, seconds: float | None) -> InfeasibleError:
    """The error naming a smallest set of conflicting facts.

    Deletion filter: Chinneck and Dravnieks, "Locating minimal infeasible constraint sets in linear
    programs" (1991).
    """
    conflicting = dict.fromkeys(row.fact for row in model.rows if row.fact is not None)
    texts = {row.fact: row.origin for row in model.rows if row.fact is not None}
    for fact in list(conflicting):
        rest = frozenset(f for f in conflicting if f != fact)
        if not feasible(model.without_facts(rest), solver, seconds):
            del conflicting[fact]
    if not conflicting and not feasible(model.without_facts(), solver, seconds):
        return InfeasibleError(
            "no path leads from the entry to an exit within the loop bounds",
            hint="a loop bound is smaller than the code requires",
        )
    return InfeasibleError(
        "these facts together exclude every path: " + "; ".join(texts[f] for f in conflicting),
        hint="without any one of them there is a path; at least one is wrong",
    )


def feasible(model: IntegerProgram, solver: Solver, seconds: float | None) -> bool:
    """Whether the model may have a solution: True also for a search that is cut off."""
    relaxed = solver.solve(model, relaxed=True, seconds=seconds)
    if relaxed.status is SolverStatus.INFEASIBLE:
        return False
    deadline = None if seconds is None else time.monotonic() + seconds
    search = branch_and_bound(model, relaxed, solver, SUBPROBLEMS, deadline)
    return search is None or search.bound is not None
