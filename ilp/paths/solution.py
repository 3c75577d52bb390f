"""The solution of the integer program: a proved bound and the counts that reach it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.costs import OptionCount

__all__ = ["IlpSolution", "PathStep", "WorstPath"]


@dataclass(frozen=True, slots=True)
class IlpSolution:
    """``cycles`` is the proved dual bound (rule 23); counts are integers that satisfy every row.

    Counts are empty if a time limit left none. ``calls``: the executions of limited calls that take
    an option (``pipeline.costs``).
    """

    cycles: int
    optimal: bool  # the counts reach ``cycles``
    nodes: tuple[int, ...]  # executions per node
    edges: tuple[int, ...]  # traversals per edge
    solver: str  # name and version
    method: str = ""  # the kind of proof, as ``ilp.solvers.solve`` names it
    calls: tuple[OptionCount, ...] = ()


@dataclass(frozen=True, slots=True)
class PathStep:
    """One execution of a node on the worst path; ``edge`` is the edge taken out of it."""

    node: int
    edge: int | None  # None at the end of the path


@dataclass(frozen=True, slots=True)
class WorstPath:
    """Contiguous steps from the entry to an exit, and the reason if they are no execution.

    With a reason the steps may violate a constraint or a bound, or be absent.
    """

    steps: tuple[PathStep, ...]
    cycles: int  # sum of the costs of the steps; equals Solution.cycles when realisable
    unrealisable: str | None  # rule 26
