"""Prove all loops of a graph in work-list rounds: each distinct model once, cached proofs first.

The values after a loop are unknown until it has a bound. So a loop whose model reads such a value
waits for that bound, and is sliced again. When all remaining loops wait for each other, they are
proved with unknown values. A loop for which the solver failed counts as unbounded for the others,
too: their proofs hold without its bound.

A loop of a function with several contexts is proved first in one call of the function by any caller
(``loopbounds.slicing.one_call``). Contexts in which it may run as long need no proof of their own.
Loops without a bound are tried in such a call once more: the model is smaller than in a context.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from loopbounds.budgets import table
from loopbounds.budgets.budget import Budget
from loopbounds.proof.abstractions import LoopAbstractions
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.keys import model_key, simple_key, total_key
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.prove import ProofOutcome, prove_model
from loopbounds.proof.store import write_model
from loopbounds.proof.triangular import NestTotal, total_over
from loopbounds.proof.workers import ParallelTasks, WorkerLimits, run_all
from loopbounds.reduction.simplify import simplified
from loopbounds.sampling.runs import explore, longest
from loopbounds.slicing.cell import HeaderCell
from loopbounds.slicing.code import CellStep, GraphCode
from loopbounds.slicing.gated_ssa import GatedSsa, KnownBounds
from loopbounds.slicing.one_call import OneCall, for_any_caller
from loopbounds.slicing.slice import Slice, slice_loops
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel
from quoll.assumptions import Assumption
from quoll.results.results_store import ResultsStore

__all__ = ["ModelProof", "Progress", "ProofRounds"]

Progress = Callable[[int, int, str], None]  # queries done, all queries, place of the loop


@dataclass(frozen=True, slots=True)
class AnyCaller:
    """The bound of a loop in a call by any caller."""

    outcome: ProofOutcome
    assumed: frozenset[Assumption]
    most: int


@dataclass(frozen=True, slots=True)
class ModelProof:
    """The outcome for a model; ``assumed``: by the proof for any caller that gave it."""

    outcome: ProofOutcome
    assumed: frozenset[Assumption] = frozenset()


@dataclass(slots=True)
class ProofRounds:
    """``run`` fills ``slices``, ``outcomes`` and ``keys``, by loop index.

    ``proved``: the models at which no solver failed. Another checker may go on from there.
    """

    code: GraphCode
    options: BoundOptions
    checker: Checker
    progress: Progress | None
    slices: dict[int, Slice] = field(default_factory=dict)
    outcomes: dict[int, ProofOutcome] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)  # of the proofs; totals are under -1 - loop
    proved: dict[LoopModel, ModelProof] = field(default_factory=dict)  # in this process
    ssa: GatedSsa = field(init=False)  # the values of all runs
    _calls: dict[Hashable, AnyCaller | None] = field(default_factory=dict)  # by shape of the call
    # the slices with the bounds that are known, by the values that they are made of
    _sliced: dict[GatedSsa, tuple[KnownBounds, dict[int, Slice]]] = field(default_factory=dict)
    _apart: GatedSsa | None = None  # with stack addresses tracked in each context
    _pointed: GatedSsa | None = None  # with the words behind pointers
    # the bounds with which loops had no (useful) one by ``_apart``, and by ``_pointed``
    _without_apart: dict[int, KnownBounds] = field(default_factory=dict)
    _without_pointed: dict[int, KnownBounds] = field(default_factory=dict)
    # in a call by any caller, by its shape
    _alone: dict[Hashable, tuple[Slice, ProofOutcome, str]] = field(default_factory=dict)
    # by model, and by the identity of one of ``_calls``
    _shared_proofs: dict[tuple[LoopModel, int], ModelProof | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ssa = GatedSsa(self.code)

    @property
    def store(self) -> ResultsStore:
        """The results store."""
        return self.options.store

    def run(self, loops: Sequence[int]) -> None:
        """Prove ``loops``; the values after other loops stay unknown.

        Loops without a bound are tried again with stack addresses tracked separately in each
        context, then in a call by any caller. A later run goes on with the values of the first.
        """
        ssa = self.ssa
        self._settle(loops, ssa)
        if ssa.spread and any(self._without_apart.get(i) != ssa.known for i in self._open(loops)):
            if self._apart is None:
                self._apart = GatedSsa(self.code, by_itself=True, tainted=ssa.first_failed)
            self._settle(loops, self._apart)
            self._without_apart |= dict.fromkeys(self._open(loops), KnownBounds.of(self.code))
        self._settle_with_pointed_words(loops, ssa.taint.tainted)
        while self._settle_in_one_call(loops):
            self._settle(loops, ssa)

    def _settle_with_pointed_words(
        self, loops: Sequence[int], tainted: frozenset[HeaderCell]
    ) -> None:
        """Try loops without a useful bound again, with the words behind pointers (S7).

        An outcome counts only if it has a useful bound; else the first one stays. ``tainted``:
        cells that may hold a stack address. A loop is tried again only once more bounds are known.
        """
        code, start = self.code, KnownBounds.of(self.code)
        before = {
            i: self.outcomes[i]
            for i in loops
            if self._is_open(i) or self._is_loose(i)
            if self._without_pointed.get(i) != start
        }
        if not before:
            return
        slices, keys = dict(self.slices), dict(self.keys)
        bounds, continued = dict(code.bounds), dict(code.continued)
        for loop in before:
            del self.outcomes[loop]
            code.bounds.pop(loop, None)
        if self._pointed is None:
            self._pointed = GatedSsa(replace(code, pointed=True), tainted=tainted)
        self._settle(list(before), self._pointed)
        for loop, outcome in before.items():
            if self.outcomes[loop].bound is None or self._is_loose(loop):
                self.outcomes[loop] = outcome
                self.slices[loop], self.keys[loop] = slices[loop], keys[loop]
                self._without_pointed[loop] = start
                code.bounds.pop(loop, None)
                if loop in bounds:
                    code.bounds[loop], code.continued[loop] = bounds[loop], continued[loop]

    def _is_loose(self, loop: int) -> bool:
        """Whether the bound of a loop only gives the range of a word."""
        bound = self.outcomes[loop].bound if loop in self.outcomes else None
        return bound is not None and bound > table.USEFUL

    def _settle_in_one_call(self, loops: Sequence[int]) -> bool:
        """Whether some unbounded loop gets a bound in a call of its function by any caller."""
        more = False
        for loop in loops:
            call = OneCall.around(self.code, loop) if self._is_open(loop) else None
            if call is None:
                continue
            shape = call.shape
            if shape not in self._alone or self._alone[shape][1].failed:
                self._alone[shape] = self._in_one_call(call)
            cut, outcome, key = self._alone[shape]
            if outcome.bound is not None and outcome.bound <= table.USEFUL:
                self.slices[loop] = for_any_caller(cut, self.slices[loop])
                self.outcomes[loop], self.keys[loop] = outcome, key
                self.code.bounds[loop], more = outcome.bound, True
                self.code.continued[loop] = self.slices[loop].continued
        return more

    def _in_one_call(self, call: OneCall) -> tuple[Slice, ProofOutcome, str]:
        """The slice, the outcome and the key of the proof of the loop in ``call``."""
        code, loop = call.code(), call.loop
        alone = ProofRounds(code, self.options, self.checker, self.progress, proved=self.proved)
        alone._settle([loop], alone.ssa)
        return alone.slices[loop], alone.outcomes[loop], alone.keys[loop]

    def _settle(self, loops: Sequence[int], ssa: GatedSsa) -> None:
        code, outcomes = self.code, self.outcomes
        pending, wanted = self._open(loops), set(loops)
        while pending:
            ready = self._waiting_for_none(ssa, pending, wanted)
            if not ready:
                ready = self._ready(self._changed(ssa, pending), wanted)
            if not ready:
                return
            outcomes |= self._outcomes(ready)
            code.bounds |= {i: b for i in ready if (b := outcomes[i].bound) is not None}
            for i in ready:
                cut = self.slices[i]
                if i in code.bounds:
                    code.continued[i] = replace(cut.continued, assumed=cut.assumed)
                code.steps |= {
                    (i, cell): CellStep(n, cut.assumed) for cell, n in cut.steps().items()
                }
            pending = self._open(loops)

    def _waiting_for_none(self, ssa: GatedSsa, loops: Sequence[int], wanted: set[int]) -> list[int]:
        """The ``loops`` whose last awaited loop has an outcome now.

        Only these are sliced again: of the loops around a nest one in each round.
        """
        due = []
        for loop in loops:
            needed = waits_for(self.slices[loop]) & wanted if loop in self.slices else set()
            if needed & self.code.bounds.keys() and needed <= self.outcomes.keys():
                due.append(loop)
        if not due:
            return []
        return [i for i in self._changed(ssa, due) if not self._missing(waits_for, i, wanted)]

    def _changed(self, ssa: GatedSsa, loops: Sequence[int]) -> list[int]:
        """Slice ``loops`` again; returns the loops without an outcome for their model.

        A loop that was sliced with the same bounds is not sliced again.
        """
        ssa.renew()
        known, new = self._sliced.get(ssa, (ssa.known, {}))
        if known is not ssa.known:
            new = {}
        if missing := [i for i in loops if i not in new]:
            new = new | slice_loops(ssa, missing)
        self._sliced[ssa] = ssa.known, new
        changed = [
            i for i in loops if i not in self.outcomes or new[i].model != self.slices[i].model
        ]
        self.slices |= {i: new[i] for i in changed}
        return changed

    def waited_for(self) -> set[int]:
        """The loops for whose bounds the unbounded loops wait."""
        without = (i for i, outcome in self.outcomes.items() if outcome.bound is None)
        return {other for loop in without for other in waits_for(self.slices[loop])}

    def _ready(self, loops: Sequence[int], wanted: set[int]) -> list[int]:
        """The loops to prove next: they wait for no loop, else for no deciding one, else all."""
        for known in (waits_for, waits_for_deciding):
            found = [i for i in loops if not self._missing(known, i, wanted)]
            if found:
                return found
        return list(loops)

    def _missing(self, known: Callable[[Slice], set[int]], loop: int, wanted: set[int]) -> set[int]:
        """The loops without an outcome that ``loop`` waits for."""
        return (known(self.slices[loop]) & wanted) - self.outcomes.keys()

    def _open(self, loops: Sequence[int]) -> list[int]:
        return [loop for loop in loops if self._is_open(loop)]

    def _is_open(self, loop: int) -> bool:
        """Whether a loop is untried, or may get a bound once others have theirs."""
        outcome = self.outcomes.get(loop)
        return outcome is None or (outcome.bound is None and not outcome.failed)

    def _outcomes(self, loops: Sequence[int]) -> dict[int, ProofOutcome]:
        """An outcome for each of ``loops``; each distinct model is proved once."""
        models = {i: self.slices[i].model for i in loops}
        named = {model: self._key(model) for model in set(models.values())}
        self.keys |= {i: named[model] for i, model in models.items()}
        known: dict[LoopModel, ModelProof] = {}
        shared: dict[int, ModelProof] = {}  # by loop: it holds in calls of this shape only
        queries: dict[LoopModel, int] = {}  # model -> first loop with it
        for loop, model in models.items():
            if model in known:
                continue
            if (found := self._known(model, named[model])) is not None:
                known[model] = found
            elif (found := self._shared(loop)) is not None:
                shared[loop] = found
            else:
                queries.setdefault(model, loop)
                continue
            write_model(self.options.models, named[model], found.outcome.model)
        proved = self._prove_all({named[model]: loop for model, loop in queries.items()})
        known |= {model: ModelProof(proved[named[model]]) for model in queries}
        self.proved |= {model: found for model, found in known.items() if not found.outcome.failed}
        proofs = {loop: shared.get(loop) or known[model] for loop, model in models.items()}
        for loop, proof in proofs.items():
            assumed = self.slices[loop].assumed | proof.assumed
            self.slices[loop] = replace(self.slices[loop], assumed=assumed)
        return {loop: proof.outcome for loop, proof in proofs.items()}

    def _known(self, model: LoopModel, key: str) -> ModelProof | None:
        """The proof for a model that this process or an earlier one has made."""
        if model in self.proved:
            return self.proved[model]
        stored = self._cached(key)
        return None if stored is None else ModelProof(stored)

    def _shared(self, loop: int) -> ModelProof | None:
        """The bound for any caller, if a run of the simple model in this context reaches it.

        Then a proof about the simple model gives no smaller one.
        """
        known, model = self._for_any_caller(loop), self.slices[loop].model
        if known is None:
            return None
        key = model, id(known)
        if key not in self._shared_proofs:
            self._shared_proofs[key] = self._if_reached(known, model)
        return self._shared_proofs[key]

    @staticmethod
    def _if_reached(known: AnyCaller, model: LoopModel) -> ModelProof | None:
        """The bound for any caller, if a run of the simple model reaches it."""
        models = LoopAbstractions.of(model)
        if longest(explore(models.simple)) < known.most:
            return None
        exact = models.exact
        reached = 1 if exact.inputs else longest(explore(exact))  # as rule 22 asks
        return ModelProof(replace(known.outcome, reached=reached, seconds=0.0), known.assumed)

    def _for_any_caller(self, loop: int) -> AnyCaller | None:
        graph = self.code.graph
        header = graph.nodes[graph.loops[loop].header].block.addr
        contexts = [o for o in graph.loops if graph.nodes[o.header].block.addr == header]
        if len(contexts) < table.SHARING_CONTEXTS:
            return None
        call = OneCall.around(self.code, loop)
        if call is None:
            return None
        shape = call.shape
        if shape not in self._calls:
            self._calls[shape] = self._proved_for_any(call)
        return self._calls[shape]

    def _proved_for_any(self, call: OneCall) -> AnyCaller | None:
        code, loop = call.code(), call.loop
        alone = ProofRounds(code, self.options, self.checker, None, proved=self.proved)
        alone._changed(alone.ssa, [loop])
        model = simplified(alone.slices[loop].model)
        if model.inputs:  # words that each iteration loads: few callers give them a bound
            return None
        runs = explore(model)
        if not runs or longest(runs) > table.SHARED_MOST:
            return None
        alone._settle([loop], alone.ssa)
        outcome, cut = alone.outcomes[loop], alone.slices[loop]
        if outcome.bound is None or outcome.failed:
            return None
        return AnyCaller(outcome, cut.assumed, outcome.bound)

    def _key(self, model: LoopModel) -> str:
        return model_key(model, self.options.budget, self.checker)

    def _simple_key(self, models: LoopAbstractions) -> str:
        budget = models.first_budget(self.options.budget)
        return simple_key(model_key(models.simple, budget, self.checker))

    def _prove_all(self, loops: Mapping[str, int]) -> dict[str, ProofOutcome]:
        """The outcome of each loop, by key; loops with the same simple model share its proof."""
        abstractions = {
            key: LoopAbstractions.of(self.slices[loop].model) for key, loop in loops.items()
        }
        sharing: dict[str, list[str]] = {}  # by the key of the simple model
        for key, models in abstractions.items():
            sharing.setdefault(self._simple_key(models), []).append(key)
        outcomes: dict[str, ProofOutcome] = {}
        simple, ended = list(sharing), set[int]()

        def done(index: int, found: list[ProofOutcome]) -> None:
            of_simple, keys = simple[index], sharing[simple[index]]
            found += found * (1 + len(keys) - len(found))  # a single outcome if the worker died
            for key, outcome in zip((of_simple, *keys), found, strict=True):
                if not outcome.failed:
                    self.store.save(key, outcome)
            outcomes.update(zip(keys, found[1:], strict=True))
            ended.add(index)
            if self.progress is not None:
                self.progress(len(ended), len(simple), self._place(loops[keys[0]]))

        queries = [
            partial(
                _outcomes_of,
                [abstractions[key] for key in keys],
                self._cached(of_simple),
                self.options.budget,
                self.checker,
            )
            for of_simple, keys in sharing.items()
        ]
        most = max(map(len, sharing.values()), default=0)
        run_all(ParallelTasks(queries, _lost, done), self.options.workers, self._limit(1 + most))
        for key, outcome in outcomes.items():
            write_model(self.options.models, key, outcome.model)
        return outcomes

    def _limit(self, models: int) -> WorkerLimits:
        """The limits of a worker for one query about ``models`` models."""
        budget = self.options.budget
        memory = max(budget.limits.steps.memory, budget.limits.process.memory)
        return WorkerLimits(
            table.WORKER_SLACK * models * budget.seconds, table.WORKER_SLACK * memory
        )

    def _cached(self, key: str) -> ProofOutcome | None:
        known: ProofOutcome | None = self.store.load(key, ProofOutcome)
        return known

    def with_totals(self, bounds: Sequence[LoopBound]) -> tuple[LoopBound, ...]:
        """The bounds, with each proved total over the enclosing loop that is below the product.

        A loop that got its bound before the one around it is sliced again: only a loop with a bound
        has a number of completed iterations.
        """
        around = {b.loop: self.code.graph.loops[b.loop].parent for b in bounds}
        nested = [i for i, p in around.items() if {i, p} <= self.code.bounds.keys()]
        earlier = [i for i in nested if around[i] in self.slices[i].havoc.values()]
        cuts = self.slices | (slice_loops(self.ssa, earlier) if earlier else {})
        return tuple(
            self._with_total(b, bounds, cuts[b.loop], parent)
            if b.loop in nested and (parent := around[b.loop]) is not None
            else b
            for b in bounds
        )

    def _with_total(
        self, bound: LoopBound, bounds: Sequence[LoopBound], cut: Slice, parent: int
    ) -> LoopBound:
        trip = cut.trips.get(parent)
        outer, inner = bounds[parent].bound, bound.bound
        if trip is None or outer is None or inner is None:
            return bound
        found = self._total(cut, trip, self.code.bounds[parent])
        if found.failed:
            return replace(bound, unanswered=f"its total over the loop around it: {found.failed}")
        total = found.executions
        if total is None or total >= outer * inner:
            return bound
        header = self.code.graph.nodes[self.code.graph.loops[parent].header].block.addr
        assumed = tuple(sorted({*bound.assumed, *cut.assumed}))
        return replace(bound, total=total, around=header, assumed=assumed)

    def _total(self, cut: Slice, trip: Term, outer: int) -> NestTotal:
        """The proved total of a loop over its enclosing loop; ``outer`` is the outer bound."""
        loop = cut.loop
        key = total_key(self._key(cut.model), trip, outer)
        known: ProofOutcome | None = self.store.load(key, ProofOutcome)
        if known is not None:
            write_model(self.options.models, key, known.model)
            self.keys[-1 - loop] = key
            return NestTotal(known.bound)
        model, inner = cut.model, self.code.bounds[loop]
        budget, outcomes = self.options.budget, dict[int, NestTotal]()
        models = partial(total_over, model, trip, outer, inner, budget, self.checker)
        work = ParallelTasks([models], NestTotal.lost, outcomes.__setitem__)
        run_all(work, self.options.workers, self._limit(2))
        found = outcomes[0]
        if not found.failed:
            self.store.save(key, ProofOutcome(found.executions, 1, 1, "", found.model, 0.0))
            write_model(self.options.models, key, found.model)
            self.keys[-1 - loop] = key
        return found

    def failed_before(self, loop: int) -> int | None:
        """A loop at which the solver failed and on which this one depends, or None."""
        seen, open_ = {loop}, [loop]
        while open_:
            needed = waits_for_deciding(self.slices[open_.pop()]) & self.outcomes.keys()
            missing = [i for i in sorted(needed - seen) if self.outcomes[i].bound is None]
            for other in missing:
                if self.outcomes[other].failed:
                    return other
            seen.update(missing)
            open_ += missing  # loops may wait in cycles
        return None

    def _place(self, loop: int) -> str:
        header = self.code.graph.loops[loop].header
        return self.code.image.place(self.code.graph.nodes[header].block.addr)


def _outcomes_of(
    queries: Sequence[LoopAbstractions],
    proof: ProofOutcome | None,
    budget: Budget,
    checker: Checker,
) -> list[ProofOutcome]:
    """The outcome for the shared simple model, proved unless given, then one per loop."""
    first = queries[0]
    given, most = first.first_budget(budget), max(models.first_most for models in queries)
    simple = proof or prove_model(first.simple, given, checker, most)
    outcomes = [models.refined(simple, budget, checker) for models in queries]
    return [simple, *outcomes]


def _lost(why: str) -> list[ProofOutcome]:
    return [ProofOutcome.lost(why)]


def waits_for(cut: Slice) -> set[int]:
    """The unbounded loops that leave a value behind which this loop reads."""
    return set(cut.havoc.values())


def waits_for_deciding(cut: Slice) -> set[int]:
    """The unbounded loops whose values decide how often this loop iterates."""
    model = simplified(cut.model)
    return {cut.havoc[s] for s in (*model.inputs, *model.parameters) if s in cut.havoc}
