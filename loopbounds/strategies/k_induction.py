"""The least bound that is inductive over a few states (Sheeran, Singh, Stalmarck, 2000).

Bounds between the longest run and the first inductive bound are tried a few at a time. Nothing is
unrolled, so that a bound of a million costs as much as a bound of ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopbounds.budgets import table
from loopbounds.reduction.coarsen import easy
from loopbounds.sampling.candidates import likely_bounds
from loopbounds.sampling.samples import Samples, with_one_condition
from loopbounds.strategies.houdini import houdini
from loopbounds.strategies.session import OutOfTime, SolverSession
from loopbounds.strategies.strategy import InductiveBound, ProofTask, ProvedBound, prove_by
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.model import at_most

__all__ = ["KInduction", "NoThirdExecution"]


@dataclass(frozen=True, slots=True)
class NoThirdExecution:
    """The bound 2, for a loop without a third execution by bounded model checking."""

    name = "bounded model checking"

    def applies(self, task: ProofTask) -> bool:
        """Where a second execution was found, and no third one."""
        return task.is_short

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``."""
        assert task.no_third is not None
        return prove_by(task.session, task.no_third)


@dataclass(frozen=True, slots=True)
class KInduction:
    """The least inductive bound, first with one condition to repeat."""

    name = "k-induction"

    def applies(self, task: ProofTask) -> bool:
        """Unless bounded model checking has already found the bound."""
        return not task.is_short

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``."""
        session, samples = task.session, task.known
        if task.is_long:
            session.keep_to(max(1, task.budget.steps // table.LONG_LOOP_SHARE))
        for some in (*with_one_condition(samples), samples):
            session.turn_to(some.model)
            remaining = task.remaining if some is samples else None
            candidates = some.candidates if remaining is None else remaining
            found = _proved(session, some, candidates, task.no_third)
            if found is not None:
                return found
        return None


def _proved(
    session: SolverSession,
    samples: Samples,
    candidates: list[Term],
    no_third: InductiveBound | None,
) -> ProvedBound | None:
    """The proved least bound; by easy relations alone if the proof with all takes too long."""
    found = _search(session, samples, candidates, no_third)
    if found is None or (proved := prove_by(session, found)):
        return None if found is None else proved
    few = [r for r in found.relations if easy(r)]
    if len(few) == len(found.relations):
        return None
    found = _search(session, samples, few, no_third)
    return None if found is None else prove_by(session, found)


def _search(
    session: SolverSession,
    samples: Samples,
    candidates: list[Term],
    no_third: InductiveBound | None,
) -> InductiveBound | None:
    """The least inductive bound. Raises OutOfTime if the budget is spent before any is found."""
    model, first = samples.model, samples.reached
    candidates, inductive = houdini(session, model, candidates, at_most(first))
    if inductive:
        return InductiveBound(first, tuple(candidates))
    if no_third is not None:
        return no_third
    likely = [n for n in likely_bounds(model, samples.runs) if first < n < table.HUGE]
    low = first + 2
    tries = [first + 1, *likely[: table.LIKELY_BOUNDS], table.HUGE]
    found = _least(session, candidates, tries)
    if found is None:
        candidates, inductive = houdini(session, model, candidates, at_most(table.HUGE))
        low = first
        found = InductiveBound(table.HUGE, tuple(candidates)) if inductive else None
    if found is not None and found.bound < table.HUGE and first >= table.RUN_STEPS:
        return found  # the least likely bound: cut-off runs show no lower one to search
    return _narrow(session, candidates, likely, low, found)


def _least(
    session: SolverSession,
    candidates: list[Term],
    tries: Sequence[int],
    depth: int = table.INDUCTION_DEPTH,
) -> InductiveBound | None:
    """The least bound of ``tries`` that is inductive with the candidates."""
    found = [InductiveBound(n, tuple(candidates), depth) for n in sorted(set(tries))]
    at = session.first_inductive([f.claim for f in found], depth)
    return None if at is None else found[at]


def _narrow(
    session: SolverSession,
    candidates: list[Term],
    likely: list[int],
    low: int,
    best: InductiveBound | None,
) -> InductiveBound | None:
    """The least inductive bound from ``low`` on, with several tried per query, for each depth.

    A deeper induction covers a few iterations more, which does not help loops with thousands. When
    the budget is spent, the least bound so far. Raises OutOfTime if there is none.
    """
    depths = table.DEEPER if low < table.RUN_STEPS else table.DEEPER[:1]
    for depth in depths:
        while best is None or low < best.bound:
            high = None if best is None else best.bound
            between = [n for n in likely if low <= n and (high is None or n < high)]
            tries = sorted({*_ladder(low, high), *between[-4:]})
            try:
                best = _least(session, candidates, tries, depth) or best
            except OutOfTime:
                if best is None or best.bound == table.HUGE:
                    raise
                return best
            bad = [n for n in tries if best is None or n < best.bound]
            if bad:
                low = max(bad) + 1
            if best is None:
                break
        if best is not None and best.bound < table.HUGE:
            return best
        low = 1
    return None


def _ladder(low: int, high: int | None) -> list[int]:
    """A few values from ``low`` to below ``high``, near to ``low`` if the range is wide."""
    if high is None:
        return sorted({min(table.HUGE, low << s) for s in (0, 1, 3, 6, 10, 15, 21, 30)})
    span = high - low
    if span > 4 * low:
        return sorted({low, 2 * low, min(16 * low, high - 1)})
    return sorted({low + span * i // 3 for i in range(3)})
