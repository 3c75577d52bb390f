"""The checker where the user names none: the model checker first, and not for long.

Some products and shifts take the model checker a hundred times as long as the SMT solver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loopbounds.budgets import table
from loopbounds.budgets.budget import SolverLimits
from loopbounds.transition.checker import Checker, ProofObligation, ProofResult
from loopbounds.transition.query import InvariantVerdict
from quoll.results.versions import Version

__all__ = ["PromptChecker"]


@dataclass(frozen=True, slots=True)
class PromptChecker:
    """``first``, unless ``PROMPT_SECONDS`` do not suffice and ``second`` proves the claim.

    Where ``second`` proves nothing, ``first`` gets all of its time: nothing is lost that it alone
    proves, and the speed of the machine decides only which of the two is named.
    """

    first: Checker
    second: Checker

    @property
    def name(self) -> str:
        """The name of the first checker."""
        return self.first.name

    @property
    def identity(self) -> tuple[Version, ...]:
        """The versions of both."""
        return *self.first.identity, *self.second.identity

    def check(self, obligation: ProofObligation, limits: SolverLimits) -> ProofResult:
        """As ``Checker``."""
        seconds = min(limits.process.seconds, table.PROMPT_SECONDS)
        prompt = replace(limits, process=replace(limits.process, seconds=seconds))
        found = self.first.check(obligation, prompt)
        if InvariantVerdict.EXPIRED not in found.verdicts:
            return found
        other = self.second.check(obligation, limits)
        return other if other.is_proof else self.first.check(obligation, limits)
