"""The queries about one loop, under one budget: a search, and the proof of its results.

The search uses the SMT solver (``loopbounds.smt``). No proof depends on its results, which only
select the relations and the bound to try. ``proves`` passes one obligation to the checker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from loopbounds.budgets.budget import Budget, SolverLimits
from loopbounds.nusmv.model_text import smv_text
from loopbounds.nusmv.printing import TooLarge
from loopbounds.smt.induction import SmtInduction
from loopbounds.smt.solver import SearchFailed
from loopbounds.terms.bit_vectors import Term
from loopbounds.terms.well_typed import IllTyped
from loopbounds.transition.checker import Checker, ProofObligation
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict
from quoll.processes import processor_time

__all__ = ["OutOfTime", "SolverFailed", "SolverSession"]


class SolverFailed(Exception):
    """A solver failed, or the checker contradicts the search."""


class OutOfTime(Exception):
    """The budget of this loop is spent."""


class SolverSession:
    """The queries about one model, or about another one after ``turn_to``."""

    def __init__(self, model: LoopModel, budget: Budget, checker: Checker) -> None:
        self.model, self._budget, self._checker = model, budget, checker
        self._start, self._queries = processor_time.own(), 0
        self._search: SmtInduction | None = None
        self._before = 0  # steps of the search in earlier models
        self.text = ""  # SMV text of the last proof
        self.by = ""  # name of the checker that gave it

    def turn_to(self, model: LoopModel) -> None:
        """Query ``model`` from now on."""
        if model is not self.model:
            self._before = self._steps
            self.model, self._search = model, None

    def keep_to(self, steps: int) -> None:
        """Limit the search to so many steps in all."""
        self._budget = replace(self._budget, steps=min(self._budget.steps, steps))
        if self._search is not None:
            self._search.most = self._budget.steps - self._before

    def check(
        self, properties: Sequence[tuple[str, Term]], queries: Sequence[InvariantQuery]
    ) -> list[InvariantResult]:
        """The results of the search, which prove nothing. Raises SolverFailed or OutOfTime."""
        limits = self._next_query()
        with _failures_of_this_loop():
            return list(self._searcher().check(properties, queries, limits.steps))

    def first_inductive(self, claims: Sequence[Term], depth: int) -> int | None:
        """The index of the first inductive claim, or None. Raises as ``check``.

        Each of ``claims`` follows from the one before.
        """
        limits = self._next_query()
        with _failures_of_this_loop():
            return self._searcher().first(claims, depth, limits.steps)

    def proves(self, claim: Term, depth: int) -> bool:
        """Whether the checker proves ``claim``; False: its limits do not suffice.

        Raises OutOfTime, or SolverFailed when the checker fails or does not confirm the search.
        """
        limits = self._budget.limits.within(self._seconds())
        obligation = ProofObligation(self.model, claim, depth)
        with _failures_of_this_loop():
            try:
                text = smv_text(self.model, obligation.properties)
            except TooLarge:
                return False
            found = self._checker.check(obligation, limits)
        for result in (found.initial, found.claim):
            if result.verdict is InvariantVerdict.FAILED:
                raise SolverFailed(result.reason)
        if InvariantVerdict.EXPIRED in found.verdicts:
            return False
        if not found.is_proof:
            raise SolverFailed(
                f"the checker does not confirm the search: {_contradiction(found.claim)}"
            )
        self.text, self.by = text, found.by
        return True

    def _searcher(self) -> SmtInduction:
        left = self._budget.steps - self._before
        self._search = self._search or SmtInduction(self.model, most=left)
        return self._search

    @property
    def _steps(self) -> int:
        """Steps of the search so far."""
        return self._before + (self._search.steps if self._search is not None else 0)

    def _next_query(self) -> SolverLimits:
        """The limits of one more query. Raises OutOfTime."""
        left = self._seconds()
        if self._queries == self._budget.queries or self._steps >= self._budget.steps:
            raise OutOfTime
        self._queries += 1
        return self._budget.limits.within(left)

    def _seconds(self) -> int:
        """The remaining seconds of the budget. Raises OutOfTime."""
        left = self._budget.seconds - int(processor_time.own() - self._start)
        if left <= 0:
            raise OutOfTime
        return left


@contextmanager
def _failures_of_this_loop() -> Iterator[None]:
    """Raise SolverFailed for a model that cannot be translated, and for a search that fails."""
    try:
        yield
    except IllTyped as fault:
        raise SolverFailed(f"the model cannot be translated: {fault}") from fault
    except SearchFailed as fault:
        raise SolverFailed(str(fault)) from fault


def _contradiction(proof: InvariantResult) -> str:
    if proof.verdict is InvariantVerdict.TRUE:
        return "the model has no initial state"
    if proof.verdict is InvariantVerdict.FALSE:
        return f"it is violated after {len(proof.trace) - 1} iterations"
    return "it is not proved"
