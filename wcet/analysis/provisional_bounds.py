"""Provisional bounds of loops, under which a survey goes on to find other missing facts.

A survey collects each loop without a bound, and the stages go on as if the loop executed once. All
results behind it are provisional: ``wcet.analysis.analysis`` marks them as cut off, so that none is
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from loopbounds.proof.bound import LoopBound
from quoll.errors import MissingStatement, UnboundedLoop
from quoll.facts.count_facts import LoopFact
from quoll.facts.fact import FactSource
from wcet.analysis.prepared import Prepared, PreparedPaths

__all__ = ["LoopSurvey", "once", "solved_provisionally", "with_provisional_bounds"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LoopSurvey:
    """The loops without a bound that one analysis of an entry has met, in the order of discovery.

    ``needed``: each needs a fact. ``doubtful``: they have no bound for any caller, but inlining
    their functions is possible, and callers might bound them then.
    """

    needed: list[UnboundedLoop] = field(default_factory=list)
    doubtful: list[UnboundedLoop] = field(default_factory=list)

    @property
    def met(self) -> bool:
        """Whether a loop has no bound, so that results are provisional."""
        return bool(self.needed or self.doubtful)

    def ask(self, errors: Sequence[UnboundedLoop]) -> None:
        """Move ``errors`` from the doubtful ones to the needed ones."""
        self.needed.extend(errors)
        self.doubtful[:] = [one for one in self.doubtful if one not in errors]


def once(missing: MissingStatement) -> LoopFact:
    """The provisional fact about a loop."""
    return LoopFact(FactSource("", 0, missing.fact), f"{missing.addr:#x}", 1)


def solved_provisionally(
    paths: PreparedPaths,
    solve: Callable[[PreparedPaths], Result],
    unbounded: list[UnboundedLoop] | None,
) -> Result:
    """The result of ``paths``, with provisional bounds of the loops that ``unbounded`` gets.

    Raises UnboundedLoop if ``unbounded`` is None, and in any case if a solver failed.
    """
    while True:
        try:
            return solve(paths)
        except UnboundedLoop as error:
            if unbounded is None or not error.missing:
                raise
            unbounded.append(error)
            paths = _bounded(paths, error)


def with_provisional_bounds(prepared: Prepared, error: UnboundedLoop) -> Prepared:
    """``prepared`` as if the loops of ``error`` executed once wherever they have no bound."""
    paths = tuple(_bounded(one, error) for one in prepared.paths)
    return replace(prepared, paths=paths, cut_off=True)


def _bounded(paths: PreparedPaths, error: UnboundedLoop) -> PreparedPaths:
    from loopbounds.proof.evidence import assumed, not_tried  # cached entries need no stage

    graph, facts = paths.graph, {one.addr: once(one) for one in error.missing}
    failed = {bound.loop: bound for bound in paths.bounds if bound.bound is None}
    bounded = {bound.loop for bound in paths.bounds if bound.bound is not None}
    given: dict[int, LoopBound] = {}
    for loop in graph.loops:
        fact = facts.get(graph.nodes[loop.header].block.addr)
        if fact is not None and loop.index not in bounded:
            known = failed.get(loop.index, not_tried(loop))
            given[loop.index] = assumed(known, fact, min(1, graph.apart(loop)), executed=0)
    others = (bound for bound in paths.bounds if bound.loop not in given)
    return replace(paths, bounds=(*others, *given.values()))
