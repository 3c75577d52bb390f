"""The verdict on a fact, and the finding of one entry that it follows from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quoll.facts.fact import Fact

__all__ = ["EntryFinding", "FactVerdict", "FindingKind", "JudgedFact"]


class FactVerdict(Enum):
    """The verdict: an assumed fact is neither proved nor refuted."""

    PROVED = "proved"
    REFUTED = "refuted"
    ASSUMED = "assumed"


class FindingKind(Enum):
    """The meaning of a finding, for the paths of one entry."""

    HOLDS = "holds"
    OPEN = "open"  # not proved
    BROKEN = "broken"  # an execution contradicts it
    APART = "apart"  # the fact is about none of them


@dataclass(frozen=True, slots=True)
class EntryFinding:
    """A finding with its evidence, or the reason why it is open.

    ``formulas``: SMT-LIB 2 texts, of each of which unsatisfiability would be the missing proof.
    """

    kind: FindingKind
    why: str
    formulas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedFact:
    """A fact with its verdict.

    ``why``: the evidence, or the reason why there is no proof. ``needs``: the proof that an assumed
    fact lacks. ``given``: the sources of unproved facts on which the verdict depends.
    """

    fact: Fact
    verdict: FactVerdict
    why: str
    needs: str = ""
    given: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
