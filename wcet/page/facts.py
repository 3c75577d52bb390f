"""The places in the code of each fact of a result."""

from __future__ import annotations

from quoll.errors import WcetError
from quoll.facts import Fact, Facts
from quoll.facts.fact_places import resolve
from quoll.image.image import Image
from wcet.analysis.result import AnalysisResult

__all__ = ["fact_places"]


def fact_places(result: AnalysisResult, facts: Facts) -> list[list[int]]:
    """For each fact of a result the addresses that it names, where the code has them."""
    by_source = {(str(fact.source), fact.source.text): fact for fact in facts.facts}
    return [_addresses(result.image, by_source.get((f.source, f.text))) for f in result.facts]


def _addresses(image: Image, fact: Fact | None) -> list[int]:
    """The code that a fact names; facts about memory have none."""
    found: set[int] = set()
    for place in (*fact.places(), *fact.functions()) if fact else ():
        try:
            found.update(a for a in resolve(image, place) if image.is_executable(a))
        except WcetError:
            continue  # it names data, or a function of another binary
    return sorted(found)
