"""Loops that go from one unknown end to another: the largest distance between the two.

A candidate ``s * executions + b <= D``, with D over parameters alone, bounds the executions by the
most that D can be where the loop is entered. To find that, only initial states are asked about, and
no iteration. That is easy even where the two ends are made of masks, shifts and choices. It is then
one more relation, ``D <= most``, of which the induction does not see what D is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from loopbounds.proof.runs import ModelRun, longest, runs_from
from loopbounds.proof.session import OutOfTime, SolverSession
from loopbounds.terms import rewrite
from loopbounds.terms.arithmetic import signed
from loopbounds.terms.bit_vectors import Term, const, mask, sub, ule
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantVerdict

__all__ = ["USEFUL", "Distance", "distances", "longer_runs"]

USEFUL = 1 << 22  # executions, a thousandth of what a word counts to: above, a bound says nothing
TRIED = 6  # terms
NEARLY = 8  # this part more than what is known is not looked for


@dataclass(frozen=True, slots=True)
class Distance:
    """``factor * executions + offset <= term`` in all that was seen, and ``term <= most``."""

    guess: Term
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
        """What is known of the term."""
        return ule(self.term, const(self.most, self.term.width))


def distances(
    session: SolverSession,
    model: LoopModel,
    guesses: Sequence[Term],
    executions: int,
    most: int,
    nearest: Mapping[Term, int],
) -> list[Distance]:
    """The distances with a bound up to ``most``, the least bound first.

    ``executions`` are known of a run: no distance is less than that takes. ``nearest``: as in
    ``longer_runs``. Raises as ``SolverSession.check``.
    """
    ends = list(_between_ends(model, guesses))
    least: dict[Term, int] = {}
    limits: dict[Term, int] = {}
    for _, factor, offset, term in ends:
        least[term] = max(least.get(term, 0), executions * factor + offset)
        limits[term] = max(limits.get(term, 0), (most + 1) * factor + offset - 1)
    known: dict[Term, int] = {}
    for term, limit in limits.items():
        near = nearest.get(term, limit + 1)
        if near <= limit or _further(session, model, term, limit) is None:
            low, high = max(0, least[term]), min(near, limit)
            known[term] = _most(session, model, term, max(low, _beside(term, known)), high)
    found: dict[int, Distance] = {}
    for guess, factor, offset, term in ends:
        if (furthest := known.get(term)) is not None:
            distance = Distance(guess, term, factor, offset, furthest)
            found.setdefault(distance.bound, distance)
    return [found[bound] for bound in sorted(found) if executions <= bound <= most]


def longer_runs(
    session: SolverSession,
    model: LoopModel,
    guesses: Sequence[Term],
    executions: int,
    nearest: dict[Term, int],
) -> list[ModelRun]:
    """Runs from where an end is further away than ``executions`` come, which may be longer.

    ``nearest``: terms, and what they are at most, as far as it is known; more is added.
    """
    runs: list[ModelRun] = []
    for _, factor, offset, term in _between_ends(model, guesses):
        evaluate = compile_terms([term], list(model.parameters))
        reached = max(executions, longest(runs))
        low, limit = max(0, factor * reached + offset), USEFUL * factor + offset
        furthest, than = None, low
        while than < min(limit, nearest.get(term, mask(term.width))):
            start = _further(session, model, term, than)
            if start is None:
                nearest[term] = than
            else:
                furthest, low = start, int(evaluate(start)[0])
            high = nearest.get(term, 2 * low)
            if furthest is None or high - low <= low // NEARLY:
                break
            than = high if term not in nearest else _round(low, high)
        runs += runs_from(model, furthest) if furthest is not None else []
    return runs


def _between_ends(
    model: LoopModel, guesses: Sequence[Term]
) -> Iterator[tuple[Term, int, int, Term]]:
    """The guesses of that form about the first terms, each with its s, b and D."""
    found = list(_all_between_ends(model, guesses))
    terms = set(islice(dict.fromkeys(term for *_, term in found), TRIED))
    return (guess for guess in found if guess[-1] in terms)


def _all_between_ends(
    model: LoopModel, guesses: Sequence[Term]
) -> Iterator[tuple[Term, int, int, Term]]:
    parameters = set(model.parameters)
    for guess in guesses:
        if guess.op != "not" or guess.args[0].op != "ult":
            continue
        term, count = guess.args[0].args
        factor, offset = _of_count(count)
        unknown = rewrite.symbols([term])
        if 0 < factor < USEFUL and unknown and unknown <= parameters:
            yield guess, factor, offset, term


def _of_count(term: Term) -> tuple[int, int]:
    """s and b of ``s * executions + b``; 0 and 0 of another term."""
    if term is COUNT:
        return 1, 0
    if term.op == "linear" and term.args == (COUNT,):
        return term.factors[0], signed(term.value, COUNT_WIDTH)
    return 0, 0


def _beside(term: Term, known: Mapping[Term, int]) -> int:
    """What a term comes to that is a constant away from one of those known; 0 if none is."""
    for other, most in known.items():
        apart = sub(term, other).constant if other.width == term.width else None
        if apart is not None:
            return most + signed(apart, term.width)
    return 0


def _most(session: SolverSession, model: LoopModel, term: Term, low: int, high: int) -> int:
    """The largest word that ``term`` can be in an initial state, from ``low`` to ``high``.

    ``low`` is asked about first: runs from the furthest start may be known.
    """
    evaluate = compile_terms([term], list(model.parameters))
    middle = low
    while low < high:
        start = _further(session, model, term, middle)
        low, high = (low, middle) if start is None else (int(evaluate(start)[0]), high)
        middle = _round(low, high)
    return high


def _round(low: int, high: int) -> int:
    """From ``low`` to below ``high`` the most even: what is asked of that is soon answered."""
    if low + 1 >= high:
        return low
    apart = (low ^ high - 1).bit_length() - 1
    return (high - 1) >> apart << apart


def _further(
    session: SolverSession, model: LoopModel, term: Term, than: int
) -> tuple[int, ...] | None:
    """Parameters of an initial state where ``term`` is more than that; None if there is none."""
    if than >= mask(term.width):
        return None
    claim = ule(term, const(max(than, 0), term.width))
    [answer] = session.check([("near", claim)], [InvariantQuery("near", depth=0)])
    if answer.verdict is InvariantVerdict.EXPIRED:
        raise OutOfTime
    if answer.verdict is not InvariantVerdict.FALSE:
        return None
    return tuple(answer.trace[0][p.name] for p in model.parameters)
