"""Find and prove the smallest bound of the header executions of a model (rules 18, 19, 22).

Strategies are tried in the order of ``STRATEGIES`` until one settles the bound. All but the checker
is search: runs of the model give a lower limit and candidate invariants, and the SMT solver says
which of them seem to be inductive. Then the checker proves one property, and no result depends on
more than its "is true". A model without an initial state satisfies everything, so that the checker
shows one, too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from loopbounds.budgets import table
from loopbounds.budgets.budget import Budget
from loopbounds.strategies.end_distance import DistanceOfEnds, FurtherEnds
from loopbounds.strategies.explicit_states import ExplicitStates
from loopbounds.strategies.houdini import EquationsAtLongestRun, HoudiniAtLongestRun
from loopbounds.strategies.k_induction import KInduction, NoThirdExecution
from loopbounds.strategies.linear_phases import OnlyRunInPhases
from loopbounds.strategies.sampling import RunSampling
from loopbounds.strategies.session import OutOfTime, SolverFailed
from loopbounds.strategies.strategy import ProofTask, Strategy
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel

__all__ = ["STRATEGIES", "ProofOutcome", "prove_explicit", "prove_model"]

STRATEGIES: tuple[Strategy, ...] = (
    RunSampling(),
    HoudiniAtLongestRun(),
    OnlyRunInPhases(table.RUN_STEPS),
    EquationsAtLongestRun(),
    FurtherEnds(),
    NoThirdExecution(),
    DistanceOfEnds(first=True, near=True),
    DistanceOfEnds(first=True),
    KInduction(),
    DistanceOfEnds(first=False),
    OnlyRunInPhases(table.USEFUL),
)


@dataclass(frozen=True, slots=True)
class ProofOutcome:
    """``bound`` proved, or None and why. ``reached``: executions of the longest run found.

    Where the solver failed there may be a bound all the same: it failed to lower that.
    """

    bound: int | None
    reached: int
    invariants: tuple[Term, ...]
    relations: int  # how many invariants
    failed: str  # what the solver failed with; "" when it answered or ran out of time: not final
    model: str  # SMV text of the proof
    seconds: float  # by the clock
    endless: bool = False  # the model has a run that never ends: no bound follows from it

    @property
    def tight(self) -> bool:
        """Whether a run of the model reaches the bound."""
        return self.bound == self.reached

    @staticmethod
    def lost(why: str) -> ProofOutcome:
        """The outcome of a proof whose worker process ended."""
        return ProofOutcome(None, 1, (), 0, why, "", 0.0)

    def without_terms(self) -> ProofOutcome:
        """The picklable part: terms are interned in the process that made them."""
        return replace(self, invariants=())


def prove_model(
    model: LoopModel, budget: Budget, checker: Checker, most: int = table.HUGE
) -> ProofOutcome:
    """The smallest bound that is proved of ``model`` as it is.

    One above ``most`` is not worth a proof of its own. Raises nothing if a solver fails.
    """
    return _attempted(ProofTask(model, budget, checker, most), STRATEGIES)


def prove_explicit(model: LoopModel, budget: Budget, checker: Checker) -> ProofOutcome:
    """The bound by enumeration of states alone. Raises nothing if a solver fails."""
    return _attempted(ProofTask(model, budget, checker), (ExplicitStates(),))


def _attempted(task: ProofTask, strategies: Sequence[Strategy]) -> ProofOutcome:
    """The least bound of the strategies, each tried where it applies, until one settles it."""
    start, failed = time.perf_counter(), ""
    try:
        for strategy in strategies:
            if strategy.applies(task):
                with suppress(OutOfTime):
                    task.take(strategy.attempt(task))
            if task.is_settled:
                break
    except SolverFailed as failure:
        failed = str(failure)
    seconds = time.perf_counter() - start
    endless = task.samples is not None and task.samples.is_endless
    best = task.best
    if best is None:
        return ProofOutcome(None, task.reached, (), 0, failed, "", seconds, endless=endless)
    known, count = best.relations, len(best.relations)
    return ProofOutcome(best.bound, task.reached, known, count, failed, best.text, seconds)
