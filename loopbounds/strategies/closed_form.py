"""Loops that move one word by a constant until it is equal to an end: their length in closed form.

    x = first; while (x != end) x += step;        executions = (end - first) / step + 1

First and end are terms over parameters. The distance ``end - first`` is a term whose maximum in
initial states is the bound, so that queries concern initial states alone, and no run is sampled: a
range of addresses that is cleaned line by line, say. If the distance may be longer than any bound
to prove, the model has a run of that length, and no other strategy finds a bound either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loopbounds.budgets import table
from loopbounds.strategies.session import OutOfTime, SolverSession
from loopbounds.strategies.strategy import InductiveBound, ProofTask, ProvedBound, prove_by
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, Term, const, eq, mask, operation, sub, sym, ule
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel, StateVariable
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from loopbounds.transition.stepper import ModelStepper

__all__ = ["ClosedForm", "MovingWord", "moving_word"]


FIRST, DISTANCE = sym("first", COUNT_WIDTH), sym("distance", COUNT_WIDTH)


@dataclass(frozen=True, slots=True)
class MovingWord:
    """The only word of a model, which moves from ``first`` to ``end``, terms over parameters.

    ``change``: of each iteration, a power of two up or down, modulo 2**32.
    """

    symbol: Term
    first: Term
    end: Term
    change: int

    @property
    def step(self) -> int:
        """The amount of the change."""
        return -self.change & mask(COUNT_WIDTH) if self.down else self.change

    @property
    def down(self) -> bool:
        """Whether the word gets smaller."""
        return bool(self.change >> COUNT_WIDTH - 1)

    @property
    def distance(self) -> Term:
        """From the first word to the end, in the direction of the change."""
        return sub(self.first, self.end) if self.down else sub(self.end, self.first)

    @property
    def divides(self) -> Term:
        """The steps meet the end."""
        left = operation("and", self.distance, const(self.step - 1, COUNT_WIDTH))
        return eq(left, const(0, COUNT_WIDTH))

    def within(self, steps: int) -> Term:
        """The end is at most ``steps`` steps away."""
        return ule(self.distance, const(steps * self.step, COUNT_WIDTH))

    def named(self, model: LoopModel) -> tuple[LoopModel, MovingWord]:
        """The model with symbols for the first word and the distance, and its word.

        It has the same runs: its constraints define the symbols. An induction step then has no term
        of the ends, and the first word cancels out.
        """
        end = sub(FIRST, DISTANCE) if self.down else terms.add(FIRST, DISTANCE)
        named = replace(self, first=FIRST, end=end)
        following = terms.add(self.symbol, const(self.change, COUNT_WIDTH))
        changed = replace(
            model,
            parameters=(*model.parameters, FIRST, DISTANCE),
            state=(StateVariable(self.symbol, FIRST, following),),
            constraints=(*model.constraints, eq(FIRST, self.first), eq(DISTANCE, self.distance)),
            again=terms.negate(eq(self.symbol, end)),
        )
        return changed, named

    def relations(self, steps: int) -> tuple[Term, ...]:
        """The relations that bound the executions by ``steps + 1``, inductively.

        No sum wraps: ``steps + 1`` steps are less than 2**32.
        """
        passed = sub(COUNT, const(1, COUNT_WIDTH))
        moved = terms.add(self.first, terms.scale(passed, self.change))
        far = ule(terms.scale(passed, self.step), self.distance)
        return eq(self.symbol, moved), far, self.within(steps), self.divides


def moving_word(model: LoopModel) -> MovingWord | None:
    """The word of a model that moves by a power of two until it is equal to its end, if it does."""
    if len(model.state) != 1 or model.inputs or model.again.op != "not":
        return None
    [word], compared = model.state, model.again.args[0]
    symbol = word.symbol
    change = sub(word.next, symbol).constant if symbol.width == COUNT_WIDTH else None
    if not change or compared.op != "eq" or compared.args[0].width != COUNT_WIDTH:
        return None
    past = sub(*compared.args)  # the word less its end, or the other way
    if symbol in rewrite.symbols([sub(past, symbol)]):
        past = terms.neg(past)
    end = sub(symbol, past)
    if symbol in rewrite.symbols([end]) or {FIRST, DISTANCE} & {*model.parameters}:
        return None
    found = MovingWord(symbol, word.initial, end, change)
    return None if found.step & (found.step - 1) else found


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
        model, word = word.named(task.model)
        session = task.distance_session
        session.turn_to(model)
        search = _Search(session, model, word)
        least = search.first()
        if least is None or not search.always(word.divides):
            return None
        most = min(task.most, table.HUGE, mask(COUNT_WIDTH) // word.step) - 1
        further = search.beyond(most)
        if further is not None:
            task.too_long, task.attained = True, min(further + 1, table.RUN_STEPS)
            return None
        steps = search.most(least, most)
        found = InductiveBound(steps + 1, word.relations(steps))
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

        Its number of bits is found first. Sizes are powers of two, so that the last step is often
        the largest number of so many bits.
        """
        while low.bit_length() < high.bit_length():
            middle = (1 << (low.bit_length() + high.bit_length()) // 2) - 1
            further = self.beyond(middle)
            low, high = (low, middle) if further is None else (further, high)
        near = True
        while low < high:
            middle = high - 1 if near else (low + high) // 2
            further = self.beyond(middle)
            low, high = (low, middle) if further is None else (further, high)
            near = further is not None and not near
        return high

    def always(self, claim: Term) -> bool:
        """Whether ``claim`` holds in initial states."""
        return self._violating(claim) is None

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
