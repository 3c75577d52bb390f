"""The interface of a proof strategy, and the task that all strategies of a model share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Protocol

from loopbounds.budgets import table
from loopbounds.budgets.budget import Budget
from loopbounds.sampling.samples import Samples
from loopbounds.strategies.session import SolverSession
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel, at_most

__all__ = ["InductiveBound", "ProofTask", "ProvedBound", "Strategy", "conjunction", "prove_by"]


@dataclass(frozen=True, slots=True)
class InductiveBound:
    """``relations and count <= bound``: inductive over ``depth`` states, by the search."""

    bound: int
    relations: tuple[Term, ...]
    depth: int = table.INDUCTION_DEPTH

    @property
    def claim(self) -> Term:
        """The invariant to be proved."""
        return terms.both(conjunction(self.relations), at_most(self.bound))


@dataclass(frozen=True, slots=True)
class ProvedBound:
    """A bound that the checker has proved, with its relations and the SMV text of the proof."""

    bound: int
    relations: tuple[Term, ...]
    text: str
    by: str  # name of the checker
    final: bool = True  # False: later strategies may find a lower bound


class Strategy(Protocol):
    """A method to find a bound. The first strategy in order that applies and succeeds proves it."""

    @property
    def name(self) -> str:
        """The method's name in the literature."""

    def applies(self, task: ProofTask) -> bool:
        """Whether to try it, given the samples and results so far."""

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """A proved bound; None if it finds none. Raises OutOfTime and SolverFailed."""


@dataclass(eq=False)
class ProofTask:
    """One model to be bounded, with the strategies' shared knowledge and budgets.

    ``most``: no larger bound is proved by distance. ``samples``: None until runs are sampled, and
    if there is no initial state (``empty``). ``attained``: executions of a run known in closed
    form. ``too_long``: it has more executions than any bound to prove.
    ``no_third``: the bound 2, if bounded model checking finds no third execution. ``remaining``:
    the candidates of the full model that Houdini retained; None before.
    """

    model: LoopModel
    budget: Budget
    checker: Checker
    most: int = table.HUGE
    samples: Samples | None = None
    no_third: InductiveBound | None = None
    remaining: list[Term] | None = None
    best: ProvedBound | None = None
    attained: int = 1
    too_long: bool = False
    empty: bool = False
    session: SolverSession = field(init=False)  # shared by most strategies, with one budget

    def __post_init__(self) -> None:
        self.session = SolverSession(self.model, self.budget, self.checker)

    @cached_property
    def distance_session(self) -> SolverSession:
        """The session for distances: many small queries, and one large proof."""
        queries = max(self.budget.queries, table.DISTANCE_QUERIES)
        steps = max(self.budget.steps, table.DISTANCE_STEPS)
        each = self.budget.limits.steps
        share = table.DISTANCE_STEPS // table.DISTANCE_QUERY_SHARE
        limits = replace(self.budget.limits, steps=replace(each, steps=min(each.steps, share)))
        budget = replace(self.budget, queries=queries, steps=steps, limits=limits)
        return SolverSession(self.model, budget, self.checker)

    @property
    def known(self) -> Samples:
        """The samples; only the first strategy runs without them."""
        assert self.samples is not None
        return self.samples

    @property
    def reached(self) -> int:
        """The executions of the longest run found: no bound is lower."""
        return max(self.attained, 1 if self.samples is None else self.samples.reached)

    @property
    def is_short(self) -> bool:
        """Whether a run has two executions, and bounded model checking finds no third one."""
        return self.no_third is not None and self.reached == table.TWO_EXECUTIONS

    @property
    def is_long(self) -> bool:
        """Whether runs are cut off (``RUN_STEPS``)."""
        return self.reached >= table.RUN_STEPS

    @property
    def is_settled(self) -> bool:
        """Whether no other strategy needs to be tried."""
        endless = self.samples is not None and self.samples.is_endless
        if self.empty or self.too_long or endless:
            return True
        if self.best is not None and self.best.bound == self.attained:
            return True
        return self.best is not None and self.best.bound <= table.USEFUL and self.best.final

    def take(self, found: ProvedBound | None) -> None:
        """Store a result if its bound is the lowest so far."""
        if found is not None and (self.best is None or found.bound < self.best.bound):
            self.best = found


def prove_by(session: SolverSession, found: InductiveBound) -> ProvedBound | None:
    """The proved bound; None: the limits do not suffice. Raises as ``SolverSession.proves``."""
    if not session.proves(found.claim, found.depth):
        return None
    return ProvedBound(found.bound, found.relations, session.text, session.by)


def conjunction(parts: Sequence[Term]) -> Term:
    """The conjunction of ``parts``."""
    return reduce(terms.both, parts, terms.TRUE)
