"""Proofs by both checkers: a disagreement stops the campaign.

Each bound that a search finds is proved by NuSMV and by the SMT solver. They may differ in what
they manage within their limits, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from loopbounds import bounds
from loopbounds.nusmv.model import LoopModel
from loopbounds.nusmv.query import Check, CheckAnswer, CheckVerdict, Limits
from loopbounds.proof.bound import NUSMV
from loopbounds.proof.checker import Checker, Smt, find_checker
from loopbounds.smt.solver import Effort
from loopbounds.terms.bit_vectors import Term
from quoll.kept.versions import Version

__all__ = ["BothCheckers", "proved_by_both"]

SAID = (CheckVerdict.TRUE, CheckVerdict.FALSE, CheckVerdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class BothCheckers:
    """NuSMV, with the SMT solver beside it."""

    first: Checker
    second: Checker
    name = NUSMV

    @staticmethod
    def found() -> BothCheckers:
        """Raises SolverError when there is no NuSMV."""
        return BothCheckers(find_checker(), Smt())

    @property
    def identity(self) -> tuple[Version, ...]:
        """What answers follow from."""
        return (*self.first.identity, *self.second.identity)

    def ask(
        self,
        model: LoopModel,
        properties: Sequence[tuple[str, Term]],
        check: Check,
        limits: Limits,
        effort: Effort,
    ) -> tuple[CheckAnswer, CheckAnswer]:
        """What the first says. Raises AssertionError where the second says otherwise."""
        asked = [c.ask(model, properties, check, limits, effort) for c in (self.first, self.second)]
        for one, other in zip(*asked, strict=True):
            both = one.verdict in SAID and other.verdict in SAID
            assert not both or one.verdict is other.verdict, (one, other, check, model, properties)
        return asked[0]


@contextmanager
def proved_by_both() -> Iterator[None]:
    """Loops are bounded so, in this process."""
    with patch.object(bounds, "any_checker", lambda name: BothCheckers.found()):
        yield
