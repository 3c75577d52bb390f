"""Shared contexts: no execution exceeds a bound, and a shorter call string never tightens one."""

from __future__ import annotations

import pytest

from quoll.errors import UnboundedLoop
from quoll.inlining.vivu import Vivu
from tests.testing.loopbounds.saving import SWITCHING
from tests.testing.quoll.building import build
from tests.testing.wcet.calling import calling_program
from tests.testing.wcet.programs import CODE, FLAGS, bound, check


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("seed", [3, 5, 6])
def test_shorter_strings_cover_what_runs_and_are_never_tighter(seed: int) -> None:
    elf = calling_program(seed, ("-O2", "-O1", "-O2", "-Os")[seed % 4])
    bounds, contexts = [], []
    for length in (None, 2, 0):
        try:
            entry = (result := bound(elf, vivu=Vivu(length))).entries["main"]
        except UnboundedLoop:
            assert length is not None, "these programs are bounded with full strings"
            continue
        assert entry.path.unrealisable is None
        for case in check(result, seed, inputs=3, states=2):
            assert case.most <= case.charged <= case.bound
        bounds.append(entry.cycles)
        contexts.append(len(entry.graph.contexts))
    assert bounds == sorted(bounds)
    assert contexts == sorted(contexts, reverse=True)
    assert contexts[-1] < contexts[0]


@pytest.mark.slow("several whole analyses")
def test_long_strings_are_full_strings() -> None:
    elf = calling_program(5, "-O1")
    whole, long = bound(elf).entries["main"], bound(elf, vivu=Vivu(99)).entries["main"]
    assert long.graph == whole.graph
    assert long.costs == whole.costs
    assert long.solution == whole.solution
    assert long.path == whole.path


TWICE = """
unsigned cells[64];
__attribute__((noinline, noclone)) void set(unsigned *at, unsigned x) { *at = x; }
__attribute__((noinline, noclone)) unsigned sum(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < n; i++) s += cells[i & 63];
    return s;
}
unsigned main(unsigned a) {
    unsigned local = 7;
    set(&local, a & 1);
    set(&cells[3], 9);
    return sum(5) + sum(20) + local;
}
"""


@pytest.mark.slow("several whole analyses")
def test_values_of_all_callers_meet_in_a_shared_context() -> None:
    """A loop that depends on an argument is bounded by the largest one; addresses stay known."""
    elf = build(TWICE, *FLAGS, optimise="-O1", link=(CODE,))
    whole, shared = bound(elf).entries["main"], bound(elf, vivu=Vivu(0))
    assert sorted(b.bound or 0 for b in whole.bounds) == [5, 20]
    entry = shared.entries["main"]
    assert [b.bound for b in entry.bounds] == [20]
    assert entry.cycles > whole.cycles
    assert len(entry.graph.contexts) == 3
    check(shared, 1, inputs=4, states=3)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("store", "bound_is"),
    [("ldr r6, [r0]\n  str r1, [r6]", 4), ("mvn r6, #43\n  str r1, [r6]", None)],
)
def test_a_shared_context_knows_the_stack_that_callers_switch_to(
    store: str, bound_is: int | None
) -> None:
    """Only code outside of it says where that is. 0xffffffd4 is where r4 is kept (rules 1, 34)."""
    elf = build(SWITCHING.replace("STORE", store), *FLAGS, language="asm", link=(CODE,))
    if bound_is is None:
        with pytest.raises(UnboundedLoop):
            bound(elf, vivu=Vivu(0))
    else:
        assert [b.bound for b in bound(elf, vivu=Vivu(0)).entries["main"].bounds] == [bound_is]
