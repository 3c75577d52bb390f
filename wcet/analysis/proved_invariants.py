"""The invariants that ``wcet prove`` has proved for a kernel with its facts, stored by content.

Their key covers the bytes of the kernel, the platform, every fact that a stage before the integer
program reads, and the versions of the code that proves (rules 30, 31). An analysis then lists the
assumptions of the proof in the place of the facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quoll.assumptions import Assumption, stated
from quoll.facts.entry_invariants import InvariantFact
from quoll.results.cache_key import key_of
from quoll.results.versions import versions
from wcet.analysis.request_key import CODE, LEFT_OUT, matters
from wcet.analysis.run import AnalysisRun

__all__ = ["ProvedInvariants", "proved_sources", "store_invariants", "with_proofs"]


@dataclass(frozen=True, slots=True)
class ProvedInvariants:
    """A record: the names of all proved invariants, and the assumptions of their induction."""

    names: frozenset[str]
    assumptions: tuple[Assumption, ...]


NONE = ProvedInvariants(frozenset(), ())


def proved_invariants(run: AnalysisRun) -> ProvedInvariants:
    """The proved invariants among the facts of a run."""
    if not run.facts.of(InvariantFact) or not run.options.store.enabled:
        return NONE
    return run.options.store.load(_key(run), ProvedInvariants) or NONE


def store_invariants(run: AnalysisRun, proved: ProvedInvariants) -> None:
    """Store the invariants that were proved with all facts of a run, if there are any."""
    if proved.names and run.options.store.enabled:
        run.options.store.save(_key(run), proved)


def proved_sources(run: AnalysisRun) -> frozenset[str]:
    """The sources of the proved invariants."""
    names = proved_invariants(run).names
    return frozenset(str(f.source) for f in run.facts.of(InvariantFact) if f.name in names)


def with_proofs(run: AnalysisRun, assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """``assumptions`` with the ones of the proof in the place of each proved invariant."""
    proved, found = proved_invariants(run), list[Assumption]()
    known = {stated(f) for f in run.facts.of(InvariantFact) if f.name in proved.names}
    for one in assumptions:
        found += proved.assumptions if one in known else (one,)
    return tuple(dict.fromkeys(found))


def _key(run: AnalysisRun) -> str:
    return key_of(
        "proved invariants",
        run.image.identity,
        run.platform,
        tuple(fact for fact in run.facts.facts if matters(fact)),
        sorted(run.exits),
        run.options.bounds.s1,
        versions(*CODE),
        left_out=LEFT_OUT,
    )
