"""Find and prove the largest number of header executions of a model (rules 18, 19, 22).

    1. Runs give a lower bound on any bound, and candidate invariants. One that comes back to where
       it was shows that there is no bound.
    2. Candidates that are not inductive are weeded out by failed induction steps.
    3. The smallest n is found for which ``candidates and count <= n`` is inductive.
    4. The checker is asked once: INIT is satisfiable, as a model with no initial state satisfies
       everything, and ``candidates and count <= n`` is proved by k-induction.

Steps 1 to 3 ask the SMT solver. A candidate is never assumed: it is a conjunct of what step 4
proves. What weeding drops costs precision only. So a result depends on the checker's "is true" for
one property and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce

from loopbounds.proof.candidates import candidates, holding, likely_bounds
from loopbounds.proof.climb import Choice, climb
from loopbounds.proof.distance import USEFUL, distances, longer_runs
from loopbounds.proof.explicit import listed, states_of
from loopbounds.proof.options import Budget
from loopbounds.proof.phases import in_phases, phases_of
from loopbounds.proof.runs import MAX_STEPS, ModelRun, explore, longest, runs_near
from loopbounds.proof.session import OutOfTime, SolverFailed, SolverSession
from loopbounds.reduction.canonical import canonical
from loopbounds.reduction.coarsen import coarsen, easy, without_large
from loopbounds.reduction.control import control_of, with_demanded_bits
from loopbounds.reduction.simplify import influential, simplified
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, Term
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import COUNT, LoopModel, at_most
from loopbounds.transition.query import InvariantQuery, InvariantVerdict, State

__all__ = [
    "DEPTH",
    "LONG",
    "Budget",
    "ProofOutcome",
    "Question",
    "conjunction",
    "long_runs",
    "plain",
    "prove",
    "prove_listed",
    "prove_simple",
    "weed",
]

TWICE = 2  # executions, of which the first question asks,
TWICE_DEPTH = 3  # and how deep
HUGE = 1 << 30  # a bound no proof is expected for; candidates may rely on it
BEST = 3  # runs from which longer ones are looked for
LOOSE = 16  # times the longest run found: a bound above may be due to what a model leaves out
LOWERING = 8  # a lower bound than the one proved is worth this part of the queries and steps,
LOWERING_SECONDS = 3  # and this part of the seconds
FIRST = 4  # a model that leaves things out has this part of the steps
LONG = 4  # and this part a loop that goes on longer than runs are followed
DETAILED = 1200  # terms in a constraint, beyond which no model has it
DISTANCE_QUERIES, DISTANCE_STEPS = 120, 120_000  # at least, to ask how far ends are apart
LENGTHENED = 2  # times that longer runs are looked for
FAR = 1 << 12  # executions, from which on it is first asked how far the ends are apart
FAR_FROM = 60  # terms in where a loop starts, from which on, too
NEARLY = 8  # this part of the longest run more: a bound that is good enough
NEAR = 3  # likely bounds asked first, besides the one after the longest run
DEPTH = 1  # of induction, first
FRAMES = (DEPTH, 4)  # in the order they are tried


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

    @staticmethod
    def lost(why: str) -> ProofOutcome:
        """Where there is no answer."""
        return ProofOutcome(None, 1, (), 0, why, "", 0.0)

    def without_terms(self) -> ProofOutcome:
        """What may leave this process."""
        return replace(self, invariants=())


@dataclass(frozen=True)
class _Seen:
    """A model, and the runs of it that are known.

    ``nearest``: terms, and what they are at most in initial states, as far as it is known.
    """

    model: LoopModel
    runs: Sequence[ModelRun]
    nearest: dict[Term, int] = field(default_factory=dict)

    @cached_property
    def guesses(self) -> list[Term]:
        """The candidates that hold in all of the runs."""
        return candidates(self.model, self.runs)

    @property
    def reached(self) -> int:
        """The most executions of a run."""
        return longest(self.runs)


_Way = Callable[[SolverSession, _Seen], "_Found | None"]


class _Empty(Exception):
    """The model has no initial state, so nothing follows from it."""


def prove(model: LoopModel, budget: Budget, checker: Checker) -> ProofOutcome:
    """The smallest bound that is proved, for a simpler model where that suffices.

    Never raises for what the solver does.
    """
    question = Question.about(model)
    outcome = prove_simple(question.simple, question.at_first(budget), checker)
    return question.lifted(outcome, budget, checker)


@dataclass(frozen=True, slots=True)
class Question:
    """How often one loop is repeated: asked of ``simple``, which has longer runs, at first."""

    simple: LoopModel
    whole: LoopModel
    detailed: LoopModel  # with large constraints, too
    exact: LoopModel  # whose runs show that a bound is reached

    @staticmethod
    def about(model: LoopModel) -> Question:
        """The question about the model of a slice."""
        model = simplified(model)
        detailed = canonical(without_large(model, DETAILED))
        return Question(canonical(coarsen(model)), canonical(without_large(model)), detailed, model)

    def at_first(self, budget: Budget) -> Budget:
        """What the simple model is worth."""
        return budget if self.simple == self.whole else _a_part(budget)

    def lifted(self, outcome: ProofOutcome, budget: Budget, checker: Checker) -> ProofOutcome:
        """The answer for the whole model, from the one for the simple model."""
        alike = self.simple == canonical(self.exact)
        if outcome.failed or (alike and (outcome.bound is not None or outcome.endless)):
            return outcome
        start, before = time.perf_counter(), outcome.seconds
        known = outcome.reached
        if not alike:
            # with inputs no run shows that the bound is exact (rule 22)
            reached = 1 if self.exact.inputs else longest(long_runs(self.exact))
            known = outcome.reached if self.exact.inputs else reached
            outcome = replace(outcome, reached=reached)
        detail = self.detailed != self.whole and known < MAX_STEPS and outcome.bound is None
        # of a loop that goes on longer than runs are followed no run tells what is loose
        near = LOOSE * known if known < MAX_STEPS else MAX_STEPS
        loose = outcome.bound is None or outcome.bound > near
        if loose:
            found = prove_listed(self.exact, budget, checker)
            outcome = _lower(replace(found, reached=outcome.reached), outcome)
            loose = outcome.bound is None or outcome.bound > near
        if loose and self.simple != self.whole:
            if outcome.bound is not None:
                seconds = max(1, budget.seconds // LOWERING_SECONDS)
                queries = max(1, budget.queries // LOWERING)
                steps = max(1, budget.steps // LOWERING)
                budget = replace(budget, seconds=seconds, queries=queries, steps=steps)
            given = _a_part(budget) if detail else budget
            most = (outcome.bound or HUGE) // 2
            outcome = _lower(prove_simple(self.whole, given, checker, most), outcome)
        if detail and outcome.bound is None and not outcome.failed:
            outcome = _lower(prove_simple(self.detailed, budget, checker), outcome)
        return replace(outcome, seconds=before + time.perf_counter() - start)


def _a_part(budget: Budget) -> Budget:
    """Of a budget: for a model after which another one can be asked about."""
    return replace(budget, steps=max(1, budget.steps // FIRST))


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


def prove_simple(
    model: LoopModel, budget: Budget, checker: Checker, most: int = HUGE
) -> ProofOutcome:
    """The smallest bound that is proved of ``model`` as it is.

    One above ``most`` is not worth a proof of its own. Never raises for what the solver does.
    """
    start = time.perf_counter()
    session, reached = SolverSession(model, budget, checker), 1
    found, failed, endless = None, "", False
    kept: list[Term] | None = None
    try:
        seed, choices, twice = _first_run(session, model)
        runs = [seed, *climb(model, choices)]
        endless = any(run.endless for run in runs)
        if not endless:
            runs += long_runs(model, [seed.parameters])
            endless = any(run.endless for run in runs)
        seen = _Seen(model, runs)
        aside = SolverSession(model, _for_distances(budget), checker)
        if not (endless or _is_large(seen) or (twice is not None and seen.reached == TWICE)):
            found, kept = _tight(session, seen)
        if found is None and not endless and seen.reached < MAX_STEPS:
            found = _by_phases(session, seen.model, MAX_STEPS)
            if found is None and seen.reached >= FAR:
                found, session = _plainly(seen, budget, checker) or (None, session)
        if found is None and not endless:
            longer = _lengthened(aside, seen)
            seen, kept = longer, kept if longer is seen else None
        reached = seen.reached
        if found is None and twice is not None and reached == TWICE:
            found = twice if session.proves(twice.claim, twice.depth) else None
        elif found is None and not endless:
            if reached >= MAX_STEPS:  # what bounds it is found soon, or left out of the model
                session.keep_to(max(1, budget.steps // LONG))
            by_parts = session, partial(_by_parts, twice=twice, kept=kept)
            for using, way in _ways(by_parts, aside, seen, most):
                with suppress(OutOfTime):
                    other = way(using, seen)
                    if other is not None and (found is None or other.bound < found.bound):
                        found, session = other, using
                if found is None or found.bound > USEFUL:
                    continue
                if session is not aside or not _may_be_less(seen, found.bound):
                    break
            if found is None and reached >= MAX_STEPS:
                session = SolverSession(model, budget, checker)
                found = _by_phases(session, model, USEFUL)
    except SolverFailed as failure:
        failed = str(failure)
    except (OutOfTime, _Empty):
        found = None
    seconds = time.perf_counter() - start
    outcome = ProofOutcome(None, reached, (), 0, failed, "", seconds, endless=endless)
    if found is None:
        return outcome
    known, count = found.relations, len(found.relations)
    return replace(
        outcome, bound=found.bound, invariants=known, relations=count, model=session.text
    )


def prove_listed(model: LoopModel, budget: Budget, checker: Checker) -> ProofOutcome:
    """The bound by the states of a model, or of what controls it, if these are few."""
    start = time.perf_counter()
    control: LoopModel | None = with_demanded_bits(replace(model, hints=(), exits=()))
    states = states_of(control) if control is not None else None
    if not states:
        control = control_of(model)
        states = states_of(control) if control is not None else None
    if control is None or not states:
        return ProofOutcome(None, 1, (), 0, "", "", time.perf_counter() - start)
    session, failed = SolverSession(control, budget, checker), ""
    bound, relation = listed(control, states)
    proved = False
    try:
        proved = session.proves(terms.both(relation, at_most(bound)), DEPTH)
    except SolverFailed as failure:
        failed = str(failure)
    except OutOfTime:
        pass
    seconds = time.perf_counter() - start
    if not proved:
        return ProofOutcome(None, 1, (), 0, failed, "", seconds)
    return ProofOutcome(bound, 1, (relation,), 1, "", session.text, seconds)


@dataclass(frozen=True, slots=True)
class _Found:
    """``relations and count <= bound`` seems to be inductive, with ``depth`` states in a row."""

    bound: int
    relations: tuple[Term, ...]
    depth: int

    @property
    def claim(self) -> Term:
        """What is to be proved."""
        return terms.both(conjunction(self.relations), at_most(self.bound))


def _ways(
    by_parts: tuple[SolverSession, _Way], aside: SolverSession, seen: _Seen, most: int
) -> list[tuple[SolverSession, _Way]]:
    """What is tried, in this order, for a loop by the longest run of it that is known.

    How far ends are apart is asked first of long loops: where runs are followed to their ends, it
    counts only if one of them comes near.
    """
    by_distance, reached = (aside, partial(_by_distance, most=most)), seen.reached
    if reached >= MAX_STEPS:
        return [by_distance, by_parts]
    near = aside, partial(_by_distance, most=min(most, reached + reached // NEARLY))
    return [near, by_parts, by_distance] if _is_large(seen) else [by_parts, by_distance]


def _is_large(seen: _Seen) -> bool:
    """Whether loops go on for long, or start from what takes many terms to say."""
    starts = (v.initial for v in seen.model.state)
    return seen.reached >= FAR or rewrite.size(*starts) >= FAR_FROM


def _lengthened(session: SolverSession, seen: _Seen) -> _Seen:
    """With longer runs, where the ends that are compared may be further apart than in any known.

    Of a loop between two unknown ends the runs that are tried at random may all be short.
    """
    with suppress(OutOfTime):
        for _ in range(LENGTHENED):
            if not TWICE < seen.reached < MAX_STEPS:
                break
            more = longer_runs(session, seen.model, seen.guesses, seen.reached, seen.nearest)
            if longest(more) <= seen.reached:
                break
            seen = replace(seen, runs=[*seen.runs, *more])
    return seen


def _may_be_less(seen: _Seen, bound: int) -> bool:
    """Whether a constant of the model may be a lower bound, of runs not followed to their ends."""
    executions = seen.reached
    return executions >= MAX_STEPS and any(
        executions < n < bound - 1 for n in likely_bounds(seen.model, seen.runs)
    )


def _for_distances(budget: Budget) -> Budget:
    """Asking how far two ends are apart takes many small queries, and one large proof."""
    queries, steps = max(budget.queries, DISTANCE_QUERIES), max(budget.steps, DISTANCE_STEPS)
    each = replace(budget.limits.steps, steps=min(budget.limits.steps.steps, DISTANCE_STEPS // 6))
    return replace(budget, queries=queries, steps=steps, limits=replace(budget.limits, steps=each))


def _by_distance(session: SolverSession, seen: _Seen, most: int) -> _Found | None:
    """The bound by how far two unknown ends are apart, if that is useful, and proved.

    What else is known of the ends makes the induction harder: it is tried without that at first.
    """
    model, guesses, reached = seen.model, seen.guesses, seen.reached
    ends = set(model.parameters)
    likely = distances(session, model, guesses, reached, min(most, USEFUL), seen.nearest)
    moving = [g for g in guesses if not rewrite.symbols([g]) <= ends]
    for some in ([g for g in moving if g.op == "eq"], moving):
        for distance in likely:
            known = list(dict.fromkeys([*some, distance.guess, distance.relation]))
            for bound in (distance.bound - 1, distance.bound):  # where the end itself is left out
                if bound < reached:
                    continue
                kept, inductive = weed(session, model, known, at_most(bound))
                proof = _Found(bound, tuple(kept), DEPTH)
                if inductive and session.proves(proof.claim, proof.depth):
                    return proof
    return None


def _tight(session: SolverSession, seen: _Seen) -> tuple[_Found | None, list[Term] | None]:
    """The bound that the longest run reaches, if there is none longer than those that are known.

    Also the candidates of the whole model that are left; None if it was not asked about.
    """
    left: list[Term] | None = None
    with suppress(OutOfTime):
        for part in (*_deciding(seen), seen):
            session.turn_to(part.model)
            for guesses in filter(None, (_equalities(part.guesses), part.guesses)):
                kept, inductive = weed(session, part.model, guesses, at_most(part.reached))
                found = _Found(part.reached, tuple(kept), DEPTH)
                if inductive and session.proves(found.claim, found.depth):
                    return found, left
                if part is seen and guesses is part.guesses:
                    left = kept
    return None, left


def _by_phases(session: SolverSession, model: LoopModel, most: int) -> _Found | None:
    """The length of the only run, if that has few phases and no more than ``most`` executions."""
    phases = phases_of(model, most)
    if not phases:
        return None
    session.turn_to(model)
    found = _Found(phases[-1].last, (in_phases(model, phases),), DEPTH)
    return found if session.proves(found.claim, found.depth) else None


def _plainly(seen: _Seen, budget: Budget, checker: Checker) -> tuple[_Found, SolverSession] | None:
    """The length of the longest run of a long loop, if that is proved soon."""
    left = replace(_a_part(budget), queries=budget.queries - 1)  # after that for the first run
    session, guesses = SolverSession(seen.model, left, checker), plain(seen.guesses)
    with suppress(OutOfTime):
        kept, inductive = weed(session, seen.model, guesses, at_most(seen.reached))
        found = _Found(seen.reached, tuple(kept), DEPTH)
        if inductive and session.proves(found.claim, found.depth):
            return found, session
    return None


def _equalities(guesses: Sequence[Term]) -> list[Term]:
    """The equations among ``guesses``: enough to bound a counter, and soon checked.

    Empty if none of them is about the number of executions.
    """
    found = [g for g in guesses if g.op == "eq"]
    return found if COUNT in rewrite.symbols(found) else []


def plain(guesses: Sequence[Term]) -> list[Term]:
    """The equations among ``guesses``, and what is not about the number of executions.

    Often enough for long loops, of which the other guesses take long to check.
    """
    return [g for g in guesses if g.op == "eq" or COUNT not in rewrite.symbols([g])]


def _by_parts(
    session: SolverSession, seen: _Seen, twice: _Found | None, kept: list[Term] | None
) -> _Found | None:
    """The least bound found, and proved, of a part of the model that decides, or of all of it.

    ``kept``: the candidates of all of it that are left, if some were dropped.
    """
    for part in (*_deciding(seen), seen):
        session.turn_to(part.model)
        guesses = part.guesses if kept is None or part is not seen else kept
        found = _proved(session, part, guesses, twice)
        if found is not None:
            return found
    return None


def _proved(
    session: SolverSession, seen: _Seen, guesses: list[Term], twice: _Found | None
) -> _Found | None:
    """The least bound found, and proved; with the easy relations alone if all take too long."""
    found = _search(session, seen, guesses, twice)
    if found is None or session.proves(found.claim, found.depth):
        return found
    few = [g for g in found.relations if easy(g)]
    if len(few) == len(found.relations):
        return None
    found = _search(session, seen, few, twice)
    return found if found is not None and session.proves(found.claim, found.depth) else None


def _deciding(seen: _Seen) -> Iterator[_Seen]:
    """The model with only one of its conditions to go on, if no longer runs are found with that.

    It has all runs of the model, and less to be known of them. One that reads inputs is no choice:
    that few runs of it are found says little.
    """
    model = seen.model
    parts = terms.conjuncts(model.again)
    for c in sorted(parts, key=rewrite.size) if len(parts) > 1 else ():
        part = influential(replace(model, again=c))
        if part.deterministic and 0 < len(part.state) < len(model.state):
            found = explore(part, [], seen.reached + 1)
            if found and longest(found) == seen.reached:
                yield _Seen(part, found)
                return


def _first_run(
    session: SolverSession, model: LoopModel
) -> tuple[ModelRun, list[Choice], _Found | None]:
    """A short run found by the solver, three executions if there are any of that many.

    Also the choices made in it, from which longer runs may be found; and that there are no more
    than two, if that is so. Raises _Empty when there is no initial state.
    """
    properties = [("never", FALSE), ("two", at_most(TWICE))]
    checks = [InvariantQuery("never", depth=0), InvariantQuery("two", depth=TWICE_DEPTH)]
    some, longer = session.check(properties, checks)
    if some.verdict is not InvariantVerdict.FALSE:
        raise _Empty
    trace = longer.trace if longer.verdict is InvariantVerdict.FALSE else some.trace
    parameters = tuple(trace[0][p.name] for p in model.parameters)
    run = ModelRun(
        parameters,
        tuple(tuple(at[v.symbol.name] for v in model.state) for at in trace),
        tuple(at[COUNT.name] for at in trace),
        trace[-1][COUNT.name],
        ended=False,
    )
    steps = [tuple(at[i.name] for i in model.inputs) for at in trace[1:]]
    twice = longer.verdict is InvariantVerdict.TRUE
    found = _Found(TWICE, (), TWICE_DEPTH) if twice else None
    return run, [Choice(parameters, inputs) for inputs in steps], found


def conjunction(parts: Sequence[Term]) -> Term:
    """All of ``parts``."""
    return reduce(terms.both, parts, terms.TRUE)


def _search(
    session: SolverSession, seen: _Seen, guesses: list[Term], twice: _Found | None
) -> _Found | None:
    """The least bound that seems provable. ``twice``: that there are at most two executions."""
    model, first = seen.model, seen.reached
    guesses, inductive = weed(session, model, guesses, at_most(first))
    if inductive:
        return _Found(first, tuple(guesses), DEPTH)
    if twice is not None:
        return twice
    likely = [n for n in likely_bounds(model, seen.runs) if first < n < HUGE]
    low = first + 2
    found = _least(session, guesses, [first + 1, *likely[:NEAR], HUGE])
    if found is None:
        guesses, inductive = weed(session, model, guesses, at_most(HUGE))
        low, found = first, _Found(HUGE, tuple(guesses), DEPTH) if inductive else None
    if found is not None and found.bound < HUGE and first >= MAX_STEPS:
        return found  # of what is likely, the least: there is no run to come nearer to
    return _narrow(session, guesses, likely, low, found)


def _least(
    session: SolverSession, guesses: list[Term], tries: Sequence[int], depth: int = DEPTH
) -> _Found | None:
    """The least of ``tries`` that is inductive with the guesses."""
    found = [_Found(n, tuple(guesses), depth) for n in sorted(set(tries))]
    at = session.first_inductive([f.claim for f in found], depth)
    return None if at is None else found[at]


def weed(
    session: SolverSession, model: LoopModel, guesses: list[Term], goal: Term
) -> tuple[list[Term], bool]:
    """Drop candidates until the rest, with ``goal``, is inductive or only that fails.

    Returns what is left and whether all of it is inductive, with ``DEPTH`` states in a row.
    """
    guesses = list(guesses)
    while True:
        whole = terms.both(conjunction(guesses), goal)
        [answer] = session.check([("all", whole)], [InvariantQuery("all", depth=DEPTH)])
        if answer.verdict is InvariantVerdict.TRUE:
            return guesses, True
        if answer.verdict is InvariantVerdict.EXPIRED:
            kept = [g for g in guesses if easy(g)]
        else:
            kept = _surviving(model, guesses, answer.trace)
        if answer.verdict is InvariantVerdict.FALSE:
            start = tuple(answer.trace[0][p.name] for p in model.parameters)
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
    session: SolverSession, guesses: list[Term], likely: list[int], low: int, best: _Found | None
) -> _Found | None:
    """Search for the smallest provable n >= low, several n at a time, for each depth.

    A deeper induction sees a few iterations more: no help where thousands are known to happen.
    When the budget of the search is spent, the smallest one until then. Raises OutOfTime for none.
    """
    for depth in FRAMES if low < MAX_STEPS else FRAMES[:1]:
        while best is None or low < best.bound:
            high = None if best is None else best.bound
            between = [n for n in likely if low <= n and (high is None or n < high)]
            tries = sorted({*_ladder(low, high), *between[-4:]})
            try:
                best = _least(session, guesses, tries, depth) or best
            except OutOfTime:
                if best is None or best.bound == HUGE:
                    raise
                return best
            bad = [n for n in tries if best is None or n < best.bound]
            if bad:
                low = max(bad) + 1
            if best is None:
                break
        if best is not None and best.bound < HUGE:
            return best
        low = 1
    return None


def _ladder(low: int, high: int | None) -> list[int]:
    """A few values from ``low`` to below ``high``; close to ``low`` where that is far away."""
    if high is None:
        return sorted({min(HUGE, low << s) for s in (0, 1, 3, 6, 10, 15, 21, 30)})
    span = high - low
    if span > 4 * low:
        return sorted({low, 2 * low, min(16 * low, high - 1)})
    return sorted({low + span * i // 3 for i in range(3)})
