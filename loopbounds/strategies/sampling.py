"""Runs of the model, by bounded model checking, random testing and hill climbing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopbounds.budgets import table
from loopbounds.sampling.hill_climbing import RunChoice, hill_climb
from loopbounds.sampling.runs import ModelRun, explore
from loopbounds.sampling.samples import Samples
from loopbounds.strategies.session import SolverSession
from loopbounds.strategies.strategy import InductiveBound, ProofTask, ProvedBound
from loopbounds.terms.bit_vectors import FALSE
from loopbounds.transition.model import COUNT, LoopModel, at_most
from loopbounds.transition.query import InvariantQuery, InvariantVerdict

__all__ = ["RunSampling", "long_runs"]


@dataclass(frozen=True, slots=True)
class RunSampling:
    """Sets the samples of a task, unless the model has no initial state."""

    name = "random testing and hill climbing"

    def applies(self, task: ProofTask) -> bool:
        """Always: every other strategy needs samples."""
        return True

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """None: runs prove nothing."""
        first = _first_run(task.session, task.model)
        if first is None:
            task.empty = True
            return None
        seed, choices, task.no_third = first
        runs = [seed, *hill_climb(task.model, choices)]
        if not any(run.endless for run in runs):
            runs += long_runs(task.model, [seed.parameters])
        task.samples = Samples(task.model, runs)
        return None


def long_runs(model: LoopModel, seeds: Sequence[tuple[int, ...]] = ()) -> list[ModelRun]:
    """Runs from many initial states, and longer runs found near to them."""
    runs = explore(model, seeds)
    if model.inputs:
        return runs
    best = sorted(runs, key=lambda r: -r.executions)[: table.CLIMBED_RUNS]
    return [*runs, *hill_climb(model, [RunChoice(r.parameters, ()) for r in best])]


def _first_run(
    session: SolverSession, model: LoopModel
) -> tuple[ModelRun, list[RunChoice], InductiveBound | None] | None:
    """A short run found by the solver, with three executions if possible.

    Also its choices of inputs, from which longer runs may be found, and the bound 2 if there is no
    third execution. None without an initial state.
    """
    properties = [("never", FALSE), ("two", at_most(table.TWO_EXECUTIONS))]
    queries = [InvariantQuery("never", depth=0), InvariantQuery("two", depth=table.TWO_DEPTH)]
    some, longer = session.check(properties, queries)
    if some.verdict is not InvariantVerdict.FALSE:
        return None
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
    no_third = longer.verdict is InvariantVerdict.TRUE
    found = InductiveBound(table.TWO_EXECUTIONS, (), table.TWO_DEPTH) if no_third else None
    return run, [RunChoice(parameters, inputs) for inputs in steps], found
