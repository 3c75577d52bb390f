"""Find and prove the smallest bound of the header executions of a model (rules 18, 19, 22).

Strategies are tried in the order of ``STRATEGIES`` until one settles the bound. They only search:
runs of the model give a lower limit and candidate invariants, and the SMT solver finds the
candidates that seem to be inductive. Then the checker proves one property, and the result depends
on its "is true" alone. A model without an initial state satisfies every property, so the checker
also shows an initial state.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from loopbounds.budgets import table
from loopbounds.budgets.budget import Budget
from loopbounds.strategies.closed_form import ClosedForm
from loopbounds.strategies.end_distance import DistanceOfEnds, FurtherEnds
from loopbounds.strategies.explicit_states import ExplicitStates
from loopbounds.strategies.houdini import EquationsAtLongestRun, HoudiniAtLongestRun
from loopbounds.strategies.k_induction import KInduction, NoThirdExecution
from loopbounds.strategies.linear_phases import OnlyRunInPhases
from loopbounds.strategies.sampling import RunSampling
from loopbounds.strategies.session import OutOfTime, SolverFailed
from loopbounds.strategies.strategy import ProofTask, Strategy
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel

__all__ = ["STRATEGIES", "ProofOutcome", "prove_explicit", "prove_model"]

STRATEGIES: tuple[Strategy, ...] = (
    ClosedForm(),
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
    """The proved ``bound``, or None; ``reached``: executions of the longest run found.

    With ``failed`` a bound is valid, too: the solver failed at lowering it.
    """

    bound: int | None
    reached: int
    relations: int  # number of invariants
    failed: str  # failure of the solver: the outcome is not final; "" also when it ran out of time
    model: str  # SMV text of the proof
    seconds: float  # by the clock
    by: str = ""  # name of the checker that proved the bound
    endless: bool = False  # the model has a run that never ends: no bound follows from it

    @property
    def tight(self) -> bool:
        """Whether a run of the model reaches the bound."""
        return self.bound == self.reached

    @staticmethod
    def lost(why: str) -> ProofOutcome:
        """The outcome of a proof whose worker process died."""
        return ProofOutcome(None, 1, 0, why, "", 0.0)


def prove_model(
    model: LoopModel, budget: Budget, checker: Checker, most: int = table.HUGE
) -> ProofOutcome:
    """The smallest proved bound of ``model`` itself, without abstraction.

    ``most``: by distance of ends only bounds up to here are proved. Raises nothing if a solver
    fails.
    """
    return _attempted(ProofTask(model, budget, checker, most), STRATEGIES)


def prove_explicit(model: LoopModel, budget: Budget, checker: Checker) -> ProofOutcome:
    """The bound by explicit states alone. Raises nothing if a solver fails."""
    return _attempted(ProofTask(model, budget, checker), (ExplicitStates(),))


def _attempted(task: ProofTask, strategies: Sequence[Strategy]) -> ProofOutcome:
    """The least bound of the applicable strategies, tried in order until one settles it."""
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
        return ProofOutcome(None, task.reached, 0, failed, "", seconds, endless=endless)
    count = len(best.relations)
    return ProofOutcome(best.bound, task.reached, count, failed, best.text, seconds, best.by)
