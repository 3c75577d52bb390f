"""The bound of every loop of a supergraph, with its evidence: proved, or stated by a fact.

Loops with the same slice and the same initial ranges are one question. A proved bound wins over
a looser fact; a tighter fact is an assumption, and refuted where the loop's only execution
exceeds it; a loop with neither is returned without a bound and says what to add.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loopbounds import nusmv
from loopbounds.acyclic import Acyclic
from loopbounds.bound import LoopBound
from loopbounds.code import Code, KnownValues, NothingKnown
from loopbounds.places import facts_of_loops
from loopbounds.prove import Budget, Outcome
from loopbounds.slice import Slice, slice_loops
from loopbounds.store import Proof, Store, model_key
from loopbounds.verdict import judge
from loopbounds.workers import prove_all
from quoll.errors import SolverError
from quoll.facts import Facts
from quoll.image import Image
from quoll.supergraph import Supergraph

__all__ = ["BoundOptions", "Progress", "bound_loops"]

Progress = Callable[[int, int, str], None]  # questions answered, all questions, place

DEEP = 1_000_000  # frames: values are followed through paths of that many blocks


@dataclass(frozen=True, slots=True)
class BoundOptions:
    """How hard to try, and where results are kept."""

    budget: Budget = field(default_factory=Budget)
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    cache: Path | None = None  # folder of proofs
    models: Path | None = None  # folder to write the SMV models to
    s1: bool = True  # rule 1: stores of unknown address spare live stack frames


def bound_loops(
    graph: Supergraph,
    image: Image,
    values: KnownValues | None,
    facts: Facts,
    options: BoundOptions | None = None,
    progress: Progress | None = None,
) -> tuple[LoopBound, ...]:
    """One ``LoopBound`` per loop of ``graph``, in its order.

    Raises FactsError for a fact that names no loop or is refuted, ControlFlowError for code
    that has no semantics.
    """
    options = options or BoundOptions()
    stated = facts_of_loops(graph, image, facts)
    slices, outcomes = _prove_in_rounds(graph, image, values or NothingKnown(), options, progress)
    endless = _with_endless_loops_inside(graph, outcomes)
    return tuple(
        judge(
            graph,
            image,
            loop,
            slices[loop.index],
            outcomes[loop.index],
            stated[loop.index],
            loop.index not in endless,
        )
        for loop in graph.loops
    )


def _with_endless_loops_inside(graph: Supergraph, outcomes: Sequence[Outcome]) -> set[int]:
    """Loops around a loop that is not proved to end."""
    found: set[int] = set()
    for loop in reversed(graph.loops):  # inner loops first
        if loop.parent is not None and (outcomes[loop.index].bound is None or loop.index in found):
            found.add(loop.parent)
    return found


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _prove_in_rounds(
    graph: Supergraph,
    image: Image,
    values: KnownValues,
    options: BoundOptions,
    progress: Progress | None,
) -> tuple[list[Slice], list[Outcome]]:
    """Bounds of some loops tell how far others reach: repeat for the rest while some are proved."""
    slices: dict[int, Slice] = {}
    outcomes: dict[int, Outcome] = {}
    code = Code(graph, Acyclic.of(graph), image, values, {}, options.s1)
    while True:
        with _deep_recursion():
            new = slice_loops(code)
        open_loops = [
            loop.index
            for loop in graph.loops
            if loop.index not in outcomes
            or (
                _is_open(outcomes[loop.index]) and new[loop.index].model != slices[loop.index].model
            )
        ]
        slices |= {loop: new[loop] for loop in open_loops}
        outcomes |= _answers(code, slices, open_loops, options, progress)
        proved = {loop: b for loop, o in outcomes.items() if (b := o.bound) is not None}
        more = proved.keys() - code.bounds.keys()
        if not more or not any(map(_is_open, outcomes.values())):
            return [slices[i] for i in sorted(slices)], [outcomes[i] for i in sorted(outcomes)]
        code.bounds |= proved


def _is_open(outcome: Outcome) -> bool:
    return outcome.bound is None and not outcome.failed


def _answers(
    code: Code,
    slices: Mapping[int, Slice],
    loops: Sequence[int],
    options: BoundOptions,
    progress: Progress | None,
) -> dict[int, Outcome]:
    """An outcome for each of ``loops``; each distinct question is asked once."""
    try:
        solver = nusmv.find_solver()
    except SolverError as error:
        return dict.fromkeys(loops, _failed(str(error)))
    store = Store(options.cache)
    keys = {loop: model_key(slices[loop].model, options.budget, solver) for loop in loops}
    known: dict[str, Outcome] = {}
    asked: dict[str, int] = {}  # key -> first loop with that question
    for loop, key in keys.items():
        proof = None if key in known or key in asked else store.get(key)
        if proof is not None:
            known[key] = _remembered(proof)
        elif key not in known:
            asked.setdefault(key, loop)
    questions = list(asked.items())

    def done(index: int, outcome: Outcome) -> None:
        key, loop = questions[index]
        known[key] = outcome
        if outcome.bound is not None:
            seconds = round(outcome.seconds, 3)
            store.put(key, Proof(outcome.bound, outcome.reached, outcome.relations, seconds))
        _keep_model(options.models, key, outcome)
        if progress is not None:
            progress(len(known), len(set(keys.values())), _place(code, loop))

    models = [slices[loop].model for _, loop in questions]
    prove_all(models, options.budget, solver, options.workers, done)
    return {loop: known[key] for loop, key in keys.items()}


def _failed(reason: str) -> Outcome:
    return Outcome(None, 1, (), 0, f"solver failed: {reason}", "", 0.0)


def _remembered(proof: Proof) -> Outcome:
    return Outcome(proof.bound, proof.reached, (), proof.relations, "", "", proof.seconds)


def _keep_model(folder: Path | None, key: str, outcome: Outcome) -> None:
    if folder is not None and outcome.model:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{key[:16]}.smv").write_text(outcome.model)


def _place(code: Code, loop: int) -> str:
    header = code.graph.loops[loop].header
    return code.image.place(code.graph.nodes[header].block.addr)
