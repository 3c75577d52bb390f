"""Minimal sets of conditions that cannot hold together, by an SMT solver.

Conditions without a common symbol do not matter to each other. So they are checked in groups, each
of conditions that are connected by symbols. A core of a group has no smaller core inside. A check
that is stopped, or fails, counts as satisfiable: it proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from loopbounds.budgets.budget import StepLimits
from loopbounds.smt.solver import Formula, SearchFailed, SmtResult, SmtSolver
from loopbounds.smt.translation import SmtTranslation
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term
from loopbounds.terms.well_typed import IllTyped

__all__ = ["CHECK", "Over", "as_smt_lib", "connected", "contradictory", "core_of", "cores"]

CHECK = StepLimits(steps=20_000, seconds=5)  # a check takes milliseconds; some hundreds are made
Conditions = Mapping[int, Term]  # by edge
Ranges = Callable[[Sequence[Term]], Sequence[Term]]  # conditions on the symbols that always hold
Over = Callable[[], bool]  # whether the time for a search is over


def contradictory(conditions: Sequence[Term], ranges: Ranges) -> bool:
    """Whether it is proved that ``conditions`` cannot hold together."""
    if FALSE in conditions:
        return True
    solver = SmtSolver()
    try:
        found = solver.check(translated(solver, [*conditions, *ranges(conditions)]), CHECK)
    except (SearchFailed, IllTyped):
        return False
    return found.result is SmtResult.UNSAT


def as_smt_lib(conditions: Sequence[Term], ranges: Ranges) -> str:
    """The check of ``contradictory`` as SMT-LIB 2; "" where a term has no translation."""
    solver = SmtSolver()
    try:
        return solver.text(translated(solver, [*conditions, *ranges(conditions)]))
    except IllTyped:
        return ""


def translated(solver: SmtSolver, terms: Sequence[Term]) -> list[Formula]:
    """``terms`` over new symbols of ``solver``. Raises IllTyped."""
    symbols = {s: solver.symbol(f"{s.name}.{s.serial}", s.width) for s in rewrite.symbols(terms)}
    return SmtTranslation(solver, symbols).of(terms)


def core_of(conditions: Conditions, ranges: Ranges) -> tuple[int, ...]:
    """The edges of a minimal contradiction among ``conditions``; () if there is none.

    An edge is left out if the others contradict each other without it.
    """
    if not contradictory(list(conditions.values()), ranges):
        return ()
    left = dict(conditions)
    for edge in conditions:
        others = {e: c for e, c in left.items() if e != edge}
        if others and contradictory(list(others.values()), ranges):
            left = others
    return tuple(left)


def cores(
    conditions: Conditions, ranges: Ranges, over: Over = lambda: False
) -> Iterator[tuple[int, ...]]:
    """Minimal contradictions in each group, until the rest has none or the time is over."""
    for group in connected(conditions):
        left = dict(group)
        while not over() and (core := core_of(left, ranges)):
            yield core
            del left[core[-1]]


def connected(conditions: Conditions) -> list[dict[int, Term]]:
    """The conditions in groups without common symbols; those that always hold are left out."""
    groups: list[tuple[set[Term], dict[int, Term]]] = []
    for edge, condition in conditions.items():
        if condition is TRUE:
            continue
        symbols, members = rewrite.symbols([condition]), {edge: condition}
        apart: list[tuple[set[Term], dict[int, Term]]] = []
        for other in groups:
            if symbols.isdisjoint(other[0]):
                apart.append(other)
            else:
                symbols, members = symbols | other[0], other[1] | members
        groups = [*apart, (symbols, members)]
    return [members for _, members in groups]
