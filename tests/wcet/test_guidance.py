"""Facts about paths through the whole analysis: executions take at most the bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from ilp.paths.outline import outline
from pipeline.costs import CostCause
from quoll.errors import InfeasibleError, UnboundedLoop
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound, check, guided, program
from wcet.cli import main


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("seed", [0, 3])
def test_a_function_replaced_by_its_own_bound_covers_what_runs(seed: int, tmp_path: Path) -> None:
    """Without its body: caches, pipeline, registers and memory are unknown after each call."""
    elf = program(seed, "-O1")
    whole = bound(elf)
    alone = guided(elf, tmp_path, "", "f0").entries["f0"].cycles
    fact = f"function f0 takes at most {alone} cycles"
    cut = guided(elf, tmp_path, fact).entries["main"]
    assert any(cut.graph.passed(e) for e in range(len(cut.graph.edges)))
    assert any(f": {fact}" in text for text in map(str, cut.assumptions))
    assert len(cut.graph.contexts) < len(whole.entries["main"].graph.contexts)
    cases = check(whole, seed, inputs=4, states=3)
    assert cases
    assert all(case.most <= cut.cycles for case in cases)
    assert cut.cycles >= whole.entries["main"].cycles


SIMPLE = ("-fno-ipa-ra", "-fno-if-conversion")
LOOPS = """
__attribute__((noinline)) int leaf(int x) { return x * x; }
int main(int n) {
    int sum = 0;
    for (int i = 0; i < 9; i++) {
        if (n & 1) sum += leaf(i); else sum -= n;
        n >>= 1;
    }
    return sum;
}
"""


@pytest.mark.slow("several whole analyses")
def test_a_loop_around_a_replaced_function_is_still_bounded(tmp_path: Path) -> None:
    elf = build(LOOPS, *SIMPLE, optimise="-O1", link=(CODE,))
    result = guided(elf, tmp_path, "function leaf takes at most 1000 cycles").entries["main"]
    assert [b.bound for b in result.bounds] == [9]
    assert result.cycles > 9 * 1000
    assert {len(cycles) for cycles in result.costs.edges} == {len(CostCause)}
    assert outline(result.graph, result.costs, result.solution).cycles == result.cycles


@pytest.mark.slow("several whole analyses")
def test_required_places_and_ignored_ones(tmp_path: Path) -> None:
    elf = build(LOOPS, *SIMPLE, optimise="-O1", link=(CODE,))
    whole = bound(elf).entries["main"].cycles
    without = guided(elf, tmp_path, "ignore leaf").entries["main"].cycles
    required = guided(elf, tmp_path, "leaf executes at most 2 times\nrequire leaf").entries["main"]
    assert without < required.cycles < whole
    assert required.path.unrealisable is None
    with pytest.raises(InfeasibleError, match="require leaf"):
        guided(elf, tmp_path, "leaf never executes\nrequire leaf")


@pytest.mark.slow("several whole analyses")
def test_the_command_warns_of_guidance_without_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = build(LOOPS, *SIMPLE, optimise="-O1", link=(CODE,))
    facts = tmp_path / "x.facts"
    facts.write_text("ignore leaf\nfunction main takes at most 9 cycles\n")
    status = main(["analyse", str(elf), "--platform", "kzm", "--entry", "main", "--quiet",
                   "--facts", str(facts), "--no-cache"])  # fmt: skip
    out, err = capsys.readouterr()
    assert status == 0
    assert ": ignore leaf\n" in out
    assert "no analysed entry is changed by 'function main takes at most 9 cycles'" in err


STAGES = """
unsigned cells[64];
__attribute__((noinline)) unsigned first(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < 40; i++) s += cells[i & (n | 31)];
    return s;
}
__attribute__((noinline)) unsigned second(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < 9; i++) s += cells[i & (n | 31)];
    return s;
}
unsigned main(unsigned a) { return first(a) + second(a) + second(a + 1); }
"""


@pytest.mark.slow("several whole analyses")
def test_paths_that_start_at_a_place(tmp_path: Path) -> None:
    """Paths start in each context of the place, with the values and loop bounds of the entry."""
    elf = build(STAGES, optimise="-O1", link=(CODE,))
    whole = bound(elf).entries["main"]
    fact = "path starts at second"
    late = guided(elf, tmp_path, fact).entries["main"]
    assert len(late.starts) == 2, "second is called twice"
    assert late.cycles == max(start.cycles for start in late.starts)
    assert late.cycles < whole.cycles - 40 * 4, "the loop of first is not on these paths"
    assert {b.bound for b in late.bounds} == {9}
    assert any(f": {fact}" in text for text in map(str, late.assumptions))
    one = guided(elf, tmp_path, "path starts at second\npath must end at second").entries["main"]
    assert one.cycles < late.cycles


HANDED = """
__attribute__((noinline)) unsigned set(unsigned a, unsigned b, unsigned c, unsigned d, unsigned *p)
{ *p = 100; return a; }
volatile unsigned sink;
unsigned main(unsigned a) {
    volatile unsigned n = 5;
    set(1, 2, 3, 4, ADDRESS);
    for (unsigned i = 0; i < n; i++) sink = i;
    return 0;
}
"""


@pytest.mark.slow("several whole analyses")
def test_a_replaced_function_that_is_handed_an_address_on_the_stack(tmp_path: Path) -> None:
    """The fifth argument is a word of the stack; through it the callee may store to a local."""
    fact = "function set takes at most 1000 cycles"
    flags = (*SIMPLE, "-fno-ipa-cp", "-fno-ipa-sra")
    spared = build(HANDED.replace("ADDRESS", "0"), *flags, optimise="-O1", link=(CODE,))
    assert [b.bound for b in guided(spared, tmp_path, fact).entries["main"].bounds] == [5]
    handed = HANDED.replace("ADDRESS", "(unsigned *)&n")
    elf = build(handed, *flags, optimise="-O1", link=(CODE,))
    with pytest.raises(UnboundedLoop, match="1 loop has no bound"):
        guided(elf, tmp_path, fact)
