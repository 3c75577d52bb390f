"""The answers of an entry's integer programs, kept by content (rules 30 and 31).

Their key is the one under which the entry itself is kept, with what only the integer programs read:
the constraints as they are resolved in each graph, and parameters with their values. The bounds of
loops are in the key as well: a proof that is made anew may give another one. So after an
edit of a constraint, the programs of the entries that it constrains are solved again, and no
others. An answer is kept if a path reaches the bound: what the clock cut off is not. It is recalled
only if the path goes through this graph and costs as much as the bound.

Where there is none, that of the same programs without constraints is recalled: no path exceeds its
bound with them either. ``ilp.entry`` takes it if its path satisfies them, and else solves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ilp.constraints.constraint import Constraint
from ilp.constraints.parameters import Parameter
from ilp.paths.check import path_cycles
from ilp.paths.solution import PathStep, Solution, WorstPath
from ilp.worst_case import WorstCase
from quoll.inlining.supergraph import Supergraph
from quoll.kept.identity import key_of
from quoll.kept.store import Store
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.request_key import LEFT_OUT

__all__ = ["Asked", "SolvedEntry", "SolvedProgram", "SolvedStore"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What only the integer program of the paths from one start reads."""

    constraints: tuple[Constraint, ...]
    parameters: Mapping[int, Parameter]  # by loop


@dataclass(frozen=True, slots=True)
class SolvedProgram:
    """The solution, and its path as the edges that are taken from the entry on."""

    solution: Solution
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SolvedEntry:
    """A record: one program for each start of paths."""

    programs: tuple[SolvedProgram, ...]


class SolvedStore:
    """The answers for one entry: those that are recalled, and those to be kept.

    ``entry`` is the key of what the programs are made from; empty: nothing is kept. ``paths`` and
    ``asked``: one for each start. ``values``: of parameters, by name.
    """

    def __init__(
        self,
        store: Store,
        entry: str,
        paths: Sequence[PreparedPaths],
        asked: Sequence[Asked],
        values: Mapping[str, int],
    ) -> None:
        self._store = store
        named = {p.name for one in asked for p in one.parameters.values()}
        used = {name: value for name, value in values.items() if name in named}
        loops = tuple(tuple(bound.bound for bound in one.bounds) for one in paths)

        def key(these: Sequence[Asked]) -> str:
            parts = entry, loops, tuple(these), used
            return entry and key_of("programs", *parts, left_out=LEFT_OUT)

        self._key = key(asked)
        self._kept = programs_under(store, self._key, len(asked))
        self._without: tuple[SolvedProgram, ...] | None = None
        if self._kept is None and any(one.constraints for one in asked):
            free = [replace(one, constraints=()) for one in asked]
            self._without = programs_under(store, key(free), len(free))

    def recalled(self, start: int, paths: PreparedPaths) -> WorstCase | None:
        """The answer for the paths from a start, by number, or that without constraints."""
        programs = self._kept or self._without
        return None if programs is None else restored(programs[start], paths)

    def keep(self, found: Sequence[WorstCase | None]) -> None:
        """Write down the answers for all starts, unless one may not be kept, or they were read."""
        solved = tuple(one for worst in found if (one := solved_of(worst)) is not None)
        if self._key and self._kept is None and len(solved) == len(found):
            self._store.keep(self._key, SolvedEntry(solved))


def programs_under(store: Store, key: str, starts: int) -> tuple[SolvedProgram, ...] | None:
    """The programs of a record, one for each start, if it is there."""
    kept: SolvedEntry | None = store.value(key, SolvedEntry) if key else None
    return kept.programs if kept and len(kept.programs) == starts else None


def solved_of(worst: WorstCase | None) -> SolvedProgram | None:
    """What is kept of an answer; None if no path reaches its bound."""
    if worst is None or not worst.solution.optimal or worst.path.unrealisable is not None:
        return None
    edges = (step.edge for step in worst.path.steps)
    return SolvedProgram(worst.solution, tuple(edge for edge in edges if edge is not None))


def restored(solved: SolvedProgram, paths: PreparedPaths) -> WorstCase | None:
    """The answer in this graph; None if it is of another one."""
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
