"""A fact applies to its loop of the source, even where the graph has no such loop any more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from quoll.errors import FactsError, UnboundedLoop
from quoll.inlining.vivu import FULL, VivuSettings
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, FLAGS, guided

UNROLLED = VivuSettings(unroll=True)
LIST = "struct item { struct item *next; unsigned n; } *first; unsigned total;\n"
ONCE = """
__attribute__((noinline, noclone)) void walk(unsigned times) {
    for (struct item *i = first; i; i = i->next) {
        unsigned k = times;
        do {
            total += k;
            asm volatile("" ::: "memory");
        } while (--k);
    }
}
void main(void) { walk(1); }
"""
NEVER = """
__attribute__((noinline, noclone)) void walk(unsigned times) {
    for (struct item *i = first; i; i = i->next)
        if (times > 3) for (unsigned k = i->n; k; k--) {
                total += k;
                asm volatile("" ::: "memory");
        } else
            total++;
}
void main(void) { walk(1); }
"""
NESTED = """
void main(void) {
    for (struct item *i = first; i; i = i->next) {
        unsigned k = i->n;
        do {
            total += k;
            asm volatile("" ::: "memory");
        } while (--k);
    }
}
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("vivu", [FULL, UNROLLED])
@pytest.mark.parametrize(("source", "line"), [(ONCE, 9), (NEVER, 5)])
def test_a_loop_that_never_repeats_leaves_its_fact_to_no_other(
    source: str, line: int, vivu: VivuSettings, tmp_path: Path
) -> None:
    """Where the context excludes the inner loop, its fact does not move to the outer one."""
    elf = build(LIST + source, *FLAGS, optimise="-O1", link=(CODE,))
    with pytest.raises(UnboundedLoop, match="1 loop has no bound"):
        guided(elf, tmp_path, f"loop prog.c:{line} at most 3", vivu=vivu)


@pytest.mark.slow("several whole analyses")
def test_a_fact_is_about_a_loop_in_all_turns_of_the_loop_around(tmp_path: Path) -> None:
    elf = build(LIST + NESTED, *FLAGS, optimise="-O1", link=(CODE,))
    facts = "loop prog.c:4 at most 5\nloop prog.c:9 at most 3"
    plain = guided(elf, tmp_path, facts).entries["main"]
    entry = guided(elf, tmp_path, facts, vivu=UNROLLED).entries["main"]
    assert Counter(b.iterations(plain.graph) for b in plain.bounds) == {3: 1, 5: 1}
    assert Counter(b.iterations(entry.graph) for b in entry.bounds) == {3: 2, 5: 1}
    assert entry.path.unrealisable is None


@pytest.mark.slow("several whole analyses")
def test_an_offset_among_several_loops_needs_a_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit may move another loop to the offset. The error gives the checksum.

    Before, it came after the values and the function summaries: minutes later in a large kernel.
    """
    elf = build(LIST + NESTED, *FLAGS, optimise="-O1", link=(CODE,))
    lines = "loop prog.c:4 at most 5\n"
    plain = guided(elf, tmp_path, f"{lines}loop prog.c:9 at most 3").entries["main"]
    inner = plain.graph.nodes[plain.graph.loops[1].header].block.addr - plain.address
    with monkeypatch.context() as patch:
        patch.delattr("wcet.analysis.preparation.with_values")
        with pytest.raises(FactsError, match="one of several loops of its function") as refused:
            guided(elf, tmp_path, f"{lines}loop main+{inner:#x} at most 3")
    checked = (refused.value.hint or "").rpartition("write ")[2]
    assert checked.startswith(f"main+{inner:#x}~")
    entry = guided(elf, tmp_path, f"{lines}loop {checked} at most 3").entries["main"]
    assert entry.cycles == plain.cycles


CUT = """.global main
main: ldr r0, [r0]
outer: cmp r0, #0
  beq out
  ldr r1, [r0, #4]
inner: subs r1, r1, #1
back: bne inner
  ldr r0, [r0]
  b outer
out: bx lr
"""


@pytest.mark.slow("several whole analyses")
def test_a_loop_that_a_fact_cuts_leaves_its_fact_to_no_other(tmp_path: Path) -> None:
    elf = build(CUT, language="asm", link=(CODE,))
    facts = "loop inner at most 3\nbranch at back is never taken\n"
    with pytest.raises(UnboundedLoop, match="1 loop has no bound"):
        guided(elf, tmp_path, facts)
    entry = guided(elf, tmp_path, facts + "loop outer at most 7").entries["main"]
    assert [bound.bound for bound in entry.bounds] == [7]
