"""Functions analysed once for all their calls: never below inlining, and only where it is sound."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.program import build as compile_program
from bench.program import generate
from loopbounds.proof.options import BoundOptions
from quoll.errors import ControlFlowError, UnboundedLoop
from quoll.image.image import Image
from quoll.inlining.sharing import SummarySettings
from tests.testing.harness.cases import spread
from tests.testing.loopbounds.saving import SWITCHING
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse as run
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import StageLog
from wcet.platforms.platform_model import DIRECTORY

pytestmark = pytest.mark.usefixtures("all_processors")

NEVER, ALWAYS = SummarySettings(contexts=1 << 62), SummarySettings(contexts=0, least=3)
CODE = ("-Wl,-Ttext=0xf0010000",)
FUNCTIONS = 25  # of a random program


def analyse(
    elf: Path,
    entry: str,
    sharing: SummarySettings,
    *,
    prove_stated: bool = False,
    platform: str = "kzm",
) -> EntryResult:
    bounds = BoundOptions(prove_stated=prove_stated)
    options = AnalysisOptions(
        (entry,), platform, None, (), True, (), "highs", 60.0, bounds, summary_settings=sharing
    )
    return run(elf, options, StageLog(verbose=False)).entries[entry]


def shared(entry: EntryResult) -> list[str]:
    return [a for a in map(str, entry.assumptions) if a.startswith("shared: ")]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("seed", spread([1, 3], 1))
def test_a_shared_bound_is_never_below_that_of_full_inlining(tmp_path: Path, seed: int) -> None:
    elf = compile_program(generate(FUNCTIONS, seed, recursion=False), tmp_path)
    plain, once = (analyse(elf, "entry", sharing) for sharing in (NEVER, ALWAYS))
    assert not shared(plain)
    assert shared(once)
    assert len(once.graph.contexts) < len(plain.graph.contexts) == FUNCTIONS
    assert plain.cycles <= once.cycles < 3 * plain.cycles


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("known", [False, True])
def test_a_function_knows_the_stack_that_its_callers_switch_to(known: bool) -> None:
    """Only code outside of it says where that is. 0xffffffd4 is where r4 is kept (rules 1, 34)."""
    store = "mvn r6, #43" if known else "ldr r6, [r0]"
    source = SWITCHING.replace("STORE", f"{store}\n  str r1, [r6]")
    elf = build(source, language="asm", link=CODE)
    if known:
        with pytest.raises(UnboundedLoop):
            analyse(elf, "main", SummarySettings(contexts=0, least=1))
    else:
        assert shared(analyse(elf, "main", SummarySettings(contexts=0, least=1)))


WINDOW = """
[[memory]]
name = "stack"
virtual = [0xFFFFF000, 0xFFFFFFFF]
physical = 0x87F00000
kind = "cached"
fixed = true

[[memory]]
name = "the same memory"
virtual = [0xE0000000, 0xE0000FFF]
physical = 0x87F00000
kind = "cached"
fixed = true
"""


@pytest.mark.slow("several whole analyses")
def test_a_function_knows_that_stack_by_its_other_name(tmp_path: Path) -> None:
    """0xe0000fd4 is where r4 is kept, too (rule 34)."""
    platform = tmp_path / "window.toml"
    platform.write_text((DIRECTORY / "kzm.toml").read_text() + WINDOW)
    store = "mov r6, #0xe0000000\n orr r6, r6, #0xfd0\n orr r6, r6, #4\n  str r1, [r6]"
    elf = build(SWITCHING.replace("STORE", store), language="asm", link=CODE)
    with pytest.raises(UnboundedLoop):
        analyse(elf, "main", SummarySettings(contexts=0, least=1), platform=str(platform))


INSIDE = """
volatile unsigned *volatile left;
__attribute__((noinline)) unsigned one(unsigned a) { __asm__ volatile("" ::: "memory"); return a; }
__attribute__((noinline)) unsigned two(unsigned a) { return a % 7 + one(a); }
__attribute__((noinline)) unsigned again(unsigned a) {
    return *left ? again(a - 1) + one(a) : a;
}
__attribute__((noinline)) unsigned work(unsigned a) {
    unsigned x = again(a);
    if (a & 16) x += one(x);
    if (x & 32) x += two(x);
    return x;
}
unsigned main(unsigned a) { return work(a) + work(a + 1); }
"""
FACTS = """\
recursion of again at most 4
one conflicts with two in work
"""


@pytest.mark.slow("several whole analyses")
def test_a_fact_about_a_shared_function_is_listed_and_not_called_unused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = tmp_path / "program.elf"
    shutil.copy(build(INSIDE, "-fno-optimize-sibling-calls", link=CODE), elf)
    elf.with_suffix(".facts").write_text(FACTS)
    plain, once = (analyse(elf, "main", sharing) for sharing in (NEVER, ALWAYS))
    assert capsys.readouterr().err == ""
    assert any("<work>" in text for text in shared(once))
    assert plain.cycles <= once.cycles
    facts = {a for a in map(str, plain.assumptions) if ".facts:" in a}
    assert len(facts) == 2
    assert facts <= set(map(str, once.assumptions))


@pytest.mark.slow("several whole analyses")
def test_a_depth_that_is_proved_is_not_called_unused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = tmp_path / "program.elf"
    source = INSIDE.replace("*left", "a & 3")
    shutil.copy(build(source, "-fno-optimize-sibling-calls", link=CODE), elf)
    elf.with_suffix(".facts").write_text(FACTS)
    for sharing in (NEVER, ALWAYS):
        result = analyse(elf, "main", sharing, prove_stated=True)
        assert capsys.readouterr().err == ""
        assert not any("recursion of" in text for text in map(str, result.assumptions))


ODD = """
__attribute__((noinline)) unsigned leaf(unsigned a) { __asm__ volatile("" ::: "memory"); return a; }
__attribute__((noinline)) unsigned plain(unsigned a) { return leaf(a) + leaf(a + 1); }
__attribute__((noinline)) unsigned counts(unsigned a) {
    unsigned x = 0;
    for (unsigned i = 0; i < a; i++) x += leaf(i);
    return x + leaf(a);
}
__attribute__((noinline)) unsigned spoils(unsigned a) {
    unsigned x = leaf(a) + leaf(a + 1);
    __asm__ volatile("mov r9, %0" :: "r"(x));
    return x;
}
unsigned main(unsigned a) {
    return plain(a) + plain(1) + counts(3) + counts(4) + spoils(a) + spoils(2);
}
"""


@pytest.mark.slow("several whole analyses")
def test_what_depends_on_callers_or_spoils_their_registers_stays_inlined() -> None:
    elf = build(ODD, "-fno-ipa-cp", "-fno-ipa-ra", "-fno-optimize-sibling-calls", link=CODE)
    entry = analyse(elf, "main", ALWAYS)
    assert [text.partition("<")[2].partition(">")[0] for text in shared(entry)] == ["plain"]
    assert sorted(b.bound for b in entry.bounds if b.bound is not None) == [3, 4]


TREE = """
__attribute__((noinline)) unsigned walk(unsigned *at, unsigned n) {
    at[n & 15]++;
    return at[n & 7] ? walk(at + 1, n - 1) + walk(at + 2, n - 2) : n;
}
unsigned main(unsigned *at, unsigned n) { return walk(at, n) + walk(at + 4, n) + 1; }
"""
RECURSIVE = ("-fno-optimize-sibling-calls", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-ra")


def deep(folder: Path, source: str, facts: str, sharing: SummarySettings) -> EntryResult:
    elf = folder / "program.elf"
    shutil.copy(build(source, *RECURSIVE, optimise="-O1", link=CODE), elf)
    elf.with_suffix(".facts").write_text(facts)
    return analyse(elf, "main", sharing)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_recursion_is_shared_one_activation_after_another(depth: int, tmp_path: Path) -> None:
    facts = f"recursion of walk at most {depth}\n"
    plain = deep(tmp_path, TREE, facts, NEVER)
    once = deep(tmp_path, TREE, facts, SummarySettings(contexts=1))
    assert len(plain.graph.contexts) == 1 + 2 * (2**depth - 1)
    assert len(once.graph.contexts) == 1
    assert plain.cycles <= once.cycles < 3 * plain.cycles
    assert any("recursion of walk" in text for text in map(str, once.assumptions))


@pytest.mark.slow("a large program")
def test_depth_costs_as_many_analyses_and_not_its_power(tmp_path: Path) -> None:
    known = [
        deep(tmp_path, TREE, f"recursion of walk at most {depth}\n", SummarySettings()).cycles
        for depth in (14, 15, 16)
    ]
    assert 1.9 < (known[2] - known[1]) / (known[1] - known[0]) < 2.1  # a tree of calls


ENDING = """
volatile unsigned left;
__attribute__((noinline)) void stop(void) { __asm__ volatile("cpsid i"); for (;;) ; }
__attribute__((noinline)) unsigned part(unsigned a) {
    if (a == 7) {
        for (unsigned i = 0; i < 1000; i++) left = i;
        stop();
    }
    return a + left;
}
unsigned main(unsigned a) { return part(a) + part(a + 1); }
"""


@pytest.mark.slow("several whole analyses")
def test_a_path_may_end_in_a_shared_function(tmp_path: Path) -> None:
    facts = "path must end at stop\n"
    plain = deep(tmp_path, ENDING, facts, NEVER)
    once = deep(tmp_path, ENDING, facts, SummarySettings(contexts=0, least=1))
    assert any("<part>" in text for text in shared(once))
    assert plain.cycles <= once.cycles < 3 * plain.cycles
    assert len(once.graph.exits) == 2  # after each call: behind the second one main returns


@pytest.mark.slow("several whole analyses")
def test_functions_of_a_thumb_program_are_shared(tmp_path: Path) -> None:
    elf = tmp_path / "program.elf"
    shutil.copy(build(TREE, *RECURSIVE, optimise="-O1", thumb=True, link=CODE), elf)
    elf.with_suffix(".facts").write_text("recursion of walk at most 3\n")
    once = analyse(elf, "main", SummarySettings(contexts=1))
    assert len(once.graph.contexts) == 1


TRANSLATING = """
.text
.global main
.type main, %function
main:
{stack}
    bl outer
    b exit_to_user
.type outer, %function
outer: push {{r4, lr}}
    bl f
    bl f
    bl f
    pop {{r4, pc}}
.type f, %function
f: push {{r4, lr}}
    bl g
    bl g
    pop {{r4, pc}}
.type g, %function
g: mcr p15, 0, r0, c2, c0, 0
    bx lr
.global exit_to_user
.type exit_to_user, %function
exit_to_user: movs pc, lr
"""
ONCE = SummarySettings(contexts=0, least=1)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("stack", ["    nop", "    ldr sp, =0xf0100000"])
def test_functions_that_change_translations_are_shared_in_fixed_memory(stack: str) -> None:
    """Rule 44: code, data and stacks of callers stay where they are."""
    elf = build(TRANSLATING.format(stack=stack), language="asm", link=CODE)
    assert shared(analyse(elf, "main", ONCE))


def test_they_stay_inlined_where_a_stack_may_move() -> None:
    """The stack of the callers is at an address whose translation is not fixed: it is refused."""
    elf = build(TRANSLATING.format(stack="    ldr sp, =0x100000"), language="asm", link=CODE)
    with pytest.raises(ControlFlowError, match="the stack that ends here"):
        analyse(elf, "main", ONCE)


def test_they_stay_inlined_where_data_may_move() -> None:
    elf = build(
        TRANSLATING.format(stack="    nop") + ".data\n.word 1\n",
        language="asm",
        link=(*CODE, "-Wl,-Tdata=0x20000"),
    )
    assert not shared(analyse(elf, "main", ONCE))


OPEN = """
struct item { struct item *next; int value; } *volatile items;
int volatile sink;
#define N __attribute__((noinline, noclone))
N int walk(struct item *at) { int s = 0; for (; at; at = at->next) { s += at->value; sink = s; }
                              return s; }
N int fill(int n) { for (int i = 0; i < n; i++) sink = i; return n; }
N int both(int n) { return walk(items) + fill(n) + walk(items); }
int main(int n) { return both(3) + both(4) + fill(5) + walk(items); }
int counted(int n) { return fill(3) + fill(4); }
"""


@pytest.mark.slow("several whole analyses")
def test_loops_that_prevent_summaries_are_named_at_once_where_inlining_is_too_large() -> None:
    """Each loop once, also if a caller would bound it: full inlining is no option there."""
    elf = build(OPEN, "-fno-ipa-cp", optimise="-O1", link=CODE)
    most = SummarySettings(contexts=0, least=3, most=2)
    with pytest.raises(UnboundedLoop) as error:
        analyse(elf, "main", most)
    symbols = [Image.load(elf).symbol_at(one.addr) for one in error.value.missing]
    assert sorted(at[0].name for at in symbols if at) == ["fill", "walk"]
    assert all(one.cycles for one in error.value.missing)
    with pytest.raises(UnboundedLoop) as error:
        analyse(elf, "main", SummarySettings(contexts=0, least=3))
    assert len({one.addr for one in error.value.missing}) == len(error.value.missing) == 1
    assert analyse(elf, "counted", SummarySettings(contexts=0, least=3)).cycles


SAVED_BY_CALLER = """
.global entry
.type entry, %function
entry:  push {r4, r5, lr}
        mov  r5, r4
        bl   f
        bl   f
        cmp  r4, r5
        beq  same
        mov  r4, #90
loop:   subs r4, r4, #1
        bne  loop
same:   pop  {r4, r5, lr}
        b exit_to_user
.type f, %function
f:      push {r4, lr}
        mov  r0, sp
        mov  r1, #7
        bl   g
        pop  {r4, pc}
.type g, %function
g:      add  r2, r1, #1
        add  r2, r2, #1
        add  r2, r2, #1
        str  r1, [r0]
        bx   lr
.global exit_to_user
.type exit_to_user, %function
exit_to_user: movs pc, lr
"""


@pytest.mark.parametrize("sharing", [NEVER, ONCE])
def test_a_shared_function_may_store_a_register_that_its_caller_saved(
    sharing: SummarySettings,
) -> None:
    """Its contract names the place of its store (rule 35), so r4 may have changed."""
    elf = build(SAVED_BY_CALLER, language="asm", link=CODE)
    entry = analyse(elf, "entry", sharing)
    assert [bound.bound for bound in entry.bounds] == [90]
    assert bool(shared(entry)) == (sharing is ONCE)
