"""Proofs by both checkers: a disagreement stops the campaign.

Each bound that a search finds is proved by NuSMV and by the SMT solver. They may differ in what
they manage within their limits, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from loopbounds import bounds
from loopbounds.budgets.budget import SolverLimits
from loopbounds.proof.bound import NUSMV
from loopbounds.smt.smt_checker import SmtChecker
from loopbounds.transition.checker import Checker, ProofObligation, ProofResult
from loopbounds.transition.query import InvariantVerdict
from quoll.results.versions import Version
from tests.testing.loopbounds.checkers import find_checker

__all__ = ["BothCheckers", "proved_by_both"]

SAID = (InvariantVerdict.TRUE, InvariantVerdict.FALSE, InvariantVerdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class BothCheckers:
    """NuSMV, with the SMT solver beside it."""

    first: Checker
    second: Checker
    name = NUSMV

    @staticmethod
    def found() -> BothCheckers:
        """Raises SolverError when there is no NuSMV."""
        return BothCheckers(find_checker(), SmtChecker())

    @property
    def identity(self) -> tuple[Version, ...]:
        """What answers follow from."""
        return (*self.first.identity, *self.second.identity)

    def check(self, obligation: ProofObligation, limits: SolverLimits) -> ProofResult:
        """The results of the first. Raises AssertionError where the second has others."""
        found, other = (c.check(obligation, limits) for c in (self.first, self.second))
        for a, b in ((found.initial, other.initial), (found.claim, other.claim)):
            both = a.verdict in SAID and b.verdict in SAID
            assert not both or a.verdict is b.verdict, (a, b, obligation)
        return found


@contextmanager
def proved_by_both() -> Iterator[None]:
    """Loops are bounded so, in this process."""
    with patch.object(bounds, "any_checker", lambda name: BothCheckers.found()):
        yield
