"""Bounds of loops between two unknown ends, such as pointers: by their largest distance.

A candidate ``s * executions + b <= D``, with D over parameters alone, bounds the executions by the
maximum of D in initial states. Queries about D concern initial states alone, so that they are easy
even where masks, shifts and choices compute the two ends. Then ``D <= most`` is one more relation,
and the induction does not need the structure of D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from loopbounds.budgets import table
from loopbounds.sampling.candidates import likely_bounds
from loopbounds.sampling.runs import ModelRun, longest, runs_from
from loopbounds.sampling.samples import Samples
from loopbounds.strategies.houdini import houdini
from loopbounds.strategies.session import OutOfTime, SolverSession
from loopbounds.strategies.strategy import InductiveBound, ProofTask, ProvedBound, prove_by
from loopbounds.terms import rewrite
from loopbounds.terms.arithmetic import signed
from loopbounds.terms.bit_vectors import Term, const, mask, sub, ule
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel, at_most
from loopbounds.transition.query import InvariantQuery, InvariantVerdict

__all__ = ["DistanceOfEnds", "EndDistance", "FurtherEnds", "end_distances", "longer_runs"]


@dataclass(frozen=True, slots=True)
class FurtherEnds:
    """Longer runs, from initial states whose ends are further apart than in any known run.

    In a loop between two unknown ends all random runs may be short.
    """

    name = "counterexample-guided sampling"

    def applies(self, task: ProofTask) -> bool:
        """Unless runs have at most two executions, or are cut off (``RUN_STEPS``)."""
        return table.TWO_EXECUTIONS < task.reached < table.RUN_STEPS

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """None: runs prove nothing. They are added to the samples of the task."""
        for _ in range(table.LENGTHENINGS):
            samples = task.known
            more = longer_runs(task.distance_session, samples)
            if longest(more) <= samples.reached:
                return None
            task.samples = replace(samples, runs=[*samples.runs, *more])
            task.remaining = None
            if task.is_long:
                return None
        return None


@dataclass(frozen=True, slots=True)
class DistanceOfEnds:
    """The bound by the largest distance of two unknown ends: a ranking function.

    Queries about distances have a budget of their own. ``first``: before k-induction, for loops
    with cut-off runs. ``near``: for other large loops, with bounds near to the longest run only.
    """

    first: bool
    near: bool = False
    name = "ranking by distance"

    def applies(self, task: ProofTask) -> bool:
        """Long loops before k-induction, other ones after it, large ones both times."""
        if self.near:
            return task.known.is_large and not (task.is_long or task.is_short)
        return task.is_long == self.first and not task.is_short

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``.

        Further relations of the ends make the induction harder: equations are tried first.
        """
        session, samples, reached = task.distance_session, task.known, task.reached
        model, ends = samples.model, set(samples.model.parameters)
        most = min(task.most, reached + reached // table.NEARLY) if self.near else task.most
        likely = end_distances(session, samples, min(most, table.USEFUL))
        moving = [c for c in samples.candidates if not rewrite.symbols([c]) <= ends]
        for some in ([c for c in moving if c.op == "eq"], moving):
            for distance in likely:
                known = list(dict.fromkeys([*some, distance.candidate, distance.relation]))
                for bound in (distance.bound - 1, distance.bound):  # exclusive, inclusive
                    if bound < reached:
                        continue
                    left, inductive = houdini(session, model, known, at_most(bound))
                    found = InductiveBound(bound, tuple(left))
                    if inductive and (proved := prove_by(session, found)):
                        return replace(proved, final=not _may_be_less(samples, bound))
        return None


def _may_be_less(samples: Samples, bound: int) -> bool:
    """Whether runs are cut off and a constant of the model may be a lower bound."""
    executions = samples.reached
    return executions >= table.RUN_STEPS and any(
        executions < n < bound - 1 for n in likely_bounds(samples.model, samples.runs)
    )


@dataclass(frozen=True, slots=True)
class EndDistance:
    """``factor * executions + offset <= term`` in all runs; ``term <= most`` in initial states."""

    candidate: Term
    term: Term
    factor: int
    offset: int
    most: int

    @property
    def bound(self) -> int:
        """Executions."""
        return (self.most - self.offset) // self.factor

    @property
    def relation(self) -> Term:
        """The upper limit of the term, as a relation."""
        return ule(self.term, const(self.most, self.term.width))


def end_distances(session: SolverSession, samples: Samples, most: int) -> list[EndDistance]:
    """The distances with a bound from the longest run to ``most``, the least bound first.

    Raises as ``SolverSession.check``.
    """
    model, executions = samples.model, samples.reached
    ends = list(_between_ends(samples))
    least: dict[Term, int] = {}
    limits: dict[Term, int] = {}
    for _, factor, offset, term in ends:
        least[term] = max(least.get(term, 0), executions * factor + offset)
        limits[term] = max(limits.get(term, 0), (most + 1) * factor + offset - 1)
    known: dict[Term, int] = {}
    for term, limit in limits.items():
        near = samples.furthest.get(term, limit + 1)
        if near <= limit or _further(session, model, term, limit) is None:
            low, high = max(0, least[term]), min(near, limit)
            known[term] = _most(session, model, term, max(low, _related_bound(term, known)), high)
    found: dict[int, EndDistance] = {}
    for candidate, factor, offset, term in ends:
        if (furthest := known.get(term)) is not None:
            distance = EndDistance(candidate, term, factor, offset, furthest)
            found.setdefault(distance.bound, distance)
    return [found[bound] for bound in sorted(found) if executions <= bound <= most]


def longer_runs(session: SolverSession, samples: Samples) -> list[ModelRun]:
    """Runs from initial states whose ends are further apart than known runs reach.

    Updates ``furthest`` of the samples. Raises as ``SolverSession.check``.
    """
    runs: list[ModelRun] = []
    model, executions, limits = samples.model, samples.reached, samples.furthest
    for _, factor, offset, term in _between_ends(samples):
        evaluate = compile_terms([term], list(model.parameters))
        reached = max(executions, longest(runs))
        low, limit = max(0, factor * reached + offset), table.USEFUL * factor + offset
        furthest, than = None, low
        while than < min(limit, limits.get(term, mask(term.width))):
            start = _further(session, model, term, than)
            if start is None:
                limits[term] = than
            else:
                furthest, low = start, int(evaluate(start)[0])
            high = limits.get(term, 2 * low)
            if furthest is None or high - low <= low // table.NEARLY:
                break
            than = high if term not in limits else _round(low, high)
        runs += runs_from(model, furthest) if furthest is not None else []
    return runs


def _between_ends(samples: Samples) -> Iterator[tuple[Term, int, int, Term]]:
    """The candidates ``s * executions + b <= D`` with one of the first D, each with s, b and D."""
    found = list(_all_between_ends(samples))
    terms = set(islice(dict.fromkeys(term for *_, term in found), table.DISTANCE_TERMS))
    return (candidate for candidate in found if candidate[-1] in terms)


def _all_between_ends(samples: Samples) -> Iterator[tuple[Term, int, int, Term]]:
    parameters = set(samples.model.parameters)
    for candidate in samples.candidates:
        if candidate.op != "not" or candidate.args[0].op != "ult":
            continue
        term, count = candidate.args[0].args
        factor, offset = _of_count(count)
        unknown = rewrite.symbols([term])
        if 0 < factor < table.USEFUL and unknown and unknown <= parameters:
            yield candidate, factor, offset, term


def _of_count(term: Term) -> tuple[int, int]:
    """s and b of ``s * executions + b``; 0 and 0 for any other term."""
    if term is COUNT:
        return 1, 0
    if term.op == "linear" and term.args == (COUNT,):
        return term.factors[0], signed(term.value, COUNT_WIDTH)
    return 0, 0


def _related_bound(term: Term, known: Mapping[Term, int]) -> int:
    """The maximum of a term, by a known term at a constant distance; 0 if there is none."""
    for other, most in known.items():
        apart = sub(term, other).constant if other.width == term.width else None
        if apart is not None:
            return most + signed(apart, term.width)
    return 0


def _most(session: SolverSession, model: LoopModel, term: Term, low: int, high: int) -> int:
    """The maximum of ``term`` in initial states, from ``low`` to ``high``.

    ``low`` is tried first, as known runs may start at the maximum.
    """
    evaluate = compile_terms([term], list(model.parameters))
    middle = low
    while low < high:
        start = _further(session, model, term, middle)
        low, high = (low, middle) if start is None else (int(evaluate(start)[0]), high)
        middle = _round(low, high)
    return high


def _round(low: int, high: int) -> int:
    """The number from ``low`` to below ``high`` with most trailing zeros: the fastest queries."""
    if low + 1 >= high:
        return low
    apart = (low ^ high - 1).bit_length() - 1
    return (high - 1) >> apart << apart


def _further(
    session: SolverSession, model: LoopModel, term: Term, than: int
) -> tuple[int, ...] | None:
    """Parameters of an initial state with ``term`` above ``than``; None if there is none."""
    if than >= mask(term.width):
        return None
    claim = ule(term, const(max(than, 0), term.width))
    [result] = session.check([("near", claim)], [InvariantQuery("near", depth=0)])
    if result.verdict is InvariantVerdict.EXPIRED:
        raise OutOfTime
    if result.verdict is not InvariantVerdict.FALSE:
        return None
    return tuple(result.trace[0][p.name] for p in model.parameters)
