"""The longest execution that is known of an entry: the lower end of its bound, stored by content.

Its key covers the kernel, the platform, the entry, the memory at the start, and the facts that
decide where paths start, go and end. For a recorded execution it covers neither bounds of loops nor
constraints, nor the versions of the code: they do not change the time of an execution. So an
execution above a later bound is found. An execution from an invented state belongs to all facts,
and to the version that found it: another one may know that the state does not occur.
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.errors import UnsoundBound
from quoll.facts.fact import Fact, FactStage
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.results.cache_key import key_of
from quoll.results.results_store import ResultsStore
from quoll.results.versions import versions
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.request_key import CODE, LEFT_OUT
from wcet.platforms.platform_model import Platform

__all__ = ["SeenExecution", "SeenExecutions"]

BELIEVED = (FactStage.LOOP_BOUNDS, FactStage.INTEGER_PROGRAM)


@dataclass(frozen=True, slots=True)
class SeenExecution:
    """A record: an execution of an entry that took so many cycles on the concrete machine.

    ``charged``: the cycles that the analysis charges for its path, with an interrupt before the
    test for interrupts where the path was cut; None if this has several ends.
    ``evidence``: the recording, or that the state at the entry is invented.
    ``state``: then its registers and its words of memory that are not 0; None for a recording.
    """

    cycles: int
    charged: int | None
    evidence: str
    state: tuple[tuple[str, int], ...] | None = None

    def refutes(self, bound: int) -> bool:
        """Whether it takes longer than ``bound``.

        The charge of its path does not matter: another version may charge less.
        """
        return self.cycles > bound

    def within(self, bound: int) -> str:
        """The interval that it makes with ``bound``, as a sentence about cycles."""
        charged = "" if self.charged is None else f"charged {self.charged:,}, "
        return f"[seen {self.cycles:,}, {charged}bound {bound:,}] by {self.evidence}"

    def error(self, name: str, bound: int) -> UnsoundBound:
        """The error that ``bound`` of the entry ``name`` is not valid."""
        return UnsoundBound(
            f"entry {name}: an execution takes {self.cycles:,} cycles and the bound is {bound:,} "
            f"({self.evidence}): the bound is not valid",
            hint="a fact is wrong, or the analysis is: wcet check-facts, wcet replay",
        )


@dataclass(frozen=True, slots=True)
class SeenExecutions:
    """The stored executions of one kernel, under the facts and options of a run."""

    store: ResultsStore
    image: Image
    platform: Platform
    facts: Facts
    options: AnalysisOptions

    def of(self, name: str, address: int) -> SeenExecution | None:
        """The longest execution of an entry; None: none is known."""
        both = (self._stored(name, address, invented=one) for one in (False, True))
        return max(filter(None, both), key=lambda one: one.cycles, default=None)

    def _stored(self, name: str, address: int, *, invented: bool) -> SeenExecution | None:
        if not self.store.enabled:
            return None
        key = self._key(name, address, invented=invented)
        found: SeenExecution | None = self.store.load(key, SeenExecution)
        return found

    def add(self, name: str, address: int, found: SeenExecution) -> None:
        """Store an execution, unless a longer one is there."""
        invented = found.state is not None
        known = self._stored(name, address, invented=invented)
        if self.store.enabled and (known is None or known.cycles < found.cycles):
            self.store.save(self._key(name, address, invented=invented), found)

    def _key(self, name: str, address: int, *, invented: bool) -> str:
        facts = self.facts.facts
        return key_of(
            "invented" if invented else "recorded",
            self.image.identity,
            self.platform,
            facts if invented else tuple(filter(about_paths, facts)),
            versions(*CODE) if invented else (),
            self.options.loaded_memory,
            self.options.parameters,
            name,
            address & ~1,
            left_out=LEFT_OUT,
        )


def about_paths(fact: Fact) -> bool:
    """Whether a fact may decide where paths start, go and end."""
    return fact.stage not in BELIEVED
