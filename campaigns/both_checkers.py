"""Proofs by both checkers: a disagreement stops the campaign.

Each bound that a search finds is proved by NuSMV and by the SMT solver. They may differ only in the
proofs that fit into their limits.
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
        """Both checkers. Raises SolverError without NuSMV."""
        return BothCheckers(find_checker(), SmtChecker())

    @property
    def identity(self) -> tuple[Version, ...]:
        """The versions on which results depend."""
        return (*self.first.identity, *self.second.identity)

    def check(self, obligation: ProofObligation, limits: SolverLimits) -> ProofResult:
        """The first checker's results. Raises AssertionError if the second contradicts them."""
        found, other = (c.check(obligation, limits) for c in (self.first, self.second))
        for a, b in ((found.initial, other.initial), (found.claim, other.claim)):
            both = a.verdict in SAID and b.verdict in SAID
            assert not both or a.verdict is b.verdict, (a, b, obligation)
        return found


@contextmanager
def proved_by_both() -> Iterator[None]:
    """Bound loops by both checkers in this process."""
    with patch.object(bounds, "any_checker", lambda name: BothCheckers.found()):
        yield
