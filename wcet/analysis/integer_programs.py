"""The integer programs of an entry, one for each start of its paths, and their results.

constraints_of  Prepared             -> Constraints    user facts about counts, in each graph
proved_of       Prepared             -> exclusions     stored by refinement, with their proofs
start_programs  Prepared             -> StartPrograms  the solution of each start
entry_result    Prepared             -> EntryResult    the worst of all starts
paths_result    PreparedPaths        -> EntryResult    of one start
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ilp.constraints.constraint import Constraint, resolve_constraints
from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.parameters import loop_parameters
from ilp.constraints.proved_exclusions import (
    NOTHING_PROVED,
    ProvedExclusions,
    exclusions_key,
    stored_exclusions,
)
from ilp.constraints.uncounted import counted
from ilp.entry import EntryBound, bound_entry
from ilp.least_counts import refuse_contradicted
from ilp.parametric import largest
from ilp.solvers.solve import solver_named
from ilp.worst_case import WorstCase
from quoll.assumptions import stated
from wcet.analysis.prepared import Prepared, PreparedPaths
from wcet.analysis.proved_invariants import with_proofs
from wcet.analysis.result import EntryResult, StartBound
from wcet.analysis.run import AnalysisRun
from wcet.analysis.solution_store import ProgramInputs, SolutionStore

__all__ = [
    "Constraints",
    "StartProgram",
    "bound_of_paths",
    "constraints_of",
    "entry_result",
    "paths_result",
    "proved_of",
    "start_programs",
]

Constraints = tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class StartProgram:
    """The paths from one start, the inputs of their integer program, and its solution."""

    paths: PreparedPaths
    inputs: ProgramInputs
    answer: EntryBound


def constraints_of(run: AnalysisRun, name: str, prepared: Prepared) -> list[Constraints]:
    """The constraints of an entry that have an effect, for each start of its paths."""
    with run.stages.stage("ilp", name):
        return [_constraints(run, paths) for paths in prepared.paths]


def proved_of(run: AnalysisRun, name: str, address: int, prepared: Prepared) -> ProvedExclusions:
    """The stored exclusions of an entry: those that refinement has proved for the same inputs."""
    with run.stages.stage("recall", name):
        graphs = (paths.graph for paths in prepared.paths)
        key = exclusions_key(run.store.identity(name, address), graphs)
        return stored_exclusions(run.options.store, key, len(prepared.paths))


def entry_result(
    run: AnalysisRun,
    name: str,
    address: int,
    prepared: Prepared,
    constraints: Sequence[Constraints],
    proved: ProvedExclusions = NOTHING_PROVED,
) -> EntryResult:
    """The bound of an entry; ``constraints``: of each start; ``proved``: exclusions.

    Raises UnboundedLoop, and FactsError for a fact that no execution satisfies (rule 49).
    """
    programs = start_programs(run, name, address, prepared, constraints, proved)
    results = [_result(run, name, address, one.paths, one.inputs, one.answer) for one in programs]
    results.sort(key=lambda result: -result.cycles)
    functions = [(result.parametric, result.cycles) for result in results]
    refined = proved if any(result.exclusions for result in results) else NOTHING_PROVED
    of_results = (a for r in results for a in r.assumptions)
    assumptions = (*prepared.assumptions, *of_results, *refined.assumptions)
    return replace(
        results[0],
        infeasible=prepared.infeasible,
        assumptions=with_proofs(run, assumptions),
        starts=tuple(start for result in results for start in result.starts),
        paths=prepared.paths,
        by_start=tuple(replace(one, summaries=prepared.summaries) for one in results),
        parametric=largest(functions),
        unmasking=tuple(map(run.image.place, prepared.unmasking)),
        never_returning=prepared.never_returning,
        summaries=prepared.summaries,
        proved=refined.shown,
    )


def start_programs(
    run: AnalysisRun,
    name: str,
    address: int,
    prepared: Prepared,
    constraints: Sequence[Constraints],
    proved: ProvedExclusions = NOTHING_PROVED,
) -> list[StartProgram]:
    """The solution for each start of an entry's paths. Raises as ``entry_result`` does."""
    whole = len(prepared.paths) == 1 and prepared.paths[0].start is None
    with run.stages.stage("ilp", name):
        inputs = [
            _inputs_of(run, paths, found, proved.of_start(number), whole=whole)
            for number, (paths, found) in enumerate(zip(prepared.paths, constraints, strict=True))
        ]
        bounds = _bounds(run, name, address, prepared, inputs)
        if whole:
            _refuse_contradicted(run, prepared.paths[0], inputs[0], bounds[0])
    return [StartProgram(*one) for one in zip(prepared.paths, inputs, bounds, strict=True)]


def paths_result(
    run: AnalysisRun,
    name: str,
    address: int,
    paths: PreparedPaths,
    *,
    whole: bool,
    more: Constraints = (),
    exclusions: tuple[ProvedRow, ...] = (),
    with_path: bool = True,
) -> EntryResult:
    """The bound of the paths from one start; not ``whole``: executions continue before or after.

    ``more``: constraints that no fact states; ``exclusions``: of the same graph. Without
    ``with_path`` no path that reaches the bound is built. Raises UnboundedLoop, and
    InfeasibleError.
    """
    with run.stages.stage("ilp", name):
        constraints = (*_constraints(run, paths), *more)
        inputs = _inputs_of(run, paths, constraints, exclusions, whole=whole)
        answer = bound_of_paths(run, paths, inputs, with_path=with_path)
    return _result(run, name, address, paths, inputs, answer)


def _constraints(run: AnalysisRun, paths: PreparedPaths) -> Constraints:
    found = resolve_constraints(paths.graph, run.facts)
    return counted(paths.graph, run.image, run.facts, found, run.exits)


def _inputs_of(
    run: AnalysisRun,
    paths: PreparedPaths,
    found: Constraints,
    exclusions: tuple[ProvedRow, ...],
    *,
    whole: bool,
) -> ProgramInputs:
    """The inputs of the integer program that come from facts and refinement alone.

    Unless paths are ``whole``, a place with a minimum count may execute before or after them.
    """
    return ProgramInputs(
        tuple(c for c in found if whole or c.holds_in_subpaths),
        loop_parameters(paths.graph, run.image, run.facts),
        exclusions,
    )


def _bounds(
    run: AnalysisRun, name: str, address: int, prepared: Prepared, inputs: Sequence[ProgramInputs]
) -> list[EntryBound]:
    """The bounds from all starts, solved now or cached."""
    options = run.options
    entry = "" if options.programs else run.store.programs_key(name, address, prepared)
    store = SolutionStore(options.store, entry, prepared.paths, inputs, options.parameters)
    found = [
        bound_of_paths(run, paths, one, store.cached(number, paths))
        for number, (paths, one) in enumerate(zip(prepared.paths, inputs, strict=True))
    ]
    store.save([None if answer.parametric else answer.worst for answer in found])
    return found


def _refuse_contradicted(
    run: AnalysisRun, paths: PreparedPaths, inputs: ProgramInputs, answer: EntryBound
) -> None:
    """Raise FactsError for a fact that no execution satisfies, unless the bound is a function."""
    if answer.parametric is None:
        refuse_contradicted(
            paths.graph,
            paths.costs,
            answer.bounds,
            inputs.constraints,
            paths.prefix,
            answer.worst.solution,
            solver=solver_named(run.options.solver),
            seconds=run.options.time_limit,
            place=run.image.place,
        )


def bound_of_paths(
    run: AnalysisRun,
    paths: PreparedPaths,
    inputs: ProgramInputs,
    known: WorstCase | None = None,
    *,
    with_path: bool = True,
) -> EntryBound:
    """The solution of one integer program; ``known``: a cached one; ``with_path``: with a path."""
    return bound_entry(
        paths.graph,
        paths.costs,
        paths.bounds,
        inputs.constraints,
        inputs.parameters,
        run.options.parameters,
        paths.execution,
        inputs.exclusions,
        solver=solver_named(run.options.solver),
        seconds=run.options.time_limit,
        place=run.image.place,
        known=known,
        with_path=with_path,
    )


def _result(
    run: AnalysisRun,
    name: str,
    address: int,
    paths: PreparedPaths,
    inputs: ProgramInputs,
    answer: EntryBound,
) -> EntryResult:
    """The result with the assumptions on which the bound depends."""
    assumptions = (
        *(a for b in answer.bounds for a in b.assumptions),
        *(limit.assumption for limit in answer.limits),
        *(stated(c.fact) for c in inputs.constraints),
        *(paths.execution.assumed if paths.execution and 0 in paths.execution.edges else ()),
    )
    context = paths.graph.nodes[paths.graph.entry].context
    return EntryResult(
        name=name,
        symbol=run.image.place(address & ~1),
        address=address & ~1,
        graph=paths.graph,
        costs=paths.costs,
        bounds=answer.bounds,
        solution=answer.worst.solution,
        path=answer.worst.path,
        infeasible=(),
        assumptions=assumptions,
        parametric=answer.parametric,
        example=answer.example,
        constraints=inputs.constraints,
        model=answer.worst.model,
        numbers=answer.numbers,
        exclusions=() if answer.parametric else inputs.exclusions,
        starts=(
            StartBound(paths.start, context, answer.worst.solution.cycles, paths.begins_inside),
        ),
    )
