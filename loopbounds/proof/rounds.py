"""All loops of a graph, proved in rounds: each distinct question once, stored proofs first.

Loops that are left without a bound are asked once more, each in one call of its function by any
caller (``loopbounds.slicing.one_call``): that is a smaller question than the one in its context.

What a loop leaves behind is unknown until it has a bound. So a loop whose model reads such a
value waits for that bound; its model is then made again, and asked. When no loop is left that
waits for nothing, those that wait are asked as they are. A loop for which the solver failed has no
bound to others either: what is proved of them holds without it.
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
from loopbounds.proof.store import KeptProof, write_model
from loopbounds.proof.triangular import NestTotal, total_over
from loopbounds.proof.workers import Limit, Work, answer_all
from loopbounds.reduction.simplify import simplified
from loopbounds.slicing.code import CellStep, Code
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.one_call import OneCall, for_any_caller
from loopbounds.slicing.slice import Slice, slice_loops
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel
from quoll.kept.store import Store

__all__ = ["Progress", "Rounds"]

Progress = Callable[[int, int, str], None]  # questions answered, all questions, place


@dataclass(slots=True)
class Rounds:
    """``run`` gives ``slices``, ``outcomes`` and ``keys``, by loop index."""

    code: Code
    options: BoundOptions
    checker: Checker
    progress: Progress | None
    slices: dict[int, Slice] = field(default_factory=dict)
    outcomes: dict[int, ProofOutcome] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)  # of the proofs; of totals under -1 - loop
    answered: dict[str, ProofOutcome] = field(default_factory=dict)  # by key, in this process

    @property
    def store(self) -> Store:
        """Where proofs are kept."""
        return self.options.store

    def run(self, loops: Sequence[int]) -> None:
        """Answer ``loops``; others are unknown to them.

        What may hold a stack address is looked at in each context by itself only for loops that
        are left without a bound.
        """
        ssa = GatedSsa(self.code)
        self._settle(loops, ssa)
        if ssa.spread and any(map(self._is_open, loops)):
            self._settle(loops, GatedSsa(self.code, by_itself=True))
        while self._settle_in_one_call(loops):
            self._settle(loops, GatedSsa(self.code))

    def _settle_in_one_call(self, loops: Sequence[int]) -> bool:
        """Whether some loop without a bound gets one in a call of its function by any caller."""
        known: dict[Hashable, tuple[Slice, ProofOutcome, str]] = {}
        more = False
        for loop in loops:
            call = OneCall.around(self.code, loop) if self._is_open(loop) else None
            if call is None:
                continue
            shape = call.shape
            if shape not in known:
                known[shape] = self._in_one_call(call)
            cut, outcome, key = known[shape]
            if outcome.bound is not None and outcome.bound <= table.USEFUL:
                self.slices[loop] = for_any_caller(cut, self.slices[loop])
                self.outcomes[loop], self.keys[loop] = outcome, key
                self.code.bounds[loop], more = outcome.bound, True
                self.code.continued[loop] = self.slices[loop].continued
        return more

    def _in_one_call(self, call: OneCall) -> tuple[Slice, ProofOutcome, str]:
        """The slice and the answer there, and its key."""
        code, loop = call.code(), call.loop
        alone = Rounds(code, self.options, self.checker, self.progress, answered=self.answered)
        alone._settle([loop], GatedSsa(code))
        return alone.slices[loop], alone.outcomes[loop], alone.keys[loop]

    def _settle(self, loops: Sequence[int], ssa: GatedSsa) -> None:
        code, asked = self.code, self.outcomes
        pending, wanted = [loop for loop in loops if self._is_open(loop)], set(loops)
        while pending:
            new = slice_loops(ssa, pending)
            changed = [i for i in pending if i not in asked or new[i].model != self.slices[i].model]
            self.slices |= {i: new[i] for i in changed}
            ready = self._ready(changed, wanted)
            if not ready:
                return
            asked |= self._answers(ready)
            code.bounds |= {i: b for i in ready if (b := asked[i].bound) is not None}
            for i in ready:
                cut = self.slices[i]
                if i in code.bounds:
                    code.continued[i] = cut.continued
                code.steps |= {(i, cell): CellStep(n, cut.rests) for cell, n in cut.steps().items()}
            pending = [loop for loop in loops if self._is_open(loop)]

    def waited_for(self) -> set[int]:
        """Loops that those without a bound wait for."""
        without = (i for i, outcome in self.outcomes.items() if outcome.bound is None)
        return {other for loop in without for other in waits(self.slices[loop])}

    def _ready(self, loops: Sequence[int], wanted: set[int]) -> list[int]:
        """Those of ``loops`` that wait for nothing, or else for nothing that matters, or all."""
        for known in (waits, waits_in_earnest):
            found = [
                i for i in loops if not (known(self.slices[i]) & wanted) - self.outcomes.keys()
            ]
            if found:
                return found
        return list(loops)

    def _is_open(self, loop: int) -> bool:
        """Whether a loop is not asked yet, or may get a bound when others have theirs."""
        outcome = self.outcomes.get(loop)
        return outcome is None or (outcome.bound is None and not outcome.failed)

    def _answers(self, loops: Sequence[int]) -> dict[int, ProofOutcome]:
        """An outcome for each of ``loops``; each distinct question is asked once."""
        models = {i: self.slices[i].model for i in loops}
        named = {model: self._key(model) for model in set(models.values())}
        keys = {i: named[model] for i, model in models.items()}
        self.keys |= keys
        known: dict[str, ProofOutcome] = {}
        questions: dict[str, int] = {}  # key -> first loop with that question
        for loop, key in keys.items():
            proof = None if key in known or key in questions else self._remembered(key)
            if proof is not None:
                known[key] = proof
                write_model(self.options.models, key, proof.model)
            elif key not in known:
                questions.setdefault(key, loop)
        known |= self._asked(questions)
        self.answered |= {key: outcome for key, outcome in known.items() if not outcome.failed}
        return {loop: known[key] for loop, key in keys.items()}

    def _key(self, model: LoopModel) -> str:
        return model_key(model, self.options.budget, self.checker)

    def _simple_key(self, question: LoopAbstractions) -> str:
        budget = question.first_budget(self.options.budget)
        return simple_key(model_key(question.simple, budget, self.checker))

    def _asked(self, loops: Mapping[str, int]) -> dict[str, ProofOutcome]:
        """The answer to each question; those with the same simple model share its proof."""
        asked = {key: LoopAbstractions.of(self.slices[loop].model) for key, loop in loops.items()}
        sharing: dict[str, list[str]] = {}  # by the key of the simple model
        for key, question in asked.items():
            sharing.setdefault(self._simple_key(question), []).append(key)
        answers: dict[str, ProofOutcome] = {}
        simple, ended = list(sharing), set[int]()

        def done(index: int, found: list[ProofOutcome]) -> None:
            of_simple, keys = simple[index], sharing[simple[index]]
            found += found * (1 + len(keys) - len(found))  # one where its worker died
            for key, outcome in zip((of_simple, *keys), found, strict=True):
                if not outcome.failed:
                    self.store.keep(key, KeptProof.of(outcome))
            answers.update(zip(keys, found[1:], strict=True))
            ended.add(index)
            if self.progress is not None:
                self.progress(len(ended), len(simple), self._place(loops[keys[0]]))

        questions = [
            partial(
                _answers_of,
                [asked[key] for key in keys],
                self._remembered(of_simple),
                self.options.budget,
                self.checker,
            )
            for of_simple, keys in sharing.items()
        ]
        most = max(map(len, sharing.values()), default=0)
        answer_all(Work(questions, _lost, done), self.options.workers, self._limit(1 + most))
        for key, outcome in answers.items():
            write_model(self.options.models, key, outcome.model)
        return answers

    def _limit(self, models: int) -> Limit:
        """Of a worker for one question, which is about so many models."""
        budget = self.options.budget
        memory = max(budget.limits.steps.memory, budget.limits.process.memory)
        return Limit(table.WORKER_SLACK * models * budget.seconds, table.WORKER_SLACK * memory)

    def _remembered(self, key: str) -> ProofOutcome | None:
        if key in self.answered:
            return self.answered[key]
        known: KeptProof | None = self.store.value(key, KeptProof)
        return None if known is None else known.outcome()

    def with_totals(self, bounds: Sequence[LoopBound]) -> tuple[LoopBound, ...]:
        """The bounds with totals over the loop around, where both are proved and it is less."""
        return tuple(self._with_total(b, bounds) for b in bounds)

    def _with_total(self, bound: LoopBound, bounds: Sequence[LoopBound]) -> LoopBound:
        parent = self.code.graph.loops[bound.loop].parent
        if parent is None or parent not in self.code.bounds or bound.loop not in self.code.bounds:
            return bound
        trip = self.slices[bound.loop].trips.get(parent)
        outer, inner = bounds[parent].bound, bound.bound
        if trip is None or outer is None or inner is None:
            return bound
        found = self._total(bound.loop, trip, self.code.bounds[parent])
        if found.failed:
            return replace(bound, unanswered=f"its total over the loop around it: {found.failed}")
        total = found.executions
        if total is None or total >= outer * inner:
            return bound
        header = self.code.graph.nodes[self.code.graph.loops[parent].header].block.addr
        return replace(bound, total=total, around=header)

    def _total(self, loop: int, trip: Term, outer: int) -> NestTotal:
        """The proved total of a loop over the loop around it."""
        key = total_key(self.keys[loop], trip, outer)
        known: KeptProof | None = self.store.value(key, KeptProof)
        if known is not None:
            write_model(self.options.models, key, known.model)
            self.keys[-1 - loop] = key
            return NestTotal(known.bound)
        model, inner = self.slices[loop].model, self.code.bounds[loop]
        budget, answers = self.options.budget, dict[int, NestTotal]()
        question = partial(total_over, model, trip, outer, inner, budget, self.checker)
        work = Work([question], NestTotal.lost, answers.__setitem__)
        answer_all(work, self.options.workers, self._limit(2))
        found = answers[0]
        if not found.failed:
            self.store.keep(key, KeptProof(found.executions, 1, 1, found.model, 0.0))
            write_model(self.options.models, key, found.model)
            self.keys[-1 - loop] = key
        return found

    def failed_before(self, loop: int) -> int | None:
        """A loop for which the solver failed, and whose bound would tell about this one."""
        seen, open_ = {loop}, [loop]
        while open_:
            needed = waits_in_earnest(self.slices[open_.pop()]) & self.outcomes.keys()
            missing = [i for i in sorted(needed - seen) if self.outcomes[i].bound is None]
            for other in missing:
                if self.outcomes[other].failed:
                    return other
            seen.update(missing)
            open_ += missing  # loops may wait for each other
        return None

    def _place(self, loop: int) -> str:
        header = self.code.graph.loops[loop].header
        return self.code.image.place(self.code.graph.nodes[header].block.addr)


def _answers_of(
    questions: Sequence[LoopAbstractions],
    proof: ProofOutcome | None,
    budget: Budget,
    checker: Checker,
) -> list[ProofOutcome]:
    """The proof of their simple model, if it is not known, then the answer to each question.

    Without terms: these are interned in the process that made them.
    """
    first = questions[0]
    simple = proof or prove_model(first.simple, first.first_budget(budget), checker)
    answers = [question.refined(simple, budget, checker) for question in questions]
    return [outcome.without_terms() for outcome in (simple, *answers)]


def _lost(why: str) -> list[ProofOutcome]:
    return [ProofOutcome.lost(why)]


def waits(cut: Slice) -> set[int]:
    """Loops without a bound, one of which left a value that this one reads."""
    return set(cut.havoc.values())


def waits_in_earnest(cut: Slice) -> set[int]:
    """The same, of the values that decide how long this one is repeated."""
    model = simplified(cut.model)
    return {cut.havoc[s] for s in (*model.inputs, *model.parameters) if s in cut.havoc}
