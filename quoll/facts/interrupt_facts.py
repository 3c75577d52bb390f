"""Facts about interrupts where values do not tell whether they are masked."""

from __future__ import annotations

from dataclasses import dataclass

from quoll import assumptions
from quoll.facts.fact import FUNCTION, FactForm, FactStage, FactSubject, FunctionFact

__all__ = ["FORMS", "BeginsUnmaskedFact"]


@dataclass(frozen=True, slots=True)
class BeginsUnmaskedFact(FunctionFact):
    """``function begins unmasked``: interrupts are enabled whenever it is entered."""

    stage = FactStage.VALUES
    assumption = assumptions.BEGINS_UNMASKED

    def subject(self) -> FactSubject:
        return ("masks", self.function), "not masked"


FORMS = (
    FactForm(
        r"\S+ begins\b",
        rf"(?P<function>{FUNCTION}) begins unmasked",
        "FUNCTION begins unmasked",
        lambda s, m: BeginsUnmaskedFact(s, m["function"]),
    ),
)
