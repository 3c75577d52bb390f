"""What is known of a loop's iterations, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quoll.assumptions import LOOP_FACT, Assumption

__all__ = [
    "CHECKERS",
    "EITHER",
    "EXECUTION",
    "NUSMV",
    "PROVED",
    "SMT",
    "SOLVER_FAILED",
    "LoopBound",
    "substituted",
]

NUSMV, SMT = "nusmv", "smt"
CHECKERS = (NUSMV, SMT)  # whose proofs are believed
EITHER = ""  # the model checker; where it is missing, or fails, the SMT solver
EXECUTION = "execution"  # the only one of the entry was followed
PROVED = (*CHECKERS, EXECUTION)  # methods of bounds that are proved
INSTEAD = (
    "NuSMV is missing: the bounds of loops marked 'smt' are proved by the SMT solver, which also "
    "searched for them; 'wcet setup' gets NuSMV"
)
SOLVER_FAILED = "solver failed"  # how reasons begin that say nothing of the loop


@dataclass(frozen=True, slots=True)
class LoopBound:
    """``bound`` = most executions of the header per entry from outside (rule 18), or None.

    Of a loop whose first iteration is apart (``Supergraph.apart``) those of the others.
    """

    loop: int  # index into Supergraph.loops
    bound: int | None
    exact: bool | None  # a counterexample to bound - 1 exists (rule 22); None: not known
    method: str  # one of ``PROVED``, "fact", or "" when there is no bound
    evidence: str  # one line: what was proved, or where the fact stands
    reason: str  # why there is no bound, and which fact would help; "" when bounded
    seconds: float
    total: int | None = None  # executions per entry of the loop around it, if less than the product
    around: int | None = None  # address of the header of that loop
    assumes: Assumption | None = None  # a fact about data that the proof rests on
    rests: tuple[Assumption, ...] = ()  # the named assumptions of the proof
    why: str = ""  # of the reason the part that names what is unknown
    unanswered: str = ""  # of a bound: what was asked of a solver, which failed

    @property
    def failed(self) -> bool:
        """Whether there is no answer, which another run may give."""
        return self.reason.startswith(SOLVER_FAILED)

    @property
    def final(self) -> bool:
        """Whether no query failed, so that another run finds the same."""
        return not self.failed and not self.unanswered

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the bound rests on."""
        by_fact = self.method in ("fact", "parameter")
        return (
            *((LOOP_FACT.text(evidence=self.evidence),) if by_fact else ()),
            *((self.assumes,) if self.assumes else ()),
            *self.rests,
        )


def substituted(wanted: str, bounds: Iterable[LoopBound]) -> tuple[str, ...]:
    """What is said where NuSMV is missing and the SMT solver proved bounds in its place."""
    alone = wanted == EITHER and any(b.method == SMT and b.final for b in bounds)
    return (INSTEAD,) if alone else ()
