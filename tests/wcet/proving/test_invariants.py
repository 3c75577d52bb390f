"""Invariants: proved only if no execution of any entry breaks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from quoll.facts.entry_invariants import LocatedInvariant
from quoll.facts.predicate import MemoryWord
from quoll.image.image import Image
from quoll.inlining.sharing import SummarySettings
from quoll.results.results_store import ResultsStore
from tests.testing.harness.cases import cases
from tests.testing.wcet.entry_programs import ENTRIES, RETURNS, EntryMachine, kernel
from tests.testing.wcet.proved import options_for
from wcet.analysis.analysis import analyse
from wcet.analysis.stage_times import SilentStageLog
from wcet.proving.prove import FactProofs, prove_facts
from wcet.proving.verdict import FactVerdict

DATA = "w: .word 3\nlimit: .word 7\nother: .word 0\nfourth: .word 0\n.space 64\n"
ROUND = "ldr r1, =w\nldr r0, [r1]\nadd r0, r0, #1\nand r0, r0, #7\nstr r0, [r1]\n" + RETURNS
COUNTS = ROUND.replace("and r0, r0, #7\n", "")
TO_LIMIT = COUNTS.replace("str", "ldr r2, =limit\nldr r2, [r2]\ncmp r0, r2\nmovhi r0, #0\nstr")
ANY = "ldr r1, =w\nstr r0, [r1]\n" + RETURNS
POINTER = "ldr r1, =other\nldr r3, [r1]\nstr r0, [r3]\n" + RETURNS
POINTS_ELSEWHERE = "other >= 0xf0020100 and other <= 0xf0020200"
ELSEWHERE = (
    "region elsewhere from 0xf0020100 to 0xf00201ff is cached\n"
    "accesses of unknown address point into elsewhere"
)
INDEXED = "ldr r1, =w\nand r0, r0, #12\n{}\nstr r2, [r1, r0]\n" + RETURNS
# The word is 9 in the middle.
FOR_A_WHILE = "ldr r4, =w\nmov r0, #9\nstr r0, [r4]\n{}\nmov r0, #0\nstr r0, [r4]\n" + RETURNS
IN_A_LOOP = (
    "and r2, r2, #3\nadd r2, r2, #5\nldr r1, =w\n"
    "1: ldr r0, [r1]\nadd r0, r0, #1\n{}str r0, [r1]\nsubs r2, r2, #1\nbne 1b\n" + RETURNS
)
CALLS = "ldr sp, =0xf0200000\npush {r4, lr}\nbl g\npop {r4, lr}\n" + RETURNS
LEAVES = "ldr sp, =0xf0200000\npush {r4, lr}\nldr r1, =w\nbl g\nbl g\npop {r4, lr}\n" + RETURNS
G = ".type g, %function\ng: bx lr\n"
ENDS = (
    ".type g, %function\ng: cmp r0, #0\nbxeq lr\nmov r0, #9\nstr r0, [r1]\nb leave\n"
    "leave: movs pc, r2\n"
)
TABLE = (
    ".balign 32\ntable: b table\nb vector_undefined\nb elsewhere\nb vector_prefetch_abort\n"
    "b vector_data_abort\nnop\nb vector_irq\nnop\n"
    f".type elsewhere, %function\nelsewhere: {ANY}"
)
SMALL = "invariant small: w <= 7"
EACH = "invariant each: for each of w (4 elements of 4 bytes): +0 <= 7"


class Case(NamedTuple):
    code: Mapping[str, str]
    facts: str
    verdicts: str  # a letter for each fact: proved, refuted or assumed
    said: str  # in the reason of the first one
    at: str = "0xf0020000"


CASES = {
    "preserved": Case({"svc": ROUND}, SMALL, "p", "it holds at each point"),
    "not stored to": Case({}, SMALL, "p", "no store hits its words"),
    "not inductive": Case({"svc": COUNTS}, SMALL, "a", "not inductive"),
    "refuted": Case({"svc": ANY}, SMALL, "r", "from the loaded image"),
    "refuted by another entry": Case({"svc": ROUND, "irq": ANY}, SMALL, "r", "interrupt"),
    "a missing conjunct": Case(
        {"svc": TO_LIMIT}, SMALL, "a", "without an invariant about the word at 0xf0020004 <limit>"
    ),
    "with that conjunct": Case(
        {"svc": TO_LIMIT}, f"{SMALL}\ninvariant limit: limit <= 7", "pp", "holds"
    ),
    "related words": Case(
        {"svc": TO_LIMIT}, "invariant under: w <= limit and limit < 9", "p", "holds"
    ),
    "one is left out": Case(
        {"svc": TO_LIMIT, "irq": ANY.replace("=w", "=limit")},
        f"{SMALL}\ninvariant limit: limit <= 7",
        "ar",
        "<limit>",
    ),
    "one of several places": Case({"svc": INDEXED.format("and r2, r2, #7")}, SMALL, "p", "holds"),
    "a larger word there": Case({"svc": INDEXED.format("nop")}, SMALL, "r", "loaded image"),
    "a part of one place": Case(
        {"svc": INDEXED.format("and r2, r2, #7").replace("str", "strb")}, SMALL, "a", "be hit by"
    ),
    "places that overlap": Case(
        {"svc": INDEXED.format("and r2, r2, #7").replace("#12", "#14")}, SMALL, "a", "be hit by"
    ),
    "each element": Case({"svc": INDEXED.format("and r2, r2, #7")}, EACH, "p", "holds"),
    "not each element": Case(
        {"svc": INDEXED.format("and r2, r2, #7"), "irq": ANY.replace("[r1]", "[r1, #12]")},
        EACH,
        "r",
        "interrupt",
    ),
    "an element more": Case(
        {"svc": INDEXED.format("and r2, r2, #7").replace("#12", "#28")}, EACH, "p", "holds"
    ),
    "fields of elements": Case(
        {"svc": INDEXED.format("and r2, r2, #7").replace("#12", "#24")},
        "invariant each: for each of w (2 elements of 8 bytes): +0 <= 7 and half +6 = 0",
        "p",
        "",
    ),
    "any address": Case(
        {"svc": ANY.replace("ldr r1, =w\n", "")}, SMALL, "a", "may be hit by str r0, [r1]"
    ),
    "behind a pointer": Case(
        {"svc": POINTER},
        "invariant low: other >= 0xf0020100 and other <= 0xf0020200\n" + SMALL,
        "pp",
        "no store hits its words",
    ),
    "behind any pointer": Case({"svc": POINTER}, SMALL, "a", "may be hit by str r0, [r3]"),
    "given a fact": Case(
        {"svc": POINTER}, f"{SMALL}\n{ELSEWHERE}", "p" + "a" * 2, "no store hits its words"
    ),
    "part of a word": Case(
        {"svc": "ldr r1, =w\nmov r0, #1\nstrb r0, [r1, #3]\n" + RETURNS}, SMALL, "a", ""
    ),
    "in a loop": Case({"svc": IN_A_LOOP.format("and r0, r0, #3\n")}, SMALL, "p", "holds"),
    "more in a loop": Case({"svc": IN_A_LOOP.format("")}, SMALL, "r", "from the loaded image"),
    "false for a while": Case(
        {"svc": FOR_A_WHILE.format("nop")}, SMALL, "p", "it holds at each end of its paths"
    ),
    "unmasked meanwhile": Case(
        {"svc": FOR_A_WHILE.format("cpsie i\ncpsid i")}, SMALL, "a", "may be unmasked"
    ),
    "a supervisor call meanwhile": Case(
        {"svc": FOR_A_WHILE.format("svc #0")},
        f"{SMALL}\nevery supervisor call takes at most 9 cycles",
        "aa",
        "enters the kernel",
    ),
    "a replaced function": Case(
        {"svc": CALLS, "others": G}, f"{SMALL}\nfunction g takes at most 9 cycles", "aa", ""
    ),
    "and preserves memory": Case(
        {"svc": CALLS, "others": G},
        f"{SMALL}\nfunction g takes at most 9 cycles and preserves memory",
        "pa",
        "no store",
    ),
    "other code in the table": Case(
        {"others": TABLE}, SMALL, "a", "leads to code that is no entry"
    ),
    "a device": Case({}, SMALL, "a", "ordinary memory", at="0xf8000100"),
    "one of two": Case({"svc": ROUND}, "invariant one: w < 5 or w <= 7", "p", "holds"),
    "signed": Case({"svc": ROUND}, "invariant one: signed w >= -1", "p", "holds"),
    "sums": Case({"svc": TO_LIMIT}, "invariant one: w + limit <= 14 and limit = 7", "p", "holds"),
}


def proofs(folder: Path, elf: Path, facts: str, *entries: str) -> FactProofs:
    file = folder / "my.facts"
    file.write_text(facts + "\n")
    options = replace(options_for(file), entries=entries or ("all",))
    return prove_facts(elf, options, SilentStageLog())


@pytest.mark.slow("analyses all entries of a program for each case")
@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found = proofs(tmp_path, kernel(case.code, DATA, case.at), case.facts).facts
    assert "".join(one.verdict.value[0] for one in found) == case.verdicts, found
    assert case.said in found[0].why, found[0].why


def test_every_entry_is_analysed(tmp_path: Path) -> None:
    elf = kernel({"svc": ROUND}, DATA)
    [one] = proofs(tmp_path, elf, SMALL, "syscall", "interrupt").facts
    assert (one.verdict.value, one.why) == ("assumed", "the entry undefined is not analysed")
    elf = kernel({"svc": ROUND}, DATA, without=("data_abort",))
    others = ("syscall", "undefined", "prefetch-abort", "interrupt")
    [one] = proofs(tmp_path, elf, SMALL, *others).facts
    assert one.why == "the entry data-abort of the platform is not in the ELF"


def test_an_end_in_a_function_with_a_summary(tmp_path: Path) -> None:
    file = tmp_path / "my.facts"
    file.write_text(SMALL + "\npath must end at leave\n")
    elf = kernel({"svc": LEAVES, "others": ENDS}, DATA)
    options = replace(options_for(file), entries=("all",))
    shared = replace(options, summary_settings=SummarySettings(contexts=0, least=1))
    one, _ = prove_facts(elf, shared, SilentStageLog()).facts
    assert (one.verdict.value, "which is not in its graph" in one.why) == ("assumed", True), one


def test_the_assumptions_of_the_induction(tmp_path: Path) -> None:
    elf = kernel({"svc": ROUND, "irq": "b last\nlast: nop\n" + ROUND}, DATA)
    facts = "invariant small: w <= 7\npath must end at last"
    found = list(map(str, proofs(tmp_path, elf, facts).assumptions))
    assert any("between the end of a path and the next entry" in one for one in found)
    assert any("invariant small" in one and "loaded image it holds" in one for one in found)
    assert [one for one in found if "code behind" in one and "<last>" in one]
    assert not [one for one in found if one.startswith("fact:") and "invariant" in one]
    found = list(map(str, proofs(tmp_path, elf, "invariant odd: limit = 9").assumptions))
    assert any("loaded image it does not hold" in one for one in found)


@pytest.mark.slow("analyses a program several times")
def test_a_proved_invariant_bounds_a_loop(tmp_path: Path) -> None:
    loop = "ldr r1, =w\nldr r3, [r1]\nloop: subs r3, r3, #1\nbpl loop\n" + RETURNS
    elf = kernel({"svc": loop, "irq": ROUND}, DATA)
    facts = f"{SMALL}\nloop loop at most 8"
    assert [one.verdict.value for one in proofs(tmp_path, elf, facts).facts] == ["proved"] * 2
    facts = facts.replace("at most 8", "at most 7")
    small, loop_fact = proofs(tmp_path, elf, facts).facts
    assert (small.verdict.value, loop_fact.verdict.value) == ("proved", "assumed")


@pytest.mark.slow("analyses a program several times")
def test_an_analysis_lists_the_assumptions_of_the_proof(tmp_path: Path) -> None:
    elf, file = kernel({"svc": ROUND}, DATA), tmp_path / "my.facts"
    file.write_text(SMALL + "\ninvariant odd: limit = 9\ninvariant wrong: w <= 4\n")
    store = ResultsStore(tmp_path / "store")
    options = replace(options_for(file), entries=("all",), store=store)

    def listed() -> tuple[list[str], str]:
        result = analyse(elf, options, SilentStageLog())
        facts = [str(one) for one in result.assumptions if "fact: " in str(one)]
        labels = "".join(one.status.value[0] for one in result.facts)
        assert any("between the end of" in str(a) for a in result.assumptions) == ("p" in labels)
        return facts, labels

    assert [len(listed()[0]), listed()[1]] == [3, "aaa"]
    prove_facts(elf, options, SilentStageLog())
    [wrong], labels = listed()
    assert (wrong.endswith("invariant wrong: w <= 4"), labels) == (True, "ppa")
    file.write_text(SMALL + "\nregister r3 at vector_irq is at most 7\n")
    assert listed()[1] == "aa"


TESTED = (
    "mov r2, #5\nldr r1, =w\n1: ldr r0, [r1]\ncmp r0, r3\nbne 2f\ncmp r0, #7\nbls 2f\n"
    "large: nop\n2: {}subs r2, r2, #1\nbne 1b\n"
    "mov r0, #0\nstr r0, [r1]\n" + RETURNS
)


def test_a_proof_from_another_fact_names_it(tmp_path: Path) -> None:
    elf = kernel({"svc": POINTER}, DATA)
    small, _, elsewhere = proofs(tmp_path, elf, f"{SMALL}\n{ELSEWHERE}").facts
    assert small.given == (str(elsewhere.fact.source),)


@pytest.mark.slow("analyses a program twice")
def test_an_iteration_of_a_loop_that_changes_the_word(tmp_path: Path) -> None:
    for stored, verdict in (("", "proved"), ("str r2, [r1]\nstr r4, [r1]\n", "assumed")):
        elf = kernel({"svc": TESTED.format(stored)}, DATA)
        small, never = proofs(tmp_path, elf, f"{SMALL}\nlarge never executes").facts
        assert (small.verdict.value, never.verdict.value) == ("proved", verdict), (small, never)


WORDS = ("w", "limit", "other")


def random_entry(random: Random) -> str:
    """Changes of words by arguments, by other words and by constants."""
    lines = ["ldr sp, =0xf0200000", "ldr r4, =w"]
    for number in range(random.randint(1, 3)):
        a, b = random.randrange(3) * 4, random.randrange(3) * 4
        k = random.choice((1, 3, 7, 8))
        lines += random.choice(
            [
                [f"ldr r5, [r4, #{a}]", "add r5, r5, #1", f"and r5, r5, #{k}"],
                [f"ldr r5, [r4, #{a}]", f"cmp r5, #{k}", "addlo r5, r5, #1"],
                [f"ldr r5, [r4, #{b}]", f"ldr r6, [r4, #{a}]", "cmp r6, r5", "movhi r5, r6"],
                [f"ldr r5, [r4, #{b}]"],
                [f"and r5, r0, #{k}"],
                [f"ldr r6, [r4, #{b}]", "mov r5, r1", "cmp r5, r6", "movhi r5, r6"],
                [f"mov r6, #3\n{number}: ldr r5, [r4, #{a}]\nadd r5, r5, #1\nand r5, r5, #{k}",
                 f"str r5, [r4, #{a}]\nsubs r6, r6, #1\nbne {number}b"],
                [f"and r6, r2, #12\nmov r7, #{k}\nstr r7, [r4, r6]\nldr r5, [r4, #{a}]"],
                ["mov r5, #0", f"strb r0, [r4, #{a + 1}]"],
                [f"push {{r0}}\nldr r5, [r4, #{a}]\npop {{r0}}"],
            ]
        )  # fmt: skip
        lines.append(f"str r5, [r4, #{a}]")
    return "\n".join(lines) + "\n" + RETURNS


def random_invariants(random: Random) -> str:
    lines = []
    for number in range(3):
        a, b = random.choice(WORDS), random.choice(WORDS)
        k = random.choice((0, 1, 3, 7, 8, 9))
        text = random.choice(
            [f"{a} <= {k}", f"{a} <= {b} + {k}", f"{a} & 0xff <= {k}", f"byte {a}+1 = 0",
             f"for each of w (3 elements of 4 bytes): +0 <= {k}",
             f"signed {a} >= -{k}", f"{a} != {k + 3}", f"{a} = 0 or {b} <= {k} and {a} < 16"]
        )  # fmt: skip
        lines.append(f"invariant i{number}: {text}")
    return "\n".join(lines)


def holds(machine: EntryMachine, one: LocatedInvariant) -> bool:
    def read(word: MemoryWord) -> int:
        return machine.memory.load(one.address(word), word.size)

    return one.fact.predicate.holds(read)


@pytest.mark.slow("analyses random programs, and executes them")
@pytest.mark.parametrize("seed", range(cases(4)))
def test_no_execution_breaks_a_proved_invariant(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    code = {name: random_entry(random) for name in random.sample(ENTRIES, 2)}
    elf = kernel(code, "w: .word 0\nlimit: .word 0\nother: .word 0\n.space 64\n")
    found = proofs(tmp_path, elf, random_invariants(random))
    image = Image.load(elf)
    verdicts = {one.fact: one.verdict for one in found.facts}
    proved = [
        one
        for one in found.located.invariants
        if verdicts[one.fact] is FactVerdict.PROVED and holds(EntryMachine.of(image), one)
    ]
    for _ in range(30):
        machine = EntryMachine.of(image)
        known = [one for one in proved if holds(machine, one)]
        for _ in range(6):
            name = random.choice(tuple(code))
            machine.enter(name, random)
            for one in known:
                assert holds(machine, one), (seed, name, str(one.fact), code[name])


SCRIPT = """
PHDRS { text PT_LOAD; data PT_LOAD; }
SECTIONS {
    .text : { *(.text) } :text
    .data : { *(.data) } :data
    .later 0xf0030000 (NOLOAD) : { *(.later) } :NONE
}
"""


def test_memory_that_is_not_loaded(tmp_path: Path) -> None:
    """Its words are in a section without a segment: start-up code fills them."""
    script = tmp_path / "link.ld"
    script.write_text(SCRIPT)
    section = '.section .later,"aw",%nobits\nlater: .space 4\nsecond: .space 4\n'
    code = {"svc": ROUND.replace("=w", "=later"), "irq": COUNTS.replace("=w", "=second")}
    elf = kernel(code, DATA + section, link=(f"-Wl,-T,{script}",))
    found = proofs(tmp_path, elf, "invariant small: later <= 7\ninvariant other: later+4 <= 7")
    assert [one.verdict.value for one in found.facts] == ["proved", "assumed"]
    assert "not inductive" in found.facts[1].why
    assert any("loaded image it is not known" in str(one) for one in found.assumptions)
