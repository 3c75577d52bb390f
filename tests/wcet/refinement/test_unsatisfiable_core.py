"""Minimal contradictions among conditions."""

from __future__ import annotations

from collections.abc import Sequence

from loopbounds.terms.bit_vectors import Term, const, eq, negate, sym, ule, ult
from wcet.refinement.unsatisfiable_core import connected, contradictory, core_of, cores

X, Y, Z = (sym(name, 32) for name in "xyz")


def nothing_known(conditions: Sequence[Term]) -> list[Term]:
    return []


def number(value: int) -> Term:
    return const(value, 32)


def test_a_core_has_no_smaller_core() -> None:
    conditions = {4: ult(X, number(9)), 7: ult(Y, number(3)), 5: ule(X, Y), 9: ult(number(5), X)}
    assert core_of(conditions, nothing_known) == (7, 5, 9)
    assert core_of({e: c for e, c in conditions.items() if e != 5}, nothing_known) == ()


def test_each_group_has_its_cores() -> None:
    conditions = {1: eq(X, number(1)), 2: eq(Y, number(1)), 3: eq(X, number(2)), 4: eq(Y, Y),
                  5: negate(eq(Y, number(1))), 6: eq(X, number(3))}  # fmt: skip
    groups = {frozenset(group) for group in connected(conditions)}
    assert groups == {frozenset({1, 3, 6}), frozenset({2, 5})}
    found = [set(core) for core in cores(conditions, nothing_known)]
    assert {2, 5} in found
    assert all(len(core) == 2 for core in found)
    assert not list(cores(conditions, nothing_known, lambda: True)), "no time is left"
    left = iter((False, True))
    assert len(list(cores(conditions, nothing_known, lambda: next(left, True)))) == 1


def test_ranges_of_values_take_part() -> None:
    above = {1: ult(number(100), X)}
    assert not contradictory(list(above.values()), nothing_known)
    assert contradictory(list(above.values()), lambda conditions: [ule(X, number(50))])


def test_an_edge_never_taken_is_a_core_by_itself() -> None:
    assert core_of({3: ult(X, number(0)), 8: ult(Z, number(4))}, nothing_known) == (3,)
