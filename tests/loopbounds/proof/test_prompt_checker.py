"""A slow proof of the first checker is left to the second one; nothing is lost by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import pytest

from loopbounds.budgets import table
from loopbounds.budgets.budget import ProcessLimits, SolverLimits
from loopbounds.proof.prompt_checker import PromptChecker
from loopbounds.terms.bit_vectors import FALSE
from loopbounds.transition.checker import ProofObligation, ProofResult
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantResult, InvariantVerdict
from quoll.results.versions import Version

OBLIGATION = ProofObligation(LoopModel((), (), (), (), FALSE), FALSE, 1)
LIMITS = SolverLimits(ProcessLimits(seconds=20))
EXPIRED = InvariantVerdict.EXPIRED
VERDICTS = {
    "proved": (InvariantVerdict.FALSE, InvariantVerdict.TRUE),
    "empty": (InvariantVerdict.TRUE, InvariantVerdict.TRUE),
    "violated": (InvariantVerdict.FALSE, InvariantVerdict.FALSE),
    "unknown": (InvariantVerdict.FALSE, InvariantVerdict.UNKNOWN),
    "half": (InvariantVerdict.FALSE, EXPIRED),
    "failed": (InvariantVerdict.FAILED, InvariantVerdict.FAILED),
    "late": (EXPIRED, EXPIRED),
}


@dataclass
class Scripted:
    """A checker that gives ``verdict`` after so many seconds; it records its limits."""

    name: str
    verdict: str
    needs: int = 0
    asked: list[int] = field(default_factory=list)

    @property
    def identity(self) -> tuple[Version, ...]:
        """Its name."""
        return ((self.name, "1"),)

    def check(self, obligation: ProofObligation, limits: SolverLimits) -> ProofResult:
        """The verdict, or that the time did not suffice."""
        self.asked.append(limits.process.seconds)
        late = limits.process.seconds < self.needs
        initial, claim = map(InvariantResult, VERDICTS["late" if late else self.verdict])
        return ProofResult(initial, claim, self.name)


@pytest.mark.parametrize(("first", "second"), list(product(VERDICTS, VERDICTS)))
@pytest.mark.parametrize("needs", [0, 10, 100])
def test_each_verdict(first: str, second: str, needs: int) -> None:
    """The result is the first checker's whole one, unless that is late and the second proves."""
    one, other = Scripted("one", first, needs), Scripted("other", second)
    whole = Scripted("one", first, needs).check(OBLIGATION, LIMITS)
    found = PromptChecker(one, other).check(OBLIGATION, LIMITS)
    late = needs > table.PROMPT_SECONDS or first in {"half", "late"}
    by_other = late and second == "proved"
    assert found.by == ("other" if by_other else "one")
    assert found.verdicts == (VERDICTS["proved"] if by_other else whole.verdicts)
    assert len(other.asked) == late
    assert one.asked == [table.PROMPT_SECONDS, 20][: 1 + (late and not by_other)]


def test_results_depend_on_both() -> None:
    """Both checkers are in the key of a proof."""
    checker = PromptChecker(Scripted("one", "proved"), Scripted("other", "proved"))
    assert checker.identity == (("one", "1"), ("other", "1"))
    assert checker.name == "one"
