"""Houdini: drop candidate invariants until the others are inductive (Flanagan and Leino, 2001).

A candidate is never assumed: the checker proves it as a conjunct of the invariant. A dropped
candidate only costs precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from loopbounds.budgets import table
from loopbounds.reduction.coarsen import easy
from loopbounds.sampling.candidates import holding
from loopbounds.sampling.runs import runs_near
from loopbounds.sampling.samples import with_one_condition
from loopbounds.strategies.session import OutOfTime, SolverSession
from loopbounds.strategies.strategy import (
    InductiveBound,
    ProofTask,
    ProvedBound,
    conjunction,
    prove_by,
)
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.model import COUNT, LoopModel, at_most
from loopbounds.transition.query import InvariantQuery, InvariantVerdict, State

__all__ = ["EquationsAtLongestRun", "HoudiniAtLongestRun", "houdini", "without_progress"]


@dataclass(frozen=True, slots=True)
class HoudiniAtLongestRun:
    """The bound that the longest run reaches, the least possible one, which holds for most loops.

    It is tried first with one condition to repeat, and with equations alone.
    """

    name = "Houdini at the longest run"

    def applies(self, task: ProofTask) -> bool:
        """Unless runs are long, or bounded model checking has already found the bound."""
        return not (task.known.is_large or task.is_short)

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``; stores the remaining candidates of the full model in the task."""
        session, samples = task.session, task.known
        with suppress(OutOfTime):
            for some in (*with_one_condition(samples), samples):
                session.turn_to(some.model)
                for candidates in filter(None, (_equations(some.candidates), some.candidates)):
                    goal = at_most(some.reached)
                    left, inductive = houdini(session, some.model, candidates, goal)
                    found = InductiveBound(some.reached, tuple(left))
                    if inductive and (proved := prove_by(session, found)):
                        return proved
                    if some is samples and candidates is some.candidates:
                        task.remaining = left
        return None


@dataclass(frozen=True, slots=True)
class EquationsAtLongestRun:
    """The bound that the longest run of a long loop reaches, by the candidates that check fastest.

    It has a budget of its own, without the query that another strategy has spent on the first run.
    """

    name = "Houdini on equations"

    def applies(self, task: ProofTask) -> bool:
        """For long loops whose runs are complete."""
        return table.FAR_RUN <= task.reached < table.RUN_STEPS

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``."""
        steps = max(1, task.budget.steps // table.ABSTRACT_SHARE)
        budget = replace(task.budget, steps=steps, queries=task.budget.queries - 1)
        samples = task.known
        session = SolverSession(samples.model, budget, task.checker)
        candidates = without_progress(samples.candidates)
        left, inductive = houdini(session, samples.model, candidates, at_most(samples.reached))
        return (
            prove_by(session, InductiveBound(samples.reached, tuple(left))) if inductive else None
        )


def houdini(
    session: SolverSession, model: LoopModel, candidates: Sequence[Term], goal: Term
) -> tuple[list[Term], bool]:
    """The remaining candidates, and whether they are inductive together with ``goal``.

    Candidates are dropped until they are inductive, or only the goal fails.
    """
    candidates = list(candidates)
    while True:
        whole = terms.both(conjunction(candidates), goal)
        query = InvariantQuery("all", depth=table.INDUCTION_DEPTH)
        [result] = session.check([("all", whole)], [query])
        if result.verdict is InvariantVerdict.TRUE:
            return candidates, True
        if result.verdict is InvariantVerdict.EXPIRED:
            left = [c for c in candidates if easy(c)]
        else:
            left = _surviving(model, candidates, result.trace)
        if result.verdict is InvariantVerdict.FALSE:
            start = tuple(result.trace[0][p.name] for p in model.parameters)
            left = holding(model, left, runs_near(model, start))
        if len(left) == len(candidates):
            return candidates, False
        candidates = left


def _surviving(model: LoopModel, candidates: list[Term], trace: Sequence[State]) -> list[Term]:
    """The candidates that hold in the last state of a trace."""
    if not candidates or not trace:
        return candidates
    order = [*model.parameters, *(v.symbol for v in model.state), COUNT]
    values = compile_terms(candidates, order)([trace[-1][s.name] for s in order])
    return [c for c, holds in zip(candidates, values, strict=True) if holds]


def _equations(candidates: Sequence[Term]) -> list[Term]:
    """The equations among the candidates: they suffice to bound a counter, and check fast.

    Empty if none of them contains the number of executions.
    """
    found = [c for c in candidates if c.op == "eq"]
    return found if COUNT in rewrite.symbols(found) else []


def without_progress(candidates: Sequence[Term]) -> list[Term]:
    """The equations, and the candidates without the number of executions.

    These often suffice for long loops, where the other candidates take long to check.
    """
    return [c for c in candidates if c.op == "eq" or COUNT not in rewrite.symbols([c])]
