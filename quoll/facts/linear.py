"""Linear constraints between counts, the general form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.errors import FactsError
from quoll.facts.fact import (
    IN,
    NUMBER,
    PLACE,
    CountedFact,
    FactForm,
    FactSource,
    FactStage,
    FactSubject,
    LimitedFact,
    number,
    scope,
)

__all__ = ["FORMS", "LinearFact"]

TERM = rf"(?:(?:{NUMBER} ?\* ?)?count ?\( ?{PLACE} ?\)|{NUMBER})"
SIDE = rf"-? ?{TERM}(?: ?[+-] ?{TERM})*"
SUMMAND = re.compile(
    rf"(?P<sign>[+-])? ?(?:(?:(?P<factor>{NUMBER}) ?\* ?)?count ?\( ?(?P<place>{PLACE}) ?\)"
    rf"|(?P<number>{NUMBER}))"
)


@dataclass(frozen=True, slots=True)
class LinearFact(LimitedFact, CountedFact):
    """``2*count(a) - count(b) <= n in function``: ``sum(factor * count) relation number``.

    Counts are counts within one invocation of ``function``, or on the whole path. An invocation cut
    short by an end of the path is bound only if the fact is ``monotone``: otherwise its missing
    part could restore the relation.
    """

    stage = FactStage.INTEGER_PROGRAM
    assumption = assumptions.LINEAR

    terms: tuple[tuple[int, str], ...]  # (factor, place), no place twice
    relation: str  # <=, >= or =
    number: int
    function: str | None = None
    caller: str | None = None

    @property
    def monotone(self) -> bool:
        return not self.fully_counted()

    def holds(self, total: int) -> bool:
        """Whether a sum satisfies the relation."""
        if self.relation == "<=":
            return total <= self.number
        return total >= self.number if self.relation == ">=" else total == self.number

    def fields(self) -> Mapping[str, str | int]:
        text = "".join(
            f" {'-' if factor < 0 else '+'} {'' if abs(factor) == 1 else f'{abs(factor)}*'}"
            f"count({place})"
            for factor, place in self.terms
        )
        return {
            "counts": text[3:] if self.terms[0][0] > 0 else f"-{text[3:]}",
            "relation": self.relation,
            "number": self.number,
            "scope": scope(self.function, self.caller),
        }

    def subject(self) -> FactSubject:
        about = ("linear", frozenset(self.terms), self.relation, self.function, self.caller)
        return about, self.number

    def broken(self, total: int) -> str:
        return "" if self.holds(total) else f"the sum is {total}"

    def places(self) -> tuple[str, ...]:
        return tuple(place for _, place in self.terms)

    def fully_counted(self) -> tuple[str, ...]:
        return tuple(place for factor, place in self.terms if factor * self._sign <= 0)

    @property
    def _sign(self) -> int:
        """The sign of the factors that a limit from above has; 0 if there is none."""
        return {"<=": 1, ">=": -1, "=": 0}[self.relation]


def make(source: FactSource, match: re.Match[str]) -> LinearFact:
    """The fact with all counts on the left and the number on the right.

    Raises FactsError if the counts cancel.
    """
    factors: dict[str, int] = {}
    constant = 0
    for side, sign in (("left", 1), ("right", -1)):
        for term in SUMMAND.finditer(match[side]):
            value = -sign if term["sign"] == "-" else sign
            if term["number"] is not None:
                constant += value * number(term["number"])
            else:
                value *= number(term["factor"] or "1")
                factors[term["place"]] = factors.get(term["place"], 0) + value
    terms = tuple((factor, place) for place, factor in factors.items() if factor)
    if not terms:
        raise FactsError(f"'{source.text}' is about no count", where=str(source))
    return LinearFact(
        source, terms, match["relation"], -constant, match["function"], match["caller"]
    )


FORMS = (
    FactForm(
        r".*\bcount ?\(",
        rf"(?P<left>{SIDE}) ?(?P<relation><=|>=|=) ?(?P<right>{SIDE})(?:{IN})?",
        "N*count(PLACE) + count(PLACE) <= N [in FUNCTION [when called from FUNCTION]], "
        "also with >= or =",
        make,
    ),
)
