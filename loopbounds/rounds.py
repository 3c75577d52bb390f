"""All loops of a graph, proved in rounds: each distinct question once, stored proofs first.

What a loop leaves behind is unknown until it has a bound. So a loop whose model reads such a
value waits for that bound; its model is then made again, and asked. When no loop is left that
waits for nothing, those that wait are asked as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loopbounds.bound import LoopBound
from loopbounds.code import Code, Step
from loopbounds.keys import model_key, total_key
from loopbounds.prove import Budget, Outcome
from loopbounds.scope import Scopes
from loopbounds.simplify import simplified
from loopbounds.slice import Slice, slice_loops
from loopbounds.store import Proof, Store, write_model
from loopbounds.terms import Term
from loopbounds.triangular import total_over
from loopbounds.workers import prove_all

__all__ = ["Progress", "Rounds"]

Progress = Callable[[int, int, str], None]  # questions answered, all questions, place


@dataclass(slots=True)
class Rounds:
    """``run`` gives ``slices``, ``outcomes`` and ``keys``, by loop index."""

    code: Code
    budget: Budget
    solver: Path
    workers: int
    store: Store
    models: Path | None  # folder to keep the models of proofs in
    progress: Progress | None
    slices: dict[int, Slice] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)  # of the proofs; of totals under -1 - loop
    _totals_final: bool = True

    def run(self, loops: Sequence[int]) -> None:
        """Answer ``loops``; others are unknown to them."""
        code, asked = self.code, self.outcomes
        scopes = Scopes(code)
        pending, wanted = list(loops), set(loops)
        while pending:
            new = slice_loops(scopes, pending)
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
                code.steps |= {(i, cell): Step(n, cut.s1) for cell, n in cut.steps().items()}
            pending = [loop for loop in loops if self._is_open(loop)]

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

    def _answers(self, loops: Sequence[int]) -> dict[int, Outcome]:
        """An outcome for each of ``loops``; each distinct question is asked once."""
        keys = {i: model_key(self.slices[i].model, self.budget, self.solver) for i in loops}
        self.keys |= keys
        known: dict[str, Outcome] = {}
        questions: dict[str, int] = {}  # key -> first loop with that question
        for loop, key in keys.items():
            proof = None if key in known or key in questions else self.store.get(key)
            if proof is not None:
                known[key] = _remembered(proof)
                self.store.copy_models((key,), self.models)
            elif key not in known:
                questions.setdefault(key, loop)
        self._ask(questions, known, len(set(keys.values())))
        return {loop: known[key] for loop, key in keys.items()}

    def _ask(self, questions: Mapping[str, int], known: dict[str, Outcome], of: int) -> None:
        asked = list(questions.items())

        def done(index: int, outcome: Outcome) -> None:
            key, loop = asked[index]
            known[key] = outcome
            if outcome.bound is not None:
                seconds = round(outcome.seconds, 3)
                proof = Proof(outcome.bound, outcome.reached, outcome.relations, seconds)
                self.store.put(key, proof, outcome.model)
                write_model(self.models, key, outcome.model)
            if self.progress is not None:
                self.progress(len(known), of, self._place(loop))

        models = [self.slices[loop].model for _, loop in asked]
        prove_all(models, self.budget, self.solver, self.workers, done)

    @property
    def final(self) -> bool:
        """Whether nothing rests on a lack of time or luck."""
        return self._totals_final and all(outcome.final for outcome in self.outcomes.values())

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
        total = self._total(bound.loop, trip, self.code.bounds[parent])
        if total is None or total >= outer * inner:
            return bound
        header = self.code.graph.nodes[self.code.graph.loops[parent].header].block.addr
        evidence = f"{bound.evidence}; {total} per entry of the loop around it"
        return replace(bound, total=total, around=header, evidence=evidence)

    def _total(self, loop: int, trip: Term, outer: int) -> int | None:
        """The proved total of a loop over the loop around it."""
        key = total_key(self.keys[loop], trip, outer)
        known = self.store.get(key)
        if known is not None:
            self.store.copy_models((key,), self.models)
            self.keys[-1 - loop] = key
            return known.bound
        model, inner = self.slices[loop].model, self.code.bounds[loop]
        found = total_over(model, trip, outer, inner, self.budget, self.solver)
        self._totals_final &= found.final
        if found.executions is not None:
            self.store.put(key, Proof(found.executions, 1, 1, 0.0), found.model)
            write_model(self.models, key, found.model)
            self.keys[-1 - loop] = key
        return found.executions

    def _place(self, loop: int) -> str:
        header = self.code.graph.loops[loop].header
        return self.code.image.place(self.code.graph.nodes[header].block.addr)


def waits(cut: Slice) -> set[int]:
    """Loops without a bound, one of which left a value that this one reads."""
    return set(cut.havoc.values())


def waits_in_earnest(cut: Slice) -> set[int]:
    """The same, of the values that decide how long this one is repeated."""
    model = simplified(cut.model)
    return {cut.havoc[s] for s in (*model.inputs, *model.parameters) if s in cut.havoc}


def _remembered(proof: Proof) -> Outcome:
    return Outcome(proof.bound, proof.reached, (), proof.relations, "", "", proof.seconds)
