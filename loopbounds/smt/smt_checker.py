"""The SMT solver as a back end of the transition system."""

from __future__ import annotations

from dataclasses import dataclass

from loopbounds.budgets.budget import SolverLimits
from loopbounds.smt.induction import SmtInduction
from loopbounds.smt.solver import PACKAGE, SearchFailed
from loopbounds.transition.checker import ProofObligation, ProofResult
from loopbounds.transition.query import InvariantResult, InvariantVerdict
from loopbounds.transition.stepper import ModelStepper
from quoll.results.versions import Version, package_version

__all__ = ["SmtChecker", "solver_version"]


@dataclass(frozen=True, slots=True)
class SmtChecker:
    """Proofs by k-induction, in a new solver with the library's default settings.

    ``ModelStepper`` must accept the initial state that the solver shows.
    """

    name = "smt"

    @property
    def identity(self) -> tuple[Version, ...]:
        """The package of the solver, with its version."""
        return (solver_version(),)

    def check(self, obligation: ProofObligation, limits: SolverLimits) -> ProofResult:
        """Both results of ``obligation``. Raises IllTyped for terms that cannot be translated."""
        model, properties = obligation.model, obligation.properties
        try:
            induction = SmtInduction(model, plain=True)
            initial, claim = induction.check(properties, obligation.queries, limits.steps)
        except SearchFailed as fault:
            failed = InvariantResult(InvariantVerdict.FAILED, reason=str(fault))
            return ProofResult(failed, failed, self.name)
        if initial.verdict is InvariantVerdict.FALSE:
            parameters = [initial.trace[0][p.name] for p in model.parameters]
            if ModelStepper(model).start(parameters) is None:
                reason = "its initial state is invalid"
                initial = InvariantResult(InvariantVerdict.FAILED, reason=reason)
        return ProofResult(initial, claim, self.name)


def solver_version() -> Version:
    """The package of the solver, of the search and of proofs, with its version."""
    return (PACKAGE, package_version(PACKAGE))
