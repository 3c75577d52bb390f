"""Evidence of recorded executions for each fact, stored for later runs (rule 28).

A record belongs to the text of one fact about one binary. It holds the outcome of every recording
by the recording's hash, so that a recording that is checked twice counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ilp.constraints.constraint import is_implied, resolve_constraints
from loopbounds.places import facts_of_loops
from loopbounds.proof.bound import LoopBound
from quoll.facts.count_facts import AtMostFact
from quoll.facts.fact import Fact
from quoll.facts.guidance import RecursionFact
from quoll.facts.located import LocatedFacts
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.results.cache_key import key_of
from quoll.results.results_store import ResultsStore
from quoll.results.versions import versions
from wcet.analysis.prepared import Prepared
from wcet.analysis.request_key import CODE, LEFT_OUT

__all__ = [
    "FactEvidence",
    "FactLabel",
    "FactOutcome",
    "FactStatus",
    "labels",
    "proved_counts",
    "proved_depths",
    "proved_loops",
]


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """A recording's executions that reached a fact's subject; ``violated``: the first violation."""

    reached: int
    violated: str | None = None


@dataclass(frozen=True, slots=True)
class FactOutcomes:
    """A record: the outcome of each recording, by its hash."""

    by_recording: Mapping[str, FactOutcome]


class FactStatus(Enum):
    """The evidence for a fact."""

    ASSUMED = "assumed"
    SURVIVED = "survived"
    PROVED = "proved"
    VIOLATED = "violated"


@dataclass(frozen=True, slots=True)
class FactLabel:
    """A fact with its evidence.

    ``survived``: executions that reached its subject; ``broken``: the place of a violation.
    """

    fact: Fact
    status: FactStatus
    survived: int = 0
    broken: str = ""

    @property
    def source(self) -> str:
        """The file and line of the fact."""
        return str(self.fact.source)

    @property
    def text(self) -> str:
        """The fact, as a facts file states it."""
        return str(self.fact)

    @property
    def brief(self) -> str:
        """Its evidence, without a place."""
        survived = self.status is FactStatus.SURVIVED
        return f"survived {self.survived:,} executions" if survived else self.status.value

    @property
    def label(self) -> str:
        """Its evidence, with the place of a violation."""
        return f"{self.brief}: {self.broken}" if self.broken else self.brief


class FactEvidence:
    """The records of facts about one binary."""

    def __init__(self, store: ResultsStore, image: Image) -> None:
        self._store, self._image = store, image

    def of(self, fact: Fact) -> Mapping[str, FactOutcome]:
        """Outcomes by hash of the recording."""
        found: FactOutcomes | None = self._store.load(self._key(fact), FactOutcomes)
        return {} if found is None else found.by_recording

    def add(self, fact: Fact, outcomes: Mapping[str, FactOutcome]) -> None:
        """Store outcomes together with the outcomes of other recordings."""
        self._store.save(self._key(fact), FactOutcomes({**self.of(fact), **outcomes}))

    def _key(self, fact: Fact) -> str:
        """The cache key of a fact's record; no violation depends on platform or options."""
        code = versions(*CODE)
        return key_of("survival", self._image.identity, fact, code, left_out=LEFT_OUT)


def labels(facts: Facts, evidence: FactEvidence, proved: frozenset[str]) -> tuple[FactLabel, ...]:
    """The label of each fact, in file order; ``proved``: the sources of proved facts."""
    found = []
    for fact in facts.facts:
        source = str(fact.source)
        outcomes = evidence.of(fact).values()
        broken = next((o.violated for o in outcomes if o.violated), None)
        survived = sum(o.reached for o in outcomes)
        if broken:
            found.append(FactLabel(fact, FactStatus.VIOLATED, broken=broken))
        elif source in proved:
            found.append(FactLabel(fact, FactStatus.PROVED))
        elif survived:
            found.append(FactLabel(fact, FactStatus.SURVIVED, survived))
        else:
            found.append(FactLabel(fact, FactStatus.ASSUMED))
    return tuple(found)


def proved_loops(
    image: Image, facts: LocatedFacts, entries: Sequence[tuple[Supergraph, Sequence[LoopBound]]]
) -> frozenset[str]:
    """Sources of the loop facts that are no tighter than the proved bound, in every context."""
    proved: dict[str, bool] = {}
    for graph, bounds in entries:
        stated = facts_of_loops(graph, image, facts, in_part=True)
        for loop, about in enumerate(stated):
            bound, apart = bounds[loop], graph.apart(graph.loops[loop])
            for fact in about:
                holds = bound.method not in ("", "fact", "parameter") and bound.bound is not None
                holds = holds and bound.bound is not None and bound.bound + apart <= fact.bound
                source = str(fact.source)
                proved[source] = proved.get(source, True) and holds
    return frozenset(source for source, holds in proved.items() if holds)


def proved_depths(facts: LocatedFacts, entries: Sequence[Supergraph]) -> frozenset[str]:
    """Sources of the stated depths that are no less than the proved depth, from every entry."""
    found: dict[str, bool] = {}
    for address, fact in facts.addressed(RecursionFact):
        for graph in entries:
            depth = graph.guidance.depths.get(address)
            if depth is not None:
                holds = not depth.facts and depth.activations <= fact.activations
                source = str(fact.source)
                found[source] = found.get(source, True) and holds
    return frozenset(source for source, holds in found.items() if holds)


def proved_counts(facts: LocatedFacts, entries: Iterable[Prepared]) -> frozenset[str]:
    """Sources of the counts that loop bounds imply on all paths of every entry concerned."""
    counts = facts.stating(facts.of(AtMostFact))
    proved: dict[str, bool] = {}
    for entry in entries if counts.facts else ():
        whole = len(entry.paths) == 1 and entry.paths[0].start is None
        for paths in entry.paths:
            for constraint in resolve_constraints(paths.graph, counts):
                source = str(constraint.fact.source)
                holds = whole and is_implied(constraint, paths.graph, paths.bounds)
                proved[source] = proved.get(source, True) and holds
    return frozenset(source for source, holds in proved.items() if holds)
