"""Invariants of a model, decided by k-induction with the SMT solver (rule 19).

A query of depth d checks, as NuSMV's ``check_invar_bmc -a een-sorensson -k d`` does,

    base k, k = 0 .. d:     a run violates P after k transitions;
    step k, k = 0 .. d-1:   P holds in k + 1 states in a row, from any state on, not in the next.

P is proved if step k and all bases 0 .. k are unsatisfiable. A query that is stopped proves
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopbounds.budgets.budget import StepLimits
from loopbounds.smt.solver import SmtResult, SmtSolver
from loopbounds.smt.unrolling import ModelUnrolling
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict, State

__all__ = ["SmtInduction"]


class SmtInduction:
    """Queries about one model; the query that exceeds ``most`` steps in all is stopped.

    ``plain``: as in ``SmtSolver``.
    """

    def __init__(self, model: LoopModel, *, most: int | None = None, plain: bool = False) -> None:
        self._solver, self.most = SmtSolver(plain=plain), most
        self._runs = ModelUnrolling(model, self._solver, initial=True)
        self._anywhere = ModelUnrolling(model, self._solver, initial=False)

    @property
    def steps(self) -> int:
        """The steps of all queries so far."""
        return self._solver.steps

    def check(
        self,
        properties: Sequence[tuple[str, Term]],
        queries: Sequence[InvariantQuery],
        limits: StepLimits,
    ) -> tuple[InvariantResult, ...]:
        """One result per query. Raises IllTyped for properties that cannot be translated."""
        named = dict(properties)
        return tuple(self._result(named[query.name], query.depth, limits) for query in queries)

    def first(self, claims: Sequence[Term], depth: int, limits: StepLimits) -> int | None:
        """The index of the first of ``claims`` that is proved; None if there is none.

        Each claim follows from the one before, so a base that holds for one claim is not checked
        again.
        """
        held: set[int] = set()
        for index, claim in enumerate(claims):
            if self._result(claim, depth, limits, held).verdict is InvariantVerdict.TRUE:
                return index
        return None

    def _result(
        self, claim: Term, depth: int, limits: StepLimits, held: set[int] | None = None
    ) -> InvariantResult:
        """The verdict on ``claim``; the trace of UNKNOWN is the shortest failed induction step.

        ``held``: the known bases, to which the bases of this claim are added.
        """
        failed: tuple[State, ...] = ()
        held = set() if held is None else held
        for k in range(depth + 1):
            found, trace = SmtResult.UNSAT, failed
            if k not in held:
                found, trace = self._check(self._runs, range(0), k, claim, limits)
            if found is SmtResult.SAT:
                return InvariantResult(InvariantVerdict.FALSE, trace)
            if found is SmtResult.UNSAT:
                held.add(k)
            if found is SmtResult.UNSAT and k < depth:
                found, trace = self._check(self._anywhere, range(k + 1), k + 1, claim, limits)
                if found is SmtResult.UNSAT:
                    return InvariantResult(InvariantVerdict.TRUE)
                failed = failed or trace
            if found is SmtResult.STOPPED:
                return InvariantResult(InvariantVerdict.EXPIRED, reason="the search took too long")
        return InvariantResult(InvariantVerdict.UNKNOWN, failed)

    def _check(
        self, states: ModelUnrolling, holds: range, last: int, claim: Term, limits: StepLimits
    ) -> tuple[SmtResult, tuple[State, ...]]:
        """Whether ``claim`` can fail in state ``last`` if it holds in the states ``holds``."""
        if self.most is not None:
            limits = replace(limits, steps=min(limits.steps, self.most - self.steps))
        negation = self._solver.apply("NOT", states.at(last, claim))
        before = [states.at(k, claim) for k in holds]
        outcome = self._solver.check([*states.constraints, *before, negation], limits)
        return outcome.result, states.trace(
            last, outcome
        ) if outcome.result is SmtResult.SAT else ()
