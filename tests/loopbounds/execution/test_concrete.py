"""Programs whose memory as loaded decides every branch: the only execution is counted."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from loopbounds.budgets import table
from loopbounds.execution.concrete import concrete_execution
from loopbounds.proof.bound import EXECUTION
from quoll.assumptions import S5
from quoll.cfg.cfg import EdgeKind
from quoll.errors import FactsError
from quoll.facts.read import Facts, parse
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from tests.testing.loopbounds.counting import Program, load
from tests.testing.loopbounds.programs import FLAGS, KINDS, UNCOUNTED, random_program
from tests.testing.quoll.building import build

SORT = """int a[12] = {4, 3, 9, 2, 1}, n = 12;
int main(void) {
    for (int i = 0; i < n - 1; i++)
        for (int j = 0; j < n - 1 - i; j++)
            if (a[j] > a[j + 1]) { int t = a[j]; a[j] = a[j + 1]; a[j + 1] = t; }
    return a[0];
}
"""
LOCAL = """int n = 9;
int main(void) {
    int a[16], *p = a, s = 0;
    for (int i = 0; i < n; i++) *p++ = i * i;
    while (p != a) s += *--p;
    return s;
}
"""
SWITCHED = """int n = 5;
__attribute__((naked)) int main(void) {
    asm("ldr r0, =n; ldr r0, [r0]; mov r2, sp; ldr sp, =0x20000; push {r0, r2, r4, lr};"
        "1: subs r0, r0, #1; bne 1b; pop {r0, r2, r4, lr}; mov sp, r2; bx lr; .ltorg");
}
"""
STACK = 0x60000000
BOOTED = f"""
static int a[16];
__attribute__((noinline)) int work(volatile int *p, int n) {{
    for (int i = 0; i < n; i++) {{ p[i] = i; if (i & 1) n--; }}
    while (*--p != 3) ;
    return n;
}}
__attribute__((noinline, used)) int called(void) {{
    volatile int local[12];
    local[0] = 3;
    return work(local + 1, 9) + a[0];
}}
__attribute__((naked)) int main(void) {{
    asm("mov r2, sp; ldr sp, ={STACK + 0x800}; push {{r2, lr}}; bl called; pop {{r2, lr}};"
        "mov sp, r2; bx lr; .ltorg");
}}
"""
WRITTEN = f"""
int main(void) {{
    int *a = (int *){STACK};
    for (int i = 0; i < 12; i++)
        a[i] = 40 - 3 * i;
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 11 - i && a[j] > a[j + 1]; j++)
            {{ int t = a[j]; a[j] = a[j + 1]; a[j + 1] = t; }}
    return a[0];
}}
"""
LOOP = "for (unsigned i = 0; i != n; i += 3) s += i; return s; }"
UNDECIDED = {
    "an argument decides": f"int main(unsigned n) {{ unsigned s = 0; {LOOP}",
    "a device decides": (
        f"int main(void) {{ unsigned n = *(volatile unsigned *)0x48020000, s = 0; {LOOP}"
    ),
    "a store goes anywhere": (
        f"unsigned n = 9; int main(unsigned *p) {{ unsigned s = 0; *p = 5; {LOOP}"
    ),
    "a store to what is constant": (
        f"const volatile unsigned n = 9; int main(void) {{ unsigned s = 0;"
        f" *(volatile unsigned *)&n = 5; {LOOP}"
    ),
    "it does not end": f"volatile unsigned n = 10; int main(void) {{ unsigned s = 0; {LOOP}",
}


@pytest.mark.parametrize("source", [SORT, LOCAL, SWITCHED], ids=["sort", "local", "switched"])
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
@pytest.mark.parametrize("often", [1, 1000])
def test_counts_are_those_of_the_twin(
    source: str, level: str, often: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "EXECUTED_OFTEN", often)
    code = load(
        build(source, "-fno-tree-loop-distribute-patterns", optimise=level), from_reset=True
    )
    counts, totals = code.counts(()), code.totals(())
    for bound in code.bounds():
        assert (bound.method, bound.bound) == (EXECUTION, counts[code.header(bound)])
        assert bound.exact
        if bound.total is not None:
            assert bound.total == totals[code.header(bound)]


@pytest.mark.parametrize(
    ("kind", "counted"), [(RegionKind.CACHED, True), (RegionKind.DEVICE, False)]
)
def test_a_stack_at_a_known_place(kind: RegionKind, counted: bool) -> None:
    """It is in no section; the platform's map says that it is memory."""
    ram = MemoryMap((MemoryRegion("ram", STACK, STACK + 0xFFF, kind, STACK, fixed=True),))
    code = Program(build(BOOTED, optimise="-O1"), "main", from_reset=True, memory=ram)
    found = code.execution()
    assert (found is not None) is counted
    if found is not None:
        headers = [code.graph.nodes[loop.header].block.addr for loop in code.graph.loops]
        assert dict(zip(headers, found.most, strict=True)) == code.counts(())


@pytest.mark.parametrize(
    ("kind", "counted"), [(RegionKind.CACHED, True), (RegionKind.DEVICE, False)]
)
def test_words_that_the_program_stores_decide(kind: RegionKind, counted: bool) -> None:
    """Memory holds anything at the entry."""
    ram = MemoryMap((MemoryRegion("ram", STACK, STACK + 0xFFF, kind, STACK, fixed=True),))
    code = Program(build(WRITTEN, optimise="-O1"), "main", memory=ram)
    found = code.execution()
    assert (found is not None) is counted
    if found is not None:
        headers = [code.graph.nodes[loop.header].block.addr for loop in code.graph.loops]
        assert dict(zip(headers, found.most, strict=True)) == code.counts(())


def test_a_total_less_than_the_product() -> None:
    code = load(build(SORT, "-fno-tree-loop-distribute-patterns", optimise="-O1"), from_reset=True)
    assert [(b.bound, b.total) for b in code.bounds()] == [(11, None), (11, 66)]


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(UNCOUNTED))[::3])
def test_random_programs(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds by the only execution are the counts of the twin."""
    monkeypatch.setattr(table, "EXECUTED_OFTEN", 2)
    chance = random.Random(f"the only execution {kind}")
    source = random_program(chance, kind).replace(
        "int main(unsigned a, unsigned b)",
        "static inline __attribute__((always_inline)) int run(unsigned a, unsigned b)",
    )
    given = f"unsigned first = {chance.getrandbits(32)}u, second = {chance.randrange(100)};\n"
    source = f"{source}{given}int main(void) {{ return run(first, second); }}\n"
    code = load(build(source, *FLAGS.get(kind, ()), optimise="-O1"), from_reset=True)
    found = code.execution()
    assert found is not None
    counts, headers = (
        code.counts(()),
        [code.graph.nodes[i.header].block.addr for i in code.graph.loops],
    )
    assert dict(zip(headers, found.most, strict=True)) == counts


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_is_not_known_may_decide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "EXECUTED_INSTRUCTIONS", 20_000)
    flags = ("-fno-unroll-loops",)
    code = load(build(UNDECIDED[name], *flags, optimise="-O1"), from_reset=True)
    assert code.execution() is None


def test_a_fact_below_what_is_executed_is_refuted() -> None:
    code = load(build(SORT, "-fno-tree-loop-distribute-patterns", optimise="-O1"), from_reset=True)
    stated = parse("loop prog.c:3 at most 12", "x")
    assert [b.method for b in code.bounds(stated)] == [EXECUTION, EXECUTION]
    with pytest.raises(FactsError, match="is executed 11 times in the concrete execution"):
        code.bounds(parse("loop prog.c:3 at most 10", "x"))


def test_what_it_rests_on() -> None:
    [bound, *_] = load(build(LOCAL, optimise="-O1"), from_reset=True).bounds()
    assert S5.of() in bound.assumptions


def test_an_unknown_target_is_no_end_where_it_may_be_a_successor() -> None:
    source = """volatile unsigned n = 5;
    __attribute__((noinline)) void a(void) { for (unsigned i = 0; i < n; i++) n = 5; }
    __attribute__((noinline)) void b(void) { n = 2; }
    static void (*const table[2])(void) = {a, b};
    int main(void) { table[*(volatile unsigned *)0x48020000 & 1](); return 0; }
    """
    code = load(build(source, optimise="-O1"), from_reset=True)
    (node,) = (n for n, edges in enumerate(code.graph.successors) if len(edges) > 1
               and all(code.graph.edges[e].kind is EdgeKind.CALL for e in edges))  # fmt: skip
    may_end = replace(code.graph, exits=(*code.graph.exits, node))
    assert concrete_execution(may_end, code.image, code.values, Facts()) is None
