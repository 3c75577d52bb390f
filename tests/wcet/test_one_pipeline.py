"""``analyse``, ``loops`` and ``masked`` bound the same loops alike, and refuse the same code.

``make campaign-agreement`` compares them on the shipped kernels.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from campaigns.agreement import Question, of_analyse, of_loops, of_masked
from quoll.errors import TimingError, WcetError
from quoll.inlining.sharing import NEVER, SummarySettings
from tests.testing.quoll.building import build
from tests.testing.quoll.switches import ARM, CALLER, CPU, HEAD
from tests.testing.wcet.stated import AT
from wcet.analysis.stage_times import SilentStageLog
from wcet.commands.loops import as_text
from wcet.masked.masked_entries import masked
from wcet.reports.entry_loops import loops_of

SHARED = """
volatile unsigned sink;
__attribute__((noinline)) void fill(unsigned n) { for (unsigned i = 0; i < n; i++) sink = i; }
__attribute__((noinline)) void clear(unsigned n) {
    for (unsigned i = 0; i < (n & 7); i++) fill(i & 3);
}
__attribute__((noinline)) void both(unsigned n) { clear(n); clear(n + 1); }
int main(unsigned n) {
    both(n);
    both(n + 1);
    for (unsigned i = 0; i < 5; i++) sink = i;
    return 0;
}
"""
SWITCHED = f"{HEAD}.arm\nbegin switch\n{ARM['stack pointer']}\n.size switch, . - switch\n{CALLER}"
LOOP = "mov r3, #6\n1: subs r3, r3, #1\nbne 1b\n"
CONTROL = f".syntax unified\n.arm\n.global main\n.type main, %function\nmain:\n{LOOP}"
CONTROL += "mcr p15, 0, r0, c1, c0, 0\nbx lr\n.size main, . - main\n"
PENDING = """
#define TEST (*(volatile unsigned *)0xf8000058u | *(volatile unsigned *)0xf800005cu)
unsigned done;
__attribute__((noinline)) void chunk(unsigned *at) { for (int i = 0; i < 9; i++) at[i] = 0; }
int main(unsigned *at, unsigned *end) {
    for (; at != end; at += 64) {
        chunk(at);
        if (TEST) return 1;
    }
    return 0;
}
"""
ONE_EXECUTION = """
unsigned start = 27, steps;
int main(void) {
    for (unsigned x = start; x != 1; x = x & 1 ? 3 * x + 1 : x >> 1) steps++;
    return steps;
}
"""
ENDED = """
volatile unsigned char data[64];
int main(void) {
    int s = 0, n = 0;
    for (int i = 0; i < 20 && data[i]; i++) n++;
    for (int i = 0; i < n; i++) s += data[i];
    for (unsigned x = *(volatile unsigned *)data; x; x &= x - 1) s++;
    return s;
}
"""
LOADED = """\
region data from 0xF0010000 to 0xF00FFFFF is cached
region data holds its initial contents at main
"""


PROGRAMS = {
    "a program": (SHARED, "c", NEVER, ""),
    "functions that are analysed once": (SHARED, "c", SummarySettings(contexts=0, least=2), ""),
    "a context switch": (SWITCHED, "asm", NEVER, "switch switches context\n"),
    "tests for interrupts": (PENDING, "c", NEVER, ""),
    "loops that unknown words end": (ENDED, "c", NEVER, ""),
    "only one execution": (ONE_EXECUTION, "c", NEVER, LOADED),
}


def program(name: str, folder: Path) -> Question:
    source, language, sharing, text = PROGRAMS[name]
    facts = folder / "my.facts"
    facts.write_text(text)
    if language == "asm":
        elf = build(source, AT, language="asm", cpu=CPU)
        return Question.of(elf, folder, platform="cubieboard", facts=[facts])
    elf = build(source, "-fno-ipa-cp", link=(AT,))
    return Question.of(elf, folder, facts=[facts], sharing=sharing)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_bound_the_loops_of_a_program_alike(name: str, tmp_path: Path) -> None:
    question = program(name, tmp_path)
    (target,) = question.targets()
    expected = of_analyse(target)
    assert of_loops(target) == expected
    # shared functions are inlined
    plain = of_masked(question).get("main", {})
    if question.options.summary_settings == NEVER:
        assert plain == expected
    assert {
        loop: expected[loop] for loop in plain.keys() & expected.keys()
    }.items() <= plain.items()
    assert any(summary for summary, _, _ in expected) == (
        question.options.summary_settings != NEVER
    )


def test_all_refuse_a_write_of_a_control_register_alike(tmp_path: Path) -> None:
    """A regression: ``loops`` bounded the loop before the write and ignored the write."""
    question = Question.of(build(CONTROL, language="S", link=(AT,)), tmp_path)
    (target,) = question.targets()
    said: list[WcetError] = []
    for analyse in (of_analyse, of_loops):
        with pytest.raises(TimingError) as refused:
            analyse(target)
        said.append(refused.value)
    answer = masked(question.elf, question.options, SilentStageLog(), None)
    assert [one.reasons for one in answer.missing if one.entry == "main"] == [said[0].faults]
    assert str(said[0]) == str(said[1])
    assert "SCTLR" in str(said[0])


@pytest.mark.slow("several whole analyses")
def test_a_loop_of_a_shared_function_is_listed_for_any_context(tmp_path: Path) -> None:
    question = program("functions that are analysed once", tmp_path)
    (target,) = question.targets()
    text = "\n".join(as_text(target.run.image, loops_of(target).loops))
    assert "in any context of clear: " in text
    whole = replace(question, options=replace(question.options, summary_settings=NEVER))
    (target,) = whole.targets()
    assert "in any context" not in "\n".join(as_text(target.run.image, loops_of(target).loops))
