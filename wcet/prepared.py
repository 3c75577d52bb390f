"""What the stages before the integer program find out about an entry, kept by content (rule 30).

The key covers the binary, the platform, the entry, the ends of paths, the length of call strings,
what is shared, the code of every stage, what Python has installed, NuSMV, the budget of proofs, and
all facts but those that only the integer program reads: after an edit of a constraint only that
program is solved again. Facts are compared by what they say; the lines on which they stand are
brought up to date when a record is read. A record is written only if every loop is bounded or has a
parameter, no proof attempt may have been cut off by the clock, and no function was analysed once
for all its calls: that solves integer programs too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from loopbounds.bound import LoopBound
from loopbounds.nusmv import find_solver
from loopbounds.options import BoundOptions
from pipeline.costs import Costs
from quoll.archive import Damaged, from_text, to_text
from quoll.errors import SolverError
from quoll.facts import AtMost, Conflict, Consistent, Fact, Facts, Linear, LoopParameter
from quoll.image import Image
from quoll.store import Store, code_version, key_of
from quoll.supergraph import Supergraph
from wcet.platform import Platform

__all__ = ["InfeasibleEdge", "Prepared", "PreparedPaths", "PreparedStore"]

ROOT = Path(__file__).parent.parent
# The code that a record depends on; of this package what calls the stages and describes boards.
STAGES = (
    "quoll", "cache", "pipeline", "loopbounds", "wcet/analyse.py", "wcet/preparation.py",
    "wcet/prepared.py", "wcet/platform.py", "wcet/toml_table.py", "wcet/platforms",
)  # fmt: skip
READ_BY_ILP = (AtMost, Conflict, Consistent, Linear, LoopParameter)


@dataclass(frozen=True, slots=True)
class InfeasibleEdge:
    """An edge that no execution takes in its context, and the value that decides (rule 4)."""

    source: int  # address of the block it leaves
    target: int
    context: int  # of the source; contexts keep their numbers when edges are removed
    why: str


@dataclass(frozen=True, slots=True)
class PreparedPaths:
    """The paths of an entry from one start (rule 21): all that their integer program needs.

    ``start`` is the address of the block that has just read the interrupt controller; None: the
    entry itself.
    """

    start: int | None
    graph: Supergraph
    costs: Costs
    bounds: tuple[LoopBound, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """An entry before its integer programs, one for each start of paths."""

    paths: tuple[PreparedPaths, ...]
    infeasible: tuple[InfeasibleEdge, ...]
    assumptions: tuple[str, ...]
    shared: bool = False  # whether functions were analysed once for all their calls


class PreparedStore:
    """The records of one run."""

    def __init__(
        self,
        folder: Path | None,
        image: Image,
        platform: Platform,
        facts: Facts,
        ends: Iterable[int],
        options: BoundOptions,
        contexts: tuple[object, ...] = (),
    ) -> None:
        wanted = folder is not None and options.models is None
        self._store = Store(folder if wanted else None)
        self._facts = {str(f): str(f.source) for f in reversed(facts.facts) if matters(f)}
        self._parameters = bool(facts.of(LoopParameter))
        self._query = options.budget.query.seconds
        self._common = wanted and common_key(
            image, platform, self._facts, ends, (options.budget, options.s1, *contexts)
        )

    def get(self, name: str, address: int) -> Prepared | None:
        """The record of an entry, if there is one."""
        if not self._common:
            return None
        text = self._store.get(key_of([self._common, name, hex(address)]))
        if text is None:
            return None
        try:
            prepared, sources = from_text(text)
        except (Damaged, ValueError):
            return None
        if not isinstance(prepared, Prepared):
            return None
        return moved(prepared, sources, self._facts)

    def put(self, name: str, address: int, prepared: Prepared) -> None:
        """Keep the record of an entry, if it is final."""
        if (
            self._common
            and not prepared.shared
            and all(self._final(b) for p in prepared.paths for b in p.bounds)
        ):
            key = key_of([self._common, name, hex(address)])
            self._store.put(key, to_text((prepared, self._facts)))

    def _final(self, bound: LoopBound) -> bool:
        """Proved, or not because no proof was found in less time than any one may take."""
        if not bound.final or (bound.bound is None and not self._parameters):
            return False
        return bound.method not in ("", "fact") or bound.seconds < self._query


def matters(fact: Fact) -> bool:
    """Whether a stage before the integer program reads facts of this kind."""
    return not isinstance(fact, READ_BY_ILP)


def common_key(
    image: Image,
    platform: Platform,
    facts: Mapping[str, str],
    ends: Iterable[int],
    options: tuple[object, ...],
) -> str | None:
    """What all entries of a run share; None where a part of it cannot be identified."""
    try:
        solver = hashlib.sha256(find_solver().read_bytes()).hexdigest()
    except (SolverError, OSError):
        return None
    board = [getattr(platform, f.name) for f in fields(platform) if f.name != "path"]
    return key_of(
        [
            code_version(*(ROOT / stage for stage in STAGES)),
            solver,
            image.sha256,
            to_text(tuple(board)),
            to_text(tuple(sorted(facts))),
            to_text(tuple(sorted(ends))),
            to_text(options),
        ]
    )


def moved(prepared: Prepared, then: Mapping[str, str], now: Mapping[str, str]) -> Prepared:
    """``prepared`` with the files and lines of facts as they are now."""
    places = {old: now[text] for text, old in then.items() if now[text] != old}
    if not places:
        return prepared
    pattern = re.compile("|".join(f"{re.escape(old)}(?![0-9])" for old in places))

    def renew(text: str) -> str:
        return pattern.sub(lambda match: places[match[0]], text)

    return replace(
        prepared,
        paths=tuple(
            replace(
                p,
                graph=replace(p.graph, guidance=p.graph.guidance.restated(renew)),
                bounds=tuple(replace(b, evidence=renew(b.evidence)) for b in p.bounds),
            )
            for p in prepared.paths
        ),
        assumptions=tuple(map(renew, prepared.assumptions)),
    )
