"""Facts against proofs, and messages for loops without a bound."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.slice import Slice, slice_loops
from quoll.errors import FactsError
from tests.testing.loopbounds.bounded import APART, GUARDED, LINES, function, only, stated
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

pytestmark = pytest.mark.slow("compiles programs and proves the bounds of their loops")


def test_a_looser_fact_loses_to_the_proof() -> None:
    """The proved bound is used, and labelled as proved."""
    bound = only(function("fixed").bounds(stated(3, 1000), BoundOptions(prove_stated=True)))
    assert (bound.bound, bound.exact, bound.method) == (37, True, "nusmv")


def test_a_fact_below_the_only_execution_is_refuted() -> None:
    """The error names the fact's line and shows the trace."""
    with pytest.raises(FactsError, match=r"my\.facts:7: .*executed 37 times.*execution 37: ") as e:
        function("fixed").bounds(stated(3, 36))
    assert e.value.hint == "state at least 37, or remove the fact"


def test_a_fact_below_what_some_arguments_give_is_refuted() -> None:
    """Registers at the entry may hold any word: the error names their values and a fact to add."""
    message = r"my\.facts:7: .*executed 63 times, not at most 9, where the path begins with r0 = 0x"
    with pytest.raises(FactsError, match=message) as e:
        function("masked").bounds(stated(8, 9))
    assert e.value.hint is not None
    assert "state at least 63, or limit the initial value: 'register r0 at 0x" in e.value.hint


@pytest.mark.parametrize("name", ["checked", "bounded", "late"])
def test_what_arguments_cannot_reach_is_not_refuted(name: str) -> None:
    """Conditions on the way in, and words that the program reads, are no arguments."""
    *_, bound = load(build(GUARDED, *APART), name).bounds(stated(LINES[name], 12))
    assert (bound.bound, bound.method) == (12, "fact")


def test_a_guarded_loop_is_refuted_by_arguments_that_pass() -> None:
    """The guard is part of the counterexample."""
    code = load(build(GUARDED, *APART), "open")
    with pytest.raises(FactsError, match="executed 20 times, not at most 12") as e:
        code.bounds(stated(LINES["open"], 12))
    [value] = re.findall(r"r0 = (0x[0-9a-f]+)", str(e.value))
    assert code.counts((int(value, 16), 0)) == {code.header(code.bounds()[0]): 20}


def test_a_tighter_fact_that_may_hold_is_an_assumption() -> None:
    """Some arguments exceed it, but callers decide which occur."""
    masked = function("masked")
    for options, said in (
        (
            BoundOptions(prove_stated=True),
            "my.facts:7 (assumed, not proved; the proved bound is 63)",
        ),
        (BoundOptions(), "my.facts:7 (assumed, no proof was tried)"),
    ):
        bound = only(masked.bounds(stated(8, 9), options, called=True))
        assert (bound.bound, bound.exact, bound.method) == (9, None, "fact")
        assert bound.explained == said


def test_a_looser_fact_counts_unless_a_proof_is_asked_for() -> None:
    """Who states a bound saves the time of a proof."""
    masked = function("masked")
    assert only(masked.bounds(stated(8, 90))).bound == 90
    bound = only(masked.bounds(stated(8, 90), BoundOptions(prove_stated=True)))
    assert (bound.bound, bound.method) == (63, "nusmv")


def test_a_stated_loop_is_proved_where_another_needs_it() -> None:
    """The second is executed as often as the first leaves behind."""
    text = """volatile int sink;
    int main(unsigned n) {
        unsigned total = 0;
        for (unsigned i = 0; i < (n & 7); i++) { sink = i; total += 2 + (sink & 1); }
        for (unsigned k = 0; k < total; k++) sink = 1;
        return 0;
    }"""
    first, _ = load(build(text), "main").bounds(stated(4, 100))
    assert (first.bound, first.method) == (7, "nusmv")


def test_a_fact_for_what_cannot_be_proved() -> None:
    """The list's length is an assumption."""
    bound = only(function("list").bounds(stated(13, 12)))
    assert (bound.bound, bound.method) == (12, "fact")
    assert bound.explained == "my.facts:7 (assumed, no proof was tried)"
    bound = only(function("list").bounds(stated(13, 12), BoundOptions(prove_stated=True)))
    assert bound.explained == "my.facts:7 (assumed, not proved)"


def test_a_loop_without_a_bound_says_what_to_add() -> None:
    """The value that is unbounded is named, and the line of the fact is given."""
    bound = only(function("list").bounds())
    assert bound.bound is None
    assert "nothing bounds the word that 'ldr " in str(bound.reason)
    assert "add 'loop prog.c:1" in str(bound.reason)


def test_a_fact_about_no_loop_is_refused() -> None:
    """A reached line outside every loop is an error; a line of other code is not."""
    with pytest.raises(FactsError, match=r"my\.facts:7: 'prog\.c:6' is in no loop"):
        function("fixed").bounds(stated(6, 3))
    assert only(function("fixed").bounds(stated(13, 3))).bound == 37


def test_loops_that_wait_for_each_other() -> None:
    """Neither has a bound: before, their queries were repeated without end."""
    text = """volatile unsigned sink;
    int main(unsigned a, unsigned b) {
        while (a != b) {
            while (b * 3 != a * 5) b = b * 7 + sink;
            a = a * 3 + b;
        }
        return a;
    }"""
    options = BoundOptions(Budget(seconds=1))
    bounds = load(build(text), "main").bounds(options=options)
    assert [(b.bound, b.failed) for b in bounds] == [(None, False), (None, False)]


def test_contradictions_are_looked_for_in_few_contexts_and_once_if_that_is_costly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where that is cheap: contexts of one loop cost the same, and share their values."""
    source = """
    volatile unsigned sink;
    __attribute__((noinline)) void spin(unsigned n) { for (; n; n--) sink = n; }
    int main(void) { spin(3); spin(4); spin(5); return 0; }
    """
    code = load(build(source, optimise="-O1"))
    tried: list[int] = []
    values: set[GatedSsa] = set()

    def counted(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        tried.extend(loops)
        values.add(ssa)
        return slice_loops(ssa, loops)

    monkeypatch.setattr("loopbounds.bounds.slice_loops", counted)
    found = code.bounds(stated(3, 9))
    assert [b.bound for b in found] == [9, 9, 9]
    assert (len(tried), len(values)) == (3, 1)
    tried.clear()
    with monkeypatch.context() as patch:
        patch.setattr("loopbounds.budgets.table.REFUTING_CONTEXTS", 2)
        assert [b.bound for b in code.bounds(stated(3, 9))] == [9, 9, 9]
    assert len(tried) == 2
    tried.clear()
    monkeypatch.setattr("loopbounds.budgets.table.REFUTING_VALUES", 0)
    assert [b.bound for b in code.bounds(stated(3, 9))] == [9, 9, 9]
    assert len(tried) == 1


def test_a_search_for_contradictions_may_end_at_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice may be within the effort, and the conditions on the way to its loop beyond it."""
    source = """
    volatile unsigned sink, cells[4];
    int main(unsigned n, unsigned a) {
        if (cells[0] == a) return 1;
        if (cells[1] == a) return 2;
        if (cells[2] == a) return 3;
        n &= 63;
        do sink = n; while (n--);
        return 0;
    }
    """
    code = load(build(source, optimise="-O1"))
    monkeypatch.setattr("loopbounds.budgets.table.WAY_IN", 1)
    for values in range(0, 24, 2):
        monkeypatch.setattr("loopbounds.budgets.table.REFUTING_VALUES", values)
        *_, bound = code.bounds(stated(8, 12))
        assert (bound.bound, bound.method) == (12, "fact")
