"""From a model to a proven bound: solvers are asked, exact integers decide (rule 23).

A proposal may come first: the longest path over the loop nest (``ilp.longest_path``). If its counts
satisfy every row, and equal the bound certified from its dual values in exact integers, that bound
is proved, and no solver runs: this is the case of a program whose user constraints do not bind.

Otherwise the linear relaxation is solved. When its solution is integral, satisfies every row, and
equals the bound certified from its duals in exact integers, that bound is proved whatever the
solver's tolerances are, and nothing else runs: this is the case of a program without user
constraints. Otherwise a certified branch and bound over relaxations follows; it needs a few
subproblems for a few conflicts. Only if that takes too many is the integer program given to the
solver, with gaps of 0; the bound is then the smaller of what is certified and the solver's dual
bound rounded up.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import ceil, floor

from ilp.solvers.answer import Answer, Proposal, Solver, Status
from ilp.solvers.branch import branch_and_bound, exact_values
from ilp.solvers.cbc import Cbc
from ilp.solvers.certificate import weak_duality
from ilp.solvers.highs import Highs
from ilp.solvers.model import Model
from quoll.errors import InfeasibleError, SolverError

__all__ = ["BoundProof", "maximise", "solver_named"]

CERTIFIED = "exact dual certificate"
SUBPROBLEMS = 100  # relaxations that the certified search may solve
TOLERANCE = 1e-6  # absolute tolerance of the solvers' dual bounds


@dataclass(frozen=True, slots=True)
class BoundProof:
    """``bound`` is never exceeded; ``values`` satisfy every row, or are None if none are known."""

    bound: int
    values: tuple[int, ...] | None
    attained: bool  # the values' objective equals the bound
    method: str  # what the bound rests on
    solver: str

    def __post_init__(self) -> None:
        assert self.values is not None or not self.attained


def solver_named(name: str) -> Solver:
    """The solver for ``--solver``; its library is loaded only when it is used.

    The empty name is HiGHS, where a proposal does not decide.

    Raises UsageError if there is no such solver, SolverError if it is not installed.
    """
    if name == "cbc":
        return Cbc()
    if name in ("", "highs"):
        return Highs(asked_first=bool(name))
    from ilp.solvers.pulp_problem import PulpSolver

    return PulpSolver(name)


def maximise(
    model: Model, solver: Solver, seconds: float | None = None, proposal: Proposal | None = None
) -> BoundProof:
    """The proven maximum of ``model`` and values that reach it.

    ``seconds`` limits each run of the solver and the whole search: what is proved by then is the
    bound. Raises InfeasibleError naming a smallest set of facts that exclude every path,
    SolverError if the solver fails or contradicts exact arithmetic.
    """
    proposed = None if proposal is None else certified(model, proposal)
    if proposed is not None and proposed.attained and not solver.asked_first:
        return proposed
    too_large = model.inexact()
    if too_large:
        return without_solver(model, proposed, too_large)
    deadline = None if seconds is None else time.monotonic() + seconds
    start = None if proposal is None else proposal.basis
    relaxed = solver.solve(model, relaxed=True, seconds=seconds, start=start)
    if relaxed.status is Status.INFEASIBLE:
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
    answer = solver.solve(model, relaxed=False, seconds=left)
    if answer.status is Status.INFEASIBLE:
        raise infeasible(model, solver, seconds)
    return combine(model, solver, certificate, answer, values)


def certified(model: Model, proposal: Proposal) -> BoundProof:
    """What a proposal proves."""
    rest = (0,) * (len(model.rows) - len(proposal.duals))
    bound = weak_duality(model, (*proposal.duals, *rest), 1)
    values = None if model.violations(proposal.values) else proposal.values
    attained = values is not None and model.value(values) == bound
    return BoundProof(bound, values, attained, CERTIFIED, proposal.name)


def without_solver(model: Model, proposed: BoundProof | None, too_large: str) -> BoundProof:
    """A bound where a figure is no double, so that solvers cannot be asked."""
    if proposed is not None and proposed.attained:
        return proposed
    method = f"no solver can compute it: {too_large}"
    if proposed is not None:
        return replace(proposed, method=f"{CERTIFIED}, constraints left out; {method}")
    return BoundProof(
        everything(model), None, False, f"every edge as often as its loops allow; {method}", "none"
    )


def combine(
    model: Model,
    solver: Solver,
    certificate: int | None,
    answer: Answer,
    relaxed: tuple[int, ...] | None,
) -> BoundProof:
    """The verdict on an integer solution, or on an interrupted search."""
    candidates = [v for v in (exact_values(model, answer), relaxed) if v is not None]
    best = max(candidates, key=model.value, default=None)
    claimed = None if answer.bound is None else model.constant + rounded_up(answer.bound)
    if best is not None and certificate is not None and claimed is not None:
        claimed = claimed if claimed >= model.value(best) else None  # the figures were too large
    bounds = [b for b in (certificate, claimed) if b is not None]
    if best is not None and bounds and model.value(best) > min(bounds):
        raise SolverError(
            f"{solver.name} claims a maximum of {min(bounds)} cycles, "
            f"but its counts reach {model.value(best)}",
            hint="use the other solver, and report this model (--lp FILE)",
        )
    if answer.status is Status.STOPPED:
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
    model: Model,
    solver: Solver,
    certificate: int | None,
    values: tuple[int, ...] | None,
    claimed: int | None,
) -> BoundProof:
    """What an interrupted search has proved, labelled."""
    bounds = [b for b in (certificate, claimed) if b is not None]
    method = "dual bound when the time limit was reached"
    if not bounds:
        bounds = [everything(model)]
        method = "every edge as often as its loops allow, as the time limit was reached"
    bound = min(bounds)
    return BoundProof(
        bound, values, values is not None and model.value(values) == bound, method, solver.name
    )


def everything(model: Model) -> int:
    """A bound that needs no solver: no count exceeds its proved maximum."""
    gains = (c * most for c, most in zip(model.objective, model.upper, strict=True) if c > 0)
    return model.constant + sum(gains)


def rounded_up(bound: float) -> int:
    """The least integer not below ``bound``, which is exact up to the solver's tolerance.

    The maximum is an integer, so a bound within the tolerance above an integer means that one.
    """
    tolerance = TOLERANCE + abs(bound) * 2.0**-50
    down = floor(bound)
    return down if bound - down <= tolerance else ceil(bound)


def infeasible(model: Model, solver: Solver, seconds: float | None) -> InfeasibleError:
    """The error naming facts that clash; without any one of them there would be a path.

    Deletion filter: Chinneck and Dravnieks, "Locating minimal infeasible constraint sets in linear
    programs" (1991).
    """
    keep = dict.fromkeys(row.fact for row in model.rows if row.fact is not None)
    texts = {row.fact: row.origin for row in model.rows if row.fact is not None}
    for fact in list(keep):
        rest = frozenset(f for f in keep if f != fact)
        if not feasible(model.without_facts(rest), solver, seconds):
            del keep[fact]
    if not keep and not feasible(model.without_facts(), solver, seconds):
        return InfeasibleError(
            "no path leads from the entry to an exit within the loop bounds",
            hint="a loop bound is smaller than what the code needs",
        )
    return InfeasibleError(
        "these facts together exclude every path: " + "; ".join(texts[f] for f in keep),
        hint="without any one of them there is a path; at least one is wrong",
    )


def feasible(model: Model, solver: Solver, seconds: float | None) -> bool:
    """Whether the model has a solution; a search that is cut off counts as yes."""
    relaxed = solver.solve(model, relaxed=True, seconds=seconds)
    if relaxed.status is Status.INFEASIBLE:
        return False
    deadline = None if seconds is None else time.monotonic() + seconds
    search = branch_and_bound(model, relaxed, solver, SUBPROBLEMS, deadline)
    return search is None or search.bound is not None
