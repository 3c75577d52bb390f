"""Loops that move one word by a constant until it is equal to an end: their length in closed form.

    x = first; while (x != end) x += step;        executions = (end - first) / step + 1

First and end are terms over parameters. The distance ``end - first`` is a term whose maximum in
initial states is the bound, so that queries concern initial states alone, and no run is sampled: a
range of addresses that is cleaned line by line, say. If the distance may be longer than any bound
to prove, the model has a run of that length, and no other strategy finds a bound either.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopbounds.budgets import table
from loopbounds.strategies.session import OutOfTime, SolverSession
from loopbounds.strategies.strategy import InductiveBound, ProofTask, ProvedBound, prove_by
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, Term, const, eq, mask, operation, sub, ule
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from loopbounds.transition.stepper import ModelStepper

__all__ = ["ClosedForm", "MovingWord", "moving_word"]


@dataclass(frozen=True, slots=True)
class MovingWord:
    """The only word of a model; ``distance`` from its initial value to the end, over parameters.

    ``step``: the change in each iteration, towards the end. ``moved``: the word after ``COUNT``
    executions.
    """

    distance: Term
    step: int
    moved: Term

    @property
    def divides(self) -> Term:
        """The steps meet the end."""
        left = operation("and", self.distance, const(self.step - 1, COUNT_WIDTH))
        return eq(left, const(0, COUNT_WIDTH))

    def within(self, steps: int) -> Term:
        """The end is at most ``steps`` steps away."""
        return ule(self.distance, const(steps * self.step, COUNT_WIDTH))

    def relations(self, model: LoopModel, steps: int) -> tuple[Term, ...]:
        """The relations that bound the executions by ``steps + 1``, inductively."""
        passed = terms.scale(sub(COUNT, const(1, COUNT_WIDTH)), self.step)
        where = eq(model.state[0].symbol, self.moved)
        return where, ule(passed, self.distance), self.within(steps), self.divides


def moving_word(model: LoopModel) -> MovingWord | None:
    """The word of a model that moves by a power of two until it is equal to its end, if it does."""
    if len(model.state) != 1 or model.inputs or model.again.op != "not":
        return None
    [word], compared = model.state, model.again.args[0]
    symbol = word.symbol
    change = sub(word.next, symbol).constant if symbol.width == COUNT_WIDTH else None
    if not change or compared.op != "eq" or compared.args[0].width != COUNT_WIDTH:
        return None
    down = change >> COUNT_WIDTH - 1
    step = -change & mask(COUNT_WIDTH) if down else change
    if step & (step - 1):
        return None
    past = sub(*compared.args)  # the word less its end
    if symbol in rewrite.symbols([sub(past, symbol)]):
        past = terms.neg(past)
    if symbol in rewrite.symbols([sub(past, symbol)]):
        return None
    ahead = past if down else terms.neg(past)
    passed = terms.scale(sub(COUNT, const(1, COUNT_WIDTH)), change)
    return MovingWord(
        rewrite.substitute(ahead, {symbol: word.initial}), step, terms.add(word.initial, passed)
    )


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The longest distance of the word from its end, in steps, proved by induction."""

    name = "closed form of a linear loop"

    def applies(self, task: ProofTask) -> bool:
        """To a model of one word that moves to its end."""
        return moving_word(task.model) is not None

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``; tells the task if the model has runs longer than any bound to prove."""
        word = moving_word(task.model)
        assert word is not None
        search = _Search(task.distance_session, task.model, word)
        least = search.first()
        if least is None or not search.always(word.divides):
            return None
        most = min(task.most, table.HUGE, mask(COUNT_WIDTH) // word.step) - 1
        further = search.beyond(most)
        if further is not None:
            task.too_long, task.attained = True, min(further + 1, table.RUN_STEPS)
            return None
        steps = search.most(least, most)
        found = InductiveBound(steps + 1, word.relations(task.model, steps))
        if not search.always(found.claim, table.INDUCTION_DEPTH):
            return None
        task.attained = steps + 1
        return prove_by(search.session, found)


class _Search:
    """Queries about the distance of a moving word, in steps, in initial states."""

    def __init__(self, session: SolverSession, model: LoopModel, word: MovingWord) -> None:
        self.session, self._model, self._word = session, model, word
        self._distance = compile_terms([word.distance], list(model.parameters))
        self._stepper = ModelStepper(model)

    def first(self) -> int | None:
        """The distance in some initial state; None if there is none."""
        return self._violating(FALSE)

    def beyond(self, steps: int) -> int | None:
        """A distance of more than ``steps`` in an initial state; None if there is none."""
        return self._violating(self._word.within(steps))

    def most(self, low: int, high: int) -> int:
        """The largest distance, from ``low``, which some state has, to ``high``.

        Sizes are powers of two, so that the last step is often just before one.
        """
        near = False
        while low < high:
            middle = high - 1 if near and high - low > 1 else _halved(low, high)
            further = self.beyond(middle)
            low, high = (low, middle) if further is None else (further, high)
            near = further is not None and not near
        return high

    def always(self, claim: Term, depth: int = 0) -> bool:
        """Whether ``claim`` holds in initial states, or in all states by induction of ``depth``."""
        [result] = self.session.check([("claim", claim)], [InvariantQuery("claim", depth)])
        if depth:
            return result.verdict is InvariantVerdict.TRUE
        return self._of(result.verdict) is False

    def _violating(self, claim: Term) -> int | None:
        """The distance in an initial state that violates ``claim``; None if there is none."""
        [result] = self.session.check([("claim", claim)], [InvariantQuery("claim", depth=0)])
        if not self._of(result.verdict):
            return None
        parameters = [result.trace[0][p.name] for p in self._model.parameters]
        if self._stepper.start(parameters) is None:
            raise OutOfTime  # no state of the model: nothing follows
        return int(self._distance(parameters)[0]) // self._word.step

    @staticmethod
    def _of(verdict: InvariantVerdict) -> bool:
        """Whether a claim is violated. Raises OutOfTime if that is not known."""
        if verdict is InvariantVerdict.EXPIRED:
            raise OutOfTime
        return verdict is InvariantVerdict.FALSE


def _halved(low: int, high: int) -> int:
    """The number from ``low`` to below ``high`` that is one less than the roundest number."""
    apart = (low + 1 ^ high).bit_length() - 1
    return (high >> apart << apart) - 1 if apart >= 0 else low
