"""Abstraction and refinement: the bound of a loop by a simpler model, by a detailed one if need be.

Every abstraction has all runs of the loop, so that its bounds hold for the loop.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from loopbounds.budgets import table
from loopbounds.budgets.budget import Budget
from loopbounds.proof.prove import ProofOutcome, prove_explicit, prove_model
from loopbounds.reduction.canonical import canonical
from loopbounds.reduction.coarsen import coarsen, without_large
from loopbounds.reduction.simplify import simplified
from loopbounds.sampling.runs import longest
from loopbounds.strategies.sampling import long_runs
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel

__all__ = ["LoopAbstractions", "prove"]


def prove(model: LoopModel, budget: Budget, checker: Checker) -> ProofOutcome:
    """The smallest proved bound, by an abstraction where one suffices.

    Raises nothing if a solver fails.
    """
    models = LoopAbstractions.of(model)
    outcome = prove_model(models.simple, models.first_budget(budget), checker, models.first_most)
    return models.refined(outcome, budget, checker)


@dataclass(frozen=True, slots=True)
class LoopAbstractions:
    """Models of one loop, from the simplest, which has the longest runs, to the exact one."""

    simple: LoopModel
    whole: LoopModel
    detailed: LoopModel  # with the large constraints, too
    exact: LoopModel  # its runs show that a bound is reached

    @staticmethod
    def of(model: LoopModel) -> LoopAbstractions:
        """The abstractions of the model of a slice."""
        model = simplified(model)
        detailed = canonical(without_large(model, table.DETAILED_TERMS))
        return LoopAbstractions(
            canonical(coarsen(model)), canonical(without_large(model)), detailed, model
        )

    def first_budget(self, budget: Budget) -> Budget:
        """The budget of the simple model."""
        return budget if self.simple == self.whole else _share(budget)

    @property
    def first_most(self) -> int:
        """The largest bound to prove of the simple model: a detailed one may follow."""
        return table.HUGE if self.simple == self.whole else table.USEFUL

    def refined(self, outcome: ProofOutcome, budget: Budget, checker: Checker) -> ProofOutcome:
        """The outcome for the loop; ``outcome`` is the one for the simple model.

        If its bound is missing or loose, explicit states are tried, then more detailed models.
        """
        alike = self.simple == canonical(self.exact)
        if outcome.failed or (alike and (outcome.bound is not None or outcome.endless)):
            return outcome
        start, before = time.perf_counter(), outcome.seconds
        known = outcome.reached
        if not alike:
            # with inputs no run shows that the bound is exact (rule 22)
            reached = 1 if self.exact.inputs else longest(long_runs(self.exact))
            known = outcome.reached if self.exact.inputs else reached
            outcome = replace(outcome, reached=reached)
        long = known >= table.RUN_STEPS
        detail = self.detailed != self.whole and not long and outcome.bound is None
        # a run cut off at RUN_STEPS does not tell which bound is loose
        near = table.RUN_STEPS if long else table.LOOSE * known
        loose = outcome.bound is None or outcome.bound > near
        if loose:
            found = prove_explicit(self.exact, budget, checker)
            outcome = _lower(replace(found, reached=outcome.reached), outcome)
            loose = outcome.bound is None or outcome.bound > near
        if loose and self.simple != self.whole:
            if outcome.bound is not None:
                budget = budget.to_lower
            given = _share(budget) if detail else budget
            most = (outcome.bound or table.HUGE) // 2
            outcome = _lower(prove_model(self.whole, given, checker, most), outcome)
        if detail and outcome.bound is None and not outcome.failed:
            outcome = _lower(prove_model(self.detailed, budget, checker), outcome)
        return replace(outcome, seconds=before + time.perf_counter() - start)


def _share(budget: Budget) -> Budget:
    """The budget of a model before the more detailed one."""
    return replace(budget, steps=max(1, budget.steps // table.ABSTRACT_SHARE))


def _lower(new: ProofOutcome, old: ProofOutcome) -> ProofOutcome:
    """The lower of two outcomes for one loop. If the solver fails, the looser bound stays."""
    if old.bound is None:
        return new
    if new.failed:
        return replace(old, failed=new.failed)
    return old if (new.bound or table.HUGE) > old.bound else new
