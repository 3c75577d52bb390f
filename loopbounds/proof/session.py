"""One loop's questions under one budget: the search asks, and what it finds is proved.

The search asks the SMT solver (``loopbounds.smt``). Its answers are believed for nothing: they say
which relations to try, and which bound. ``proved`` asks the checker, once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from loopbounds.nusmv.model import LoopModel
from loopbounds.nusmv.printing import IllTyped, TooLarge
from loopbounds.nusmv.query import Check, CheckAnswer, CheckVerdict, Limits
from loopbounds.proof.checker import Checker
from loopbounds.proof.options import Budget
from loopbounds.smt.induction import Induction
from loopbounds.smt.solver import Effort, SearchFailed
from loopbounds.terms.bit_vectors import FALSE, Term

__all__ = ["OutOfTime", "Session", "SolverFailed"]

CLAIM = "bounded"


class SolverFailed(Exception):
    """A solver gave no answer that can be believed, or the two contradict each other."""


class OutOfTime(Exception):
    """The budget of this loop is spent."""


class Session:
    """The questions about one model, or about simpler ones after ``turn_to``."""

    def __init__(self, model: LoopModel, budget: Budget, checker: Checker) -> None:
        self.model, self._budget, self._checker = model, budget, checker
        self._start, self._asked = _processor_seconds(), 0
        self._search: Induction | None = None
        self._before = 0  # steps of the search in the models asked about before
        self.text = ""  # of the model, with what was proved of it last

    def turn_to(self, model: LoopModel) -> None:
        """Ask about another model from now on."""
        if model is not self.model:
            self._before = self._steps
            self.model, self._search = model, None

    def keep_to(self, steps: int) -> None:
        """Search no longer than this many steps in all."""
        self._budget = replace(self._budget, steps=min(self._budget.steps, steps))
        if self._search is not None:
            self._search.most = self._budget.steps - self._before

    def ask(
        self, properties: Sequence[tuple[str, Term]], checks: Sequence[Check]
    ) -> list[CheckAnswer]:
        """What the search is told: nothing of it is a proof. Raises SolverFailed or OutOfTime."""
        effort = self._effort()
        with _said():
            return list(self._searched().ask(properties, checks, effort))

    def first(self, claims: Sequence[Term], depth: int) -> int | None:
        """The first of ``claims`` that is inductive, as the search sees it. Raises as ``ask``.

        Each of them follows from the one before.
        """
        effort = self._effort()
        with _said():
            return self._searched().first(claims, depth, effort)

    def _searched(self) -> Induction:
        left = self._budget.steps - self._before
        self._search = self._search or Induction(self.model, most=left)
        return self._search

    @property
    def _steps(self) -> int:
        """Of the search until now."""
        return self._before + (self._search.steps if self._search is not None else 0)

    def _effort(self) -> Effort:
        """Of one more question. Raises OutOfTime."""
        left = self._seconds()
        if self._asked == self._budget.queries or self._steps >= self._budget.steps:
            raise OutOfTime
        self._asked += 1
        effort = self._budget.search
        return replace(effort, seconds=min(effort.seconds, left))

    def proved(self, claim: Term, depth: int) -> bool:
        """Whether the checker proves what the search has found; False: not within its limits.

        Raises OutOfTime, or SolverFailed when it fails or does not confirm it.
        """
        left, query, effort = self._seconds(), self._budget.query, self._budget.search
        limits = Limits(min(query.seconds, left), query.memory)
        effort = replace(effort, seconds=min(effort.seconds, left))
        properties = [("never", FALSE), (CLAIM, claim)]
        with _said():
            try:
                text = self.model.smv(properties)
            except TooLarge:
                return False
            check = Check(CLAIM, depth)
            some, proof = self._checker.ask(self.model, properties, check, limits, effort)
        for answer in (some, proof):
            if answer.verdict is CheckVerdict.FAILED:
                raise SolverFailed(answer.reason)
        if CheckVerdict.EXPIRED in (some.verdict, proof.verdict):
            return False
        if some.verdict is not CheckVerdict.FALSE or proof.verdict is not CheckVerdict.TRUE:
            raise SolverFailed(f"what the search found is not confirmed: {_contradiction(proof)}")
        self.text = text
        return True

    def _seconds(self) -> int:
        """That are left. Raises OutOfTime."""
        left = self._budget.seconds - int(_processor_seconds() - self._start)
        if left <= 0:
            raise OutOfTime
        return left


@contextmanager
def _said() -> Iterator[None]:
    """What a solver cannot be told, or does not answer, is the failure of this loop."""
    try:
        yield
    except IllTyped as fault:
        raise SolverFailed(f"the model cannot be said: {fault}") from fault
    except SearchFailed as fault:
        raise SolverFailed(str(fault)) from fault


def _contradiction(proof: CheckAnswer) -> str:
    if proof.verdict is CheckVerdict.TRUE:
        return "the model has no initial state"
    if proof.verdict is CheckVerdict.FALSE:
        return f"it is violated after {len(proof.trace) - 1} iterations"
    return "it is not proved"


def _processor_seconds() -> float:
    """Processor time of this process and of the children it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
