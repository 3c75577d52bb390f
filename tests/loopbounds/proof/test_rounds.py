"""Loops that wait for each other are sliced again only when they may have got a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from loopbounds.budgets import table
from loopbounds.proof import rounds
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.prove import ProofOutcome, prove_model
from loopbounds.slicing.cell import HeaderCell
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.slice import Slice, slice_loops
from loopbounds.transition.model import LoopModel
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

NESTED = 8


def nest() -> str:
    """Counters on the stack: what each loop finds depends on all loops inside of it."""
    begin = "".join(f"mov r0, #2\nstr r0, [sp, #{4 * i}]\nl{i}:\n" for i in range(NESTED))
    end = "".join(
        f"ldr r0, [sp, #{4 * i}]\nsubs r0, r0, #1\nstr r0, [sp, #{4 * i}]\nbne l{i}\n"
        for i in reversed(range(NESTED))
    )
    head = ".syntax unified\n.arm\n.global main\n.type main, %function\nmain:\n"
    return f"{head}sub sp, sp, #64\n{begin}{end}add sp, sp, #64\nbx lr\n"


BITS = """
__attribute__((noinline)) unsigned bits(unsigned n) {
    unsigned found = 0;
    for (; n; n >>= 1) { found++; __asm__ volatile("" : "+r"(found)); }
    return found;
}
int main(unsigned a, unsigned b) {
    return bits(a) + bits(b & 255) + bits(bits(a ^ b) + b) + bits((b & 1) + 6) + bits(~a);
}
"""

CHAINS = """
unsigned other[64];
__attribute__((noinline)) unsigned chain(unsigned *p, unsigned *to) {
    volatile unsigned left = 4;
    for (; p && left; p = (unsigned *)*p) { *to++ = 1; left--; }
    return left;
}
int main(unsigned *a, unsigned *b) {
    unsigned words[64];
    return chain(a, words) + chain(b, other) + words[1];
}
"""


@pytest.mark.slow("compiles a program")
def test_later_passes_know_the_words_that_hold_stack_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pass that finds these words itself, by more restarts, has the same models."""
    restarts, passes = list[GatedSsa](), list[tuple[GatedSsa, GatedSsa]]()
    restart = GatedSsa.restart

    def counted(ssa: GatedSsa, tainted: frozenset[HeaderCell]) -> None:
        restarts.append(ssa)
        restart(ssa, tainted)

    def compared(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        slices = slice_loops(ssa, loops)
        anew = GatedSsa(ssa.code, by_itself=ssa.by_itself)
        models = {i: cut.model for i, cut in slice_loops(anew, loops).items()}
        assert {i: cut.model for i, cut in slices.items()} == models
        passes.append((ssa, anew))
        return slices

    monkeypatch.setattr(GatedSsa, "restart", counted)
    monkeypatch.setattr(rounds, "slice_loops", compared)
    bounds = load(build(CHAINS, optimise="-O1")).bounds(options=BoundOptions(workers=0))
    assert [bound.bound for bound in bounds] == [None, 5]
    known = {ssa: anew for ssa, anew in reversed(passes) if len(ssa.code.graph.loops) > 1}
    later = {ssa: anew for ssa, anew in known.items() if ssa.by_itself or ssa.code.pointed}
    assert {ssa.by_itself for ssa in later} == {True, False}
    assert all(restarts.count(ssa) < restarts.count(anew) for ssa, anew in later.items())


@pytest.mark.slow("compiles a program")
def test_a_second_run_starts_with_the_values_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As facts about loops do for which others wait: they are proved in a run of their own.

    A third one slices no loop: all bounds were known to the second.
    """
    made, again, sliced = list[GatedSsa](), list[GatedSsa](), list[int]()
    restart, run = GatedSsa.restart, rounds.ProofRounds.run

    def counted(ssa: GatedSsa, tainted: frozenset[HeaderCell]) -> None:
        made.append(ssa)
        restart(ssa, tainted)

    def twice(proofs: rounds.ProofRounds, loops: Sequence[int]) -> None:
        run(proofs, loops)
        first = dict(proofs.outcomes)
        made.clear()
        run(proofs, loops)
        again.extend(made)
        sliced.clear()
        run(proofs, loops)
        assert not sliced
        assert proofs.outcomes == first

    def noted(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        sliced.extend(loops)
        return slice_loops(ssa, loops)

    monkeypatch.setattr(GatedSsa, "restart", counted)
    monkeypatch.setattr(rounds, "slice_loops", noted)
    monkeypatch.setattr(rounds.ProofRounds, "run", twice)
    bounds = load(build(CHAINS, optimise="-O1")).bounds(options=BoundOptions(workers=0))
    assert [bound.bound for bound in bounds] == [None, 5]
    assert not again


@pytest.mark.slow("compiles programs and proves the bounds of their loops")
def test_contexts_share_the_bound_for_any_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a context may reach it; the others have their own, and no bound is larger."""
    proofs: list[LoopModel] = []

    def counted(model: LoopModel, *rest: Any) -> ProofOutcome:
        proofs.append(model)
        return prove_model(model, *rest)

    monkeypatch.setattr(rounds, "prove_model", counted)
    code = load(build(BITS, optimise="-O1"))
    options = BoundOptions(workers=0)
    shared, few = [b.bound for b in code.bounds(options=options)], len(proofs)
    monkeypatch.setattr(table, "SHARING_CONTEXTS", 1000)
    alone = [b.bound for b in code.bounds(options=options)]
    assert shared == alone
    assert sorted(bound for bound in shared if bound is not None) == [3, 8, 32, 32, 32, 32]
    assert few < len(proofs) - few


@pytest.mark.slow("compiles programs and proves the bounds of their loops")
def test_each_round_slices_one_loop_of_a_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops once, then each one as the loop inside of it is bounded: not all in each round."""
    sliced: list[int] = []

    def counted(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        sliced.extend(loops)
        return slice_loops(ssa, loops)

    monkeypatch.setattr(rounds, "slice_loops", counted)
    bounds = load(build(nest(), language="asm")).bounds()
    assert [bound.bound for bound in bounds] == [2] * NESTED
    assert [bound.exact for bound in bounds] == [True] * NESTED
    assert len(sliced) < 2 * NESTED
