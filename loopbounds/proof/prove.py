"""Find and prove the largest number of header executions of a model (rules 18, 19, 22).

    1. INIT is shown satisfiable: a model with no initial state satisfies everything.
    2. Runs give a lower bound on any bound, and candidate invariants. One that comes back to where
       it was shows that there is no bound.
    3. Candidates that are not inductive are weeded out by NuSMV's own failed induction steps.
    4. ``candidates and count <= n`` is proved by k-induction, for the smallest n found.

A candidate is never assumed: it is a conjunct of what step 4 proves. What weeding drops costs
precision only. So a result depends on NuSMV's "is true" for one property and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from loopbounds.nusmv import query as nusmv
from loopbounds.nusmv.model import COUNT, LoopModel, at_most
from loopbounds.nusmv.printing import IllTyped
from loopbounds.nusmv.query import Algorithm, Check, CheckAnswer, CheckVerdict, Limits, State
from loopbounds.proof.candidates import candidates, holding, likely_bounds
from loopbounds.proof.climb import Choice, climb
from loopbounds.proof.options import Budget
from loopbounds.proof.runs import MAX_STEPS, ModelRun, explore, longest, runs_near
from loopbounds.reduction.canonical import canonical
from loopbounds.reduction.coarsen import coarsen, easy, without_large
from loopbounds.reduction.simplify import influential, simplified
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, Term
from loopbounds.terms.evaluate import compile_terms

__all__ = [
    "Budget",
    "OutOfTime",
    "ProofOutcome",
    "Question",
    "Session",
    "SolverFailed",
    "long_runs",
    "prove",
    "prove_simple",
    "weed",
]

TWICE = 2  # executions, of which the first query asks
HUGE = 1 << 30  # a bound no proof is expected for; candidates may rely on it
BEST = 3  # runs from which longer ones are looked for
LOOSE = 16  # times the longest run found: a bound above may be due to what a model leaves out
LOWERING = 8  # a lower bound than the one proved is worth this part of the queries,
LOWERING_SECONDS = 3  # and this part of the seconds
NEAR = 3  # likely bounds asked first, besides the one after the longest run
FRAMES = (1, 4)  # induction depths, in the order they are tried


@dataclass(frozen=True, slots=True)
class ProofOutcome:
    """``bound`` proved, or None and why. ``reached``: executions of the longest run found.

    Where the solver failed there may be a bound all the same: what was asked for was a lower one.
    """

    bound: int | None
    reached: int
    invariants: tuple[Term, ...]
    relations: int  # how many invariants
    failed: str  # what the solver failed with; "" when it answered or ran out of time: not final
    model: str  # SMV text of the proof
    seconds: float  # by the clock
    endless: bool = False  # the model has a run that never ends: no bound follows from it

    @property
    def tight(self) -> bool:
        """Whether a run of the model reaches the bound."""
        return self.bound == self.reached

    def without_terms(self) -> ProofOutcome:
        """What may leave this process."""
        return replace(self, invariants=())


class SolverFailed(Exception):
    """NuSMV gave no answer that can be believed."""


class _Empty(Exception):
    """The model was not shown to have an initial state, so nothing follows from it."""


class OutOfTime(Exception):
    """The budget of this loop is spent."""


class Session:
    """One loop's queries, under one budget."""

    def __init__(self, model: LoopModel, budget: Budget, solver: Path) -> None:
        self.model, self._budget, self._solver = model, budget, solver
        self._start, self._asked = _processor_seconds(), 0
        self.text = ""

    def ask(
        self, properties: Sequence[tuple[str, Term]], checks: Sequence[Check]
    ) -> list[CheckAnswer]:
        """Answers that did not fail. Raises SolverFailed or OutOfTime otherwise."""
        left = self._budget.seconds - int(_processor_seconds() - self._start)
        if left <= 0 or self._asked == self._budget.queries:
            raise OutOfTime
        self._asked += 1
        query = self._budget.query
        limits = Limits(min(query.seconds, left), query.memory)
        try:
            self.text = self.model.smv(properties)
        except IllTyped as fault:
            raise SolverFailed(f"the model cannot be said: {fault}") from fault
        answers = list(nusmv.ask(self.text, checks, limits, self._solver))
        for answer in answers:
            if answer.verdict is CheckVerdict.FAILED:
                raise SolverFailed(answer.reason)
        return answers


def _processor_seconds() -> float:
    """Processor time of this process and of the children it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def prove(model: LoopModel, budget: Budget, solver: Path) -> ProofOutcome:
    """The smallest bound that is proved, for a simpler model where that suffices.

    Never raises for what the solver does.
    """
    question = Question.about(model)
    outcome = prove_simple(question.simple, budget, solver)
    return question.lifted(outcome, budget, solver)


@dataclass(frozen=True, slots=True)
class Question:
    """How often one loop is repeated: asked of ``simple``, which has longer runs, at first."""

    simple: LoopModel
    whole: LoopModel
    exact: LoopModel  # whose runs show that a bound is reached

    @staticmethod
    def about(model: LoopModel) -> Question:
        """The question about the model of a slice."""
        model = simplified(model)
        return Question(canonical(coarsen(model)), canonical(without_large(model)), model)

    def lifted(self, outcome: ProofOutcome, budget: Budget, solver: Path) -> ProofOutcome:
        """The answer for the whole model, from the one for the simple model."""
        if outcome.failed or self.simple == canonical(self.exact):
            return outcome
        start = time.perf_counter()
        # with inputs no run shows that the bound is exact (rule 22)
        reached = 1 if self.exact.inputs else longest(long_runs(self.exact))
        known = outcome.reached if self.exact.inputs else reached
        outcome = replace(outcome, reached=reached)
        loose = outcome.bound is None or outcome.bound > LOOSE * known
        if loose and self.simple != self.whole:
            if outcome.bound is not None:
                seconds = max(1, budget.seconds // LOWERING_SECONDS)
                queries = max(1, budget.queries // LOWERING)
                budget = replace(budget, seconds=seconds, queries=queries)
            outcome = _lower(prove_simple(self.whole, budget, solver), outcome)
        return replace(outcome, seconds=outcome.seconds + time.perf_counter() - start)


def _lower(new: ProofOutcome, old: ProofOutcome) -> ProofOutcome:
    """Of two answers about one loop. A failure takes away what was asked for, a lower bound."""
    if old.bound is None:
        return new
    if new.failed:
        return replace(old, failed=new.failed)
    return old if (new.bound or HUGE) > old.bound else new


def long_runs(model: LoopModel, seeds: Sequence[tuple[int, ...]] = ()) -> list[ModelRun]:
    """Runs from many initial states, and longer ones near to them."""
    runs = explore(model, seeds)
    if model.inputs:
        return runs
    best = sorted(runs, key=lambda r: -r.executions)[:BEST]
    return [*runs, *climb(model, [Choice(r.parameters, ()) for r in best])]


def prove_simple(model: LoopModel, budget: Budget, solver: Path) -> ProofOutcome:
    """The smallest bound that is proved of ``model`` as it is.

    Never raises for what the solver does.
    """
    start = time.perf_counter()
    session = Session(model, budget, solver)
    reached = 1
    invariants: list[Term] = []
    bound, text, failed, endless = None, "", "", False
    try:
        seed, choices, twice = _first_run(session, model)
        runs = [seed, *climb(model, choices)]
        endless = any(run.endless for run in runs)
        if not endless:
            runs += long_runs(model, [seed.parameters])
            endless = any(run.endless for run in runs)
        reached = longest(runs)
        if twice and reached == TWICE:
            bound, text = TWICE, twice
        elif not endless:
            for session.model, seen in (*_deciding(model, runs), (model, runs)):
                guesses = candidates(session.model, seen)
                bound, invariants, text = _search(session, session.model, guesses, seen, twice)
                if bound is not None:
                    break
    except SolverFailed as failure:
        bound, failed = None, str(failure)
    except (OutOfTime, _Empty):
        bound = None
    seconds = time.perf_counter() - start
    relations = len(invariants)
    return ProofOutcome(
        bound, reached, tuple(invariants), relations, failed, text, seconds, endless=endless
    )


def _deciding(model: LoopModel, runs: list[ModelRun]) -> Iterator[tuple[LoopModel, list[ModelRun]]]:
    """The model with only one of its conditions to go on, if no longer runs are found with that.

    It has all runs of the model, and less to be known of them. One that reads inputs is no choice:
    that few runs of it are found says little.
    """
    parts = terms.conjuncts(model.again)
    for c in sorted(parts, key=rewrite.size) if len(parts) > 1 else ():
        part = influential(replace(model, again=c))
        if part.deterministic and 0 < len(part.state) < len(model.state):
            found = explore(part, [], longest(runs) + 1)
            if found and longest(found) == longest(runs):
                yield part, found
                return


def _first_run(session: Session, model: LoopModel) -> tuple[ModelRun, list[Choice], str]:
    """A short run found by the solver, three executions if there are any of that many.

    Also the choices made in it, from which longer runs may be found; and the model text, if it is
    proved that there are no more than two.

    Raises _Empty when no initial state is shown (rule 19: INIT satisfiable).
    """
    properties = [("never", FALSE), ("two", at_most(TWICE))]
    some, longer = session.ask(properties, [Check("never", depth=0), Check("two", depth=3)])
    if some.verdict is not CheckVerdict.FALSE or not some.trace:
        raise _Empty
    trace = longer.trace if longer.verdict is CheckVerdict.FALSE else some.trace
    parameters = tuple(trace[0][p.name] for p in model.parameters)
    run = ModelRun(
        parameters,
        tuple(tuple(at[v.symbol.name] for v in model.state) for at in trace),
        tuple(at[COUNT.name] for at in trace),
        trace[-1][COUNT.name],
        ended=False,
    )
    steps = [tuple(at.get(i.name, 0) for i in model.inputs) for at in trace[1:]]
    proof = session.text if longer.verdict is CheckVerdict.TRUE else ""
    return run, [Choice(parameters, inputs) for inputs in steps], proof


def _conjunction(parts: Sequence[Term]) -> Term:
    return reduce(terms.both, parts, terms.TRUE)


def _search(
    session: Session, model: LoopModel, guesses: list[Term], runs: list[ModelRun], twice: str
) -> tuple[int | None, list[Term], str]:
    """(bound, the candidates proved with it, the model text of the proof).

    ``twice``: of the proof that there are at most two executions, if there is one.
    """
    first = longest(runs)
    guesses, proved = weed(session, model, guesses, at_most(first))
    if proved:
        return first, guesses, session.text
    if twice:
        return TWICE, [], twice
    likely = [n for n in likely_bounds(model, runs) if first < n < HUGE]
    low = first + 2
    bound, text = _least_proved(session, guesses, [first + 1, *likely[:NEAR], HUGE])
    if bound is None:
        guesses, proved = weed(session, model, guesses, at_most(HUGE))
        low, bound, text = first, HUGE if proved else None, session.text if proved else ""
    return _narrow(session, guesses, likely, low, bound, text)


def _least_proved(
    session: Session, guesses: list[Term], tries: Sequence[int], depth: int = FRAMES[0]
) -> tuple[int | None, str]:
    """The least of ``tries`` that is proved to be a bound, with the model text of the proof."""
    facts = _conjunction(guesses)
    properties = [(f"at_{n}", terms.both(facts, at_most(n))) for n in sorted(set(tries))]
    answers = session.ask(properties, [Check(name, depth=depth) for name, _ in properties])
    for n, answer in zip(sorted(set(tries)), answers, strict=True):
        if answer.verdict is CheckVerdict.TRUE:
            return n, session.text
    return None, ""


def weed(
    session: Session, model: LoopModel, guesses: list[Term], goal: Term
) -> tuple[list[Term], bool]:
    """Drop candidates until the rest, with ``goal``, is inductive or only that fails.

    Returns what is left and whether all of it is proved.
    """
    guesses = list(guesses)
    while True:
        whole = terms.both(_conjunction(guesses), goal)
        checks = [Check("all", depth=FRAMES[0]), Check("step", Algorithm.STEP)]
        proof, step = session.ask([("all", whole), ("step", whole)], checks)
        if proof.verdict is CheckVerdict.TRUE:
            return guesses, True
        witness = proof if proof.verdict is CheckVerdict.FALSE else step
        if witness.verdict is CheckVerdict.EXPIRED:
            kept = [g for g in guesses if easy(g)]
        else:
            kept = _surviving(model, guesses, witness.trace)
        if witness.verdict is CheckVerdict.FALSE:
            start = tuple(witness.trace[0][p.name] for p in model.parameters)
            kept = holding(model, kept, runs_near(model, start))
        if len(kept) == len(guesses):
            return guesses, False
        guesses = kept


def _surviving(model: LoopModel, guesses: list[Term], trace: Sequence[State]) -> list[Term]:
    """The guesses that hold in every state of a trace but the first of a failed step."""
    order = [*model.parameters, *(v.symbol for v in model.state), COUNT]
    if not guesses:
        return []
    check = compile_terms(guesses, order)
    alive = set(range(len(guesses)))
    for state in trace[-1:]:
        values = check([state[s.name] for s in order])
        alive = {i for i in alive if values[i]}
    return [g for i, g in enumerate(guesses) if i in alive]


def _narrow(
    session: Session,
    guesses: list[Term],
    likely: list[int],
    low: int,
    high: int | None,
    text: str,
) -> tuple[int | None, list[Term], str]:
    """Search for the smallest provable n >= low, several n per query, for each depth.

    ``high`` is proved, with ``text``. A deeper induction sees a few iterations more: no help where
    thousands are known to happen.
    """
    for depth in FRAMES if low < MAX_STEPS else FRAMES[:1]:
        while high is None or low < high:
            between = [n for n in likely if low <= n and (high is None or n < high)]
            tries = sorted({*_ladder(low, high), *between[-4:]})
            found, proof = _least_proved(session, guesses, tries, depth)
            if found is not None:
                high, text = found, proof
            bad = [n for n in tries if high is None or n < high]
            if bad:
                low = max(bad) + 1
            if high is None:
                break
        if high is not None and high < HUGE:
            return high, guesses, text
        low = 1
    return None, guesses, ""


def _ladder(low: int, high: int | None) -> list[int]:
    """A few values from ``low`` to below ``high``; close to ``low`` where that is far away."""
    if high is None:
        return sorted({min(HUGE, low << s) for s in (0, 1, 3, 6, 10, 15, 21, 30)})
    span = high - low
    if span > 4 * low:
        return sorted({low, 2 * low, min(16 * low, high - 1)})
    return sorted({low + span * i // 3 for i in range(3)})
