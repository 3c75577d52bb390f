"""Whether invariants of a model hold, by k-induction of the SMT solver (rule 19).

A check of depth d asks, as NuSMV's ``check_invar_bmc -a een-sorensson -k d`` does,

    base k, k = 0 .. d:     a run violates P after k transitions;
    step k, k = 0 .. d-1:   P holds in k + 1 states in a row, which begin anywhere, not in the next.

P is proved when step k, and base 0 to k, are unsatisfiable. Nothing else is a proof: a check that
is stopped proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopbounds.nusmv.model import LoopModel
from loopbounds.nusmv.query import Check, CheckAnswer, CheckVerdict, State
from loopbounds.smt.solver import Effort, SmtResult, SmtSolver
from loopbounds.smt.unrolling import Unrolling
from loopbounds.terms.bit_vectors import Term

__all__ = ["Induction"]


class Induction:
    """Checks of one model, which is stopped in the middle of one after ``most`` steps of all.

    ``plain``: with the settings of ``SmtSolver(plain=True)``.
    """

    def __init__(self, model: LoopModel, *, most: int | None = None, plain: bool = False) -> None:
        self._solver, self.most = SmtSolver(plain=plain), most
        self._runs = Unrolling(model, self._solver, initial=True)
        self._anywhere = Unrolling(model, self._solver, initial=False)

    @property
    def steps(self) -> int:
        """Of all checks until now."""
        return self._solver.steps

    def ask(
        self, properties: Sequence[tuple[str, Term]], checks: Sequence[Check], effort: Effort
    ) -> tuple[CheckAnswer, ...]:
        """One answer per check. Raises IllTyped for properties that cannot be said."""
        named = dict(properties)
        return tuple(self._answer(named[check.name], check.depth, effort) for check in checks)

    def first(self, claims: Sequence[Term], depth: int, effort: Effort) -> int | None:
        """The first of ``claims`` that is proved. Each of them follows from the one before.

        So a run that one of them holds in after k transitions need not be looked at again.
        """
        held: set[int] = set()
        for index, claim in enumerate(claims):
            if self._answer(claim, depth, effort, held).verdict is CheckVerdict.TRUE:
                return index
        return None

    def _answer(
        self, claim: Term, depth: int, effort: Effort, held: set[int] | None = None
    ) -> CheckAnswer:
        """The trace of an unknown answer is the shortest induction step that failed.

        ``held``: the bases that hold, to which those of this claim are added.
        """
        failed: tuple[State, ...] = ()
        held = set() if held is None else held
        for k in range(depth + 1):
            found, trace = SmtResult.UNSAT, failed
            if k not in held:
                found, trace = self._check(self._runs, range(0), k, claim, effort)
            if found is SmtResult.SAT:
                return CheckAnswer(CheckVerdict.FALSE, trace)
            if found is SmtResult.UNSAT:
                held.add(k)
            if found is SmtResult.UNSAT and k < depth:
                found, trace = self._check(self._anywhere, range(k + 1), k + 1, claim, effort)
                if found is SmtResult.UNSAT:
                    return CheckAnswer(CheckVerdict.TRUE)
                failed = failed or trace
            if found is SmtResult.STOPPED:
                return CheckAnswer(CheckVerdict.EXPIRED, reason="the search took too long")
        return CheckAnswer(CheckVerdict.UNKNOWN, failed)

    def _check(
        self, states: Unrolling, holds: range, last: int, claim: Term, effort: Effort
    ) -> tuple[SmtResult, tuple[State, ...]]:
        """Whether ``claim`` can fail in state ``last`` though it holds in those before."""
        if self.most is not None:
            effort = replace(effort, steps=min(effort.steps, self.most - self.steps))
        negation = self._solver.apply("NOT", states.at(last, claim))
        before = [states.at(k, claim) for k in holds]
        answer = self._solver.check([*states.constraints, *before, negation], effort)
        return answer.result, states.trace(last, answer) if answer.result is SmtResult.SAT else ()
