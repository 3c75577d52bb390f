"""Values reused between rounds equal values computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.slicing.cell import Cell
from loopbounds.slicing.gated_ssa import GatedSsa, OutOfEffort, SsaScope
from loopbounds.slicing.memo import MemoTable, UnboundedCounter
from loopbounds.slicing.slice import Slice, slice_loops
from loopbounds.terms.bit_vectors import Term
from tests.testing.harness.cases import spread
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

NESTS = """
volatile unsigned sink;
unsigned words[32];
__attribute__((noinline)) unsigned log2(unsigned n) {
    unsigned k = 0;
    while (n >>= 1) k++;
    return k;
}
__attribute__((noinline)) void clear(unsigned *p, unsigned n) {
    for (unsigned i = 0; i < n; i++) { p[i] = 0; for (unsigned j = i; j < n; j++) sink = j; }
}
int main(unsigned a) {
    unsigned size = 0, k = 0;
    for (unsigned i = 0; i < (a & 15); i++) size += 2;
    for (unsigned i = 0; i < size; i++) words[i] = log2(a) + i;
    clear(words, size);
    while (k < size && words[k] < 40) { k++; for (unsigned j = k; j < size; j++) sink = words[j]; }
    for (unsigned i = 0; i < k; i++) sink = i;
    return k;
}
"""


def test_an_answer_passes_if_a_loop_without_a_bound_was_met() -> None:
    """Temporary values make other values temporary, at any time; all others are final."""
    unbounded = UnboundedCounter()
    memo, other = MemoTable[str, int](unbounded), MemoTable[str, int](unbounded)
    memo.keep("sure", 1, since=unbounded.met)
    since = unbounded.met
    unbounded.met += 1
    memo.keep("open", 2, since)
    since = unbounded.met
    assert memo.get("sure") == 1
    other.keep("made of what is sure", 3, since)
    since = unbounded.met
    assert memo.get("open") == 2
    other.keep("made of what passes", 4, since)
    kept, made = memo.for_good(), other.for_good()
    assert [kept.get(key) for key in ("sure", "open")] == [1, None]
    assert [made.get(f"made of what {key}") for key in ("is sure", "passes")] == [3, None]
    assert memo.get("open") == 2  # the old table still has it


def test_what_rests_on_an_answer_that_is_presumed_passes() -> None:
    """The presumption itself is final, once it is confirmed without temporary values."""
    unbounded = UnboundedCounter()
    memo = MemoTable[str, bool](unbounded)
    outer = unbounded.met
    memo.presume("changed", value=True)
    inner = unbounded.met
    assert memo.get("changed")
    memo.keep("part", value=True, since=inner)
    memo.keep("changed", value=False, since=outer)
    kept = memo.for_good()
    assert (kept.get("part"), kept.get("changed")) == (None, None)
    since = unbounded.met
    kept.presume("kept", value=True)
    kept.keep("kept", value=False, since=since)
    assert kept.for_good().get("kept") is False


@pytest.mark.slow("slices every loop of a program twice")
@pytest.mark.parametrize("level", spread(["-Os", "-O1"], 1))
def test_each_round_finds_what_it_would_find_from_the_start(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many bounds: the same models, and no assumption less. It looks for fewer values."""
    rounds, looked = list[int](), Counter[str]()
    found = SsaScope._find
    who = "round"

    def counted(scope: SsaScope, node: int, cell: Cell) -> Term:
        looked[who] += 1
        return found(scope, node, cell)

    def compared(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        nonlocal who
        slices = slice_loops(ssa, loops)
        who = "anew"
        anew = slice_loops(GatedSsa(ssa.code), loops)
        who = "round"
        assert {i: s.model for i, s in slices.items()} == {i: s.model for i, s in anew.items()}
        assert all(anew[i].assumed <= s.assumed for i, s in slices.items())
        rounds.append(len(loops))
        return slices

    monkeypatch.setattr(SsaScope, "_find", counted)
    monkeypatch.setattr("loopbounds.proof.rounds.slice_loops", compared)
    bounds = load(build(NESTS, optimise=level)).bounds(options=BoundOptions(Budget(seconds=1)))
    assert len(rounds) > 2
    assert looked["round"] < 0.8 * looked["anew"]
    assert sum(b.bound is not None for b in bounds) > len(bounds) / 2


@pytest.mark.slow("slices every loop of a program several times")
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_values_that_were_cut_off_are_found_again(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the effort ends, the models are the ones that no effort limits."""
    ended = 0

    def interrupted(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        nonlocal ended
        for effort in (1, 5, 20, 60, 150, 400):
            with ssa.limited(effort), suppress(OutOfEffort):
                ended += 1
                slice_loops(ssa, loops)
                ended -= 1
        slices = slice_loops(ssa, loops)
        anew = slice_loops(GatedSsa(ssa.code, by_itself=ssa.by_itself), loops)
        assert {i: s.model for i, s in slices.items()} == {i: s.model for i, s in anew.items()}
        return slices

    monkeypatch.setattr("loopbounds.proof.rounds.slice_loops", interrupted)
    load(build(NESTS, optimise=level)).bounds(options=BoundOptions(Budget(seconds=1), workers=0))
    assert ended > 20
