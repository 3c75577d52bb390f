"""The solutions of an entry's integer programs, stored by content (rules 30 and 31).

Their key is the key of the stored entry, with the inputs of the integer programs only: the
constraints as they are resolved in each graph, the rows of proved exclusions, and parameters with
their values. The bounds of
loops are in the key as well: a repeated proof may give another one. So after an edit of a
constraint, only the programs of the entries that it constrains are solved again. A solution is
stored if a path reaches the bound, never after a time-out. It is reused only if the path goes
through this graph and costs as much as the bound.

On a miss, the solution of the same programs without constraints is reused: no path exceeds its
bound with them either. ``ilp.entry`` reuses it if its path satisfies them, and solves otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.parameters import LoopBoundParameter
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import IlpSolution, PathStep, WorstPath
from ilp.worst_case import WorstCase
from quoll.inlining.supergraph import Supergraph
from quoll.results.cache_key import key_of
from quoll.results.results_store import ResultsStore
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.request_key import LEFT_OUT

__all__ = ["EntrySolution", "ProgramInputs", "ProgramSolution", "SolutionStore"]


@dataclass(frozen=True, slots=True)
class ProgramInputs:
    """The inputs of the integer program alone, for the paths from one start."""

    constraints: tuple[Constraint, ...]
    parameters: Mapping[int, LoopBoundParameter]  # by loop
    exclusions: tuple[ProvedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramSolution:
    """The solution, and its path as the edges from the entry on."""

    solution: IlpSolution
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EntrySolution:
    """A record: one program for each start of paths."""

    programs: tuple[ProgramSolution, ...]


class SolutionStore:
    """The solutions for one entry: cached ones, and new ones to be stored.

    ``entry``: the key of the programs' other inputs; empty: nothing is stored. ``paths`` and
    ``inputs``: one for each start. ``values``: parameters by name.
    """

    def __init__(
        self,
        store: ResultsStore,
        entry: str,
        paths: Sequence[PreparedPaths],
        inputs: Sequence[ProgramInputs],
        values: Mapping[str, int],
    ) -> None:
        self._store = store
        named = {p.name for one in inputs for p in one.parameters.values()}
        used = {name: value for name, value in values.items() if name in named}
        loops = tuple(tuple(bound.bound for bound in one.bounds) for one in paths)

        def key(these: Sequence[ProgramInputs]) -> str:
            content = entry, loops, tuple(these), used
            return entry and key_of("programs", *content, left_out=LEFT_OUT)

        self._key = key(inputs)
        self._cached = programs_under(store, self._key, len(inputs))
        self._without: tuple[ProgramSolution, ...] | None = None
        if self._cached is None and any(one.constraints for one in inputs):
            free = [replace(one, constraints=()) for one in inputs]
            self._without = programs_under(store, key(free), len(free))

    def cached(self, start: int, paths: PreparedPaths) -> WorstCase | None:
        """The solution for the paths from a start, by number, or the one without constraints."""
        programs = self._cached or self._without
        return None if programs is None else restored(programs[start], paths)

    def save(self, found: Sequence[WorstCase | None]) -> None:
        """Store the solutions for all starts, unless one is not final, or all were cached."""
        solved = tuple(one for worst in found if (one := solved_of(worst)) is not None)
        if self._key and self._cached is None and len(solved) == len(found):
            self._store.save(self._key, EntrySolution(solved))


def programs_under(
    store: ResultsStore, key: str, starts: int
) -> tuple[ProgramSolution, ...] | None:
    """The programs of a record, one for each start, if it is there."""
    record: EntrySolution | None = store.load(key, EntrySolution) if key else None
    return record.programs if record and len(record.programs) == starts else None


def solved_of(worst: WorstCase | None) -> ProgramSolution | None:
    """The stored form of a solution; None if no path reaches its bound."""
    if worst is None or not worst.solution.optimal or worst.path.unrealisable is not None:
        return None
    edges = (step.edge for step in worst.path.steps)
    return ProgramSolution(worst.solution, tuple(edge for edge in edges if edge is not None))


def restored(solved: ProgramSolution, paths: PreparedPaths) -> WorstCase | None:
    """The solution in this graph; None if it belongs to another one."""
    steps = followed(paths.graph, solved.edges)
    solution = solved.solution
    if steps is None or path_cycles(paths.costs, steps) != solution.cycles:
        return None
    return WorstCase(solution, WorstPath(steps, solution.cycles, None), None)


def followed(graph: Supergraph, edges: Sequence[int]) -> tuple[PathStep, ...] | None:
    """A path from the entry over these edges to an exit; None if there is none."""
    steps, node = [], graph.entry
    for edge in edges:
        if not 0 <= edge < len(graph.edges) or graph.edges[edge].src != node:
            return None
        steps.append(PathStep(node, edge))
        node = graph.edges[edge].dst
    return (*steps, PathStep(node, None)) if node in graph.exits else None
