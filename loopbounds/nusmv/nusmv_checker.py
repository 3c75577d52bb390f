"""The model checker as a back end of the transition system."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loopbounds.budgets.budget import SolverLimits
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.nusmv.model_text import smv_text
from loopbounds.transition.checker import ProofObligation, ProofResult
from quoll.results.versions import Version, file_version

__all__ = ["NusmvChecker"]


@dataclass(frozen=True, slots=True)
class NusmvChecker:
    """Proofs by NuSMV, an executable or a library; without it every check fails."""

    program: Path
    name = "nusmv"

    @property
    def identity(self) -> tuple[Version, ...]:
        """The path of the program and the hash of its content."""
        return ((self.name, file_version(self.program) if self.program.is_file() else "missing"),)

    def check(self, obligation: ProofObligation, limits: SolverLimits) -> ProofResult:
        """Both results of ``obligation``. Raises IllTyped and TooLarge."""
        text = smv_text(obligation.model, obligation.properties)
        initial, claim = nusmv.check_invariants(
            text, obligation.queries, limits.process, self.program
        )
        return ProofResult(initial, claim, self.name)
