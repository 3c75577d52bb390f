"""The one interface of the checkers that prove invariants of a model (rule 19).

A proof obligation has two queries: one shows that there is an initial state, without which a model
satisfies every claim, and one proves the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from loopbounds.budgets.budget import SolverLimits
from loopbounds.terms.bit_vectors import FALSE, Term
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict
from quoll.results.versions import Version

__all__ = ["Checker", "ProofObligation", "ProofResult"]

NEVER = InvariantQuery("never", depth=0)  # a violation of FALSE shows an initial state
CLAIM = "bounded"


@dataclass(frozen=True, slots=True)
class ProofObligation:
    """``claim`` holds in all reachable states of ``model``, by induction of ``depth``."""

    model: LoopModel
    claim: Term
    depth: int

    @property
    def properties(self) -> tuple[tuple[str, Term], ...]:
        """The properties of the two queries, by name."""
        return (NEVER.name, FALSE), (CLAIM, self.claim)

    @property
    def queries(self) -> tuple[InvariantQuery, InvariantQuery]:
        """Is there an initial state (never: FALSE), and does the claim hold?"""
        return NEVER, InvariantQuery(CLAIM, self.depth)


@dataclass(frozen=True, slots=True)
class ProofResult:
    """The results of the two queries of an obligation."""

    initial: InvariantResult  # FALSE verdict: there is an initial state
    claim: InvariantResult
    by: str  # ``name`` of the checker that gave them

    @property
    def verdicts(self) -> tuple[InvariantVerdict, InvariantVerdict]:
        """The verdicts of both queries."""
        return self.initial.verdict, self.claim.verdict

    @property
    def is_proof(self) -> bool:
        """Whether there is an initial state, and the claim holds."""
        return self.verdicts == (InvariantVerdict.FALSE, InvariantVerdict.TRUE)


class Checker(Protocol):
    """A back end that proves invariants. Any unclear output counts as no proof."""

    @property
    def name(self) -> str:
        """The ``method`` of the bounds that it proves."""

    @property
    def identity(self) -> tuple[Version, ...]:
        """The programs that its results depend on, with their versions."""

    def check(self, obligation: ProofObligation, limits: SolverLimits) -> ProofResult:
        """Both results of ``obligation``. Raises IllTyped for terms that cannot be translated."""
