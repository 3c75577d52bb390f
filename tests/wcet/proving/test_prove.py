"""``wcet prove``: verdicts on facts of small programs, and no fact that helps to prove itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from quoll.inlining.sharing import SummarySettings
from tests.testing.quoll.building import build
from tests.testing.wcet.infeasible_programs import build_pairs
from tests.testing.wcet.programs import CODE
from tests.testing.wcet.proved import options_for
from wcet.analysis.stage_times import SilentStageLog
from wcet.cli import main
from wcet.proving.prove import FactProofs, prove_facts

HEAD = ".syntax unified\n.global main\n.type main, %function\nmain:\n"
# A square is 0 or 1 modulo 4. Otherwise the loop would run 100 times.
SQUARE = """\
mul r1, r0, r0
and r1, r1, #3
mov r3, #4
cmp r1, #3
bne loop
odd: mov r3, #100
loop: subs r3, r3, #1
bne loop
bx lr
"""
COUNTED = "mov r3, #8\nloop: subs r3, r3, #1\nbne loop\nbx lr\n"
READ = "ldr r1, =word\nldr r3, [r1]\nand r3, r3, #31\nfrom: add r3, r3, #1\n"
FROM_MEMORY = f"{READ}loop: subs r3, r3, #1\nbne loop\nbx lr\n.ltorg\n.data\nword: .word 0\n"
GUARDED = (
    "cmp r0, #5\nbls 1f\nx: add r1, r1, #1\n1: cmp r0, #5\nbls 2f\ny: add r1, r1, #2\n2: bx lr\n"
)
STORES = """\
ldr r1, =word
str r0, [r1]
ldr r5, =0xf0050010
at: str r0, [r2]
bx lr
.ltorg
.data
word: .word 0
"""
# The first iteration executes x, and the last one may lead to y.
SEARCHED = """\
mov r4, #0
loop: cmp r4, #0
bne 1f
x: add r1, r1, #1
1: cmp r2, r4
beq 2f
add r4, r4, #1
cmp r4, #4
bne loop
y: add r1, r1, #2
2: bx lr
"""
POLLS = "ldr r1, =0x53f80000\nloop: ldr r3, [r1]\ncmp r3, #0\nbeq 1f\nx: b loop\n1: bx lr\n"
RECURSIVE = """\
push {r4, lr}
and r0, r0, #7
bl g
pop {r4, pc}
.type g, %function
g: cmp r0, #0
bxeq lr
push {r4, lr}
sub r0, r0, #1
bl g
pop {r4, pc}
"""
UNKNOWN_DEPTH = RECURSIVE.replace("and r0, r0, #7", "ldr r0, [r1]")
# The path ends in a call from a loop, so that a part of the callee is in no loop.
ENDS = """\
push {r4, lr}
mov r4, #3
loop: bl g
subs r4, r4, #1
bne loop
pop {r4, pc}
.type g, %function
g: cmp r0, #1
bne 1f
one: add r2, r2, #1
1: cmp r2, #7
bxne lr
cmp r3, #1
bne last
mov r3, #2
last: nop
stay: b stay
"""
CALLS = """\
push {r4, lr}
bl g
cmp r0, #0
beq 1f
first: bl h
b 2f
1: bl h
2: pop {r4, pc}
.type g, %function
g: cmp r0, #1
bxeq lr
bx lr
.type h, %function
h: add r0, r0, #1
add r0, r0, #2
bx lr
"""


class Case(NamedTuple):
    code: str
    facts: str
    verdicts: str  # a letter for each fact: proved, refuted or assumed


CASES = {
    "excluded by conditions": Case(
        SQUARE,
        "odd never executes\nignore odd\nignore edge main -> odd\n"
        "branch at main+0x10 is always taken\nregister r3 at loop is at most 100",
        "ppppp",
    ),
    "counted": Case(
        COUNTED,
        "loop loop at most 8\nloop executes at most 8 times\nmain executes at most 7 times in main",
        "ppp",
    ),
    "a loop that never repeats": Case(COUNTED.replace("#8", "#1"), "loop loop at most n", "a"),
    "one iteration more": Case(COUNTED.replace("#8", "#1"), "loop loop at most n + 1", "p"),
    "refuted by counts": Case(COUNTED, "loop executes at most 7 times", "r"),
    "refuted by values": Case(COUNTED, "register r3 at loop is at most 7", "r"),
    "twice the same": Case(
        GUARDED, "register r0 at x is at most 8\nregister r0 at x is at most 8", "aa"
    ),
    "each would prove the other": Case(
        GUARDED, "x never executes\nignore x\ny never executes", "aaa"
    ),
    "both or none": Case(GUARDED, "x is consistent with y in main", "a"),
    "not in conflict": Case(
        GUARDED,
        "x conflicts with y in main\nignore edge main -> x\nx executes at most 1 times",
        "aap",
    ),
    "invocations": Case(
        CALLS,
        "require g\nrequire first\nh executes at most 1 times\ng is consistent with h in main\n"
        "h executes at most 1 times in h",
        "pappp",
    ),
    "depths": Case(RECURSIVE, "recursion of g at most 8\ng executes at most 8 times", "pp"),
    "a small depth": Case(RECURSIVE, "recursion of g at most 7", "a"),
    "a wrong premise": Case(
        CALLS, "function h takes at most 1 cycles\nh executes at most 1 times", "rp"
    ),
    "iterations": Case(SEARCHED, "x conflicts with y in main\ny executes at most 1 times", "ap"),
    "counts in a stated loop": Case(
        POLLS,
        "loop loop at most 5\nx executes at most 4 times\nregister r2 at x is at most 1",
        "aaa",
    ),
    "an unknown depth": Case(UNKNOWN_DEPTH, "recursion of g at most 8", "a"),
    "replaced": Case(CALLS, "h executes at most 1 times\nfunction g takes at most 9 cycles", "aa"),
    "memory": Case(
        STORES,
        "region r from 0xf0040000 to 0xf0040fff is read-only\n"
        "region s from 0xf0050000 to 0xf0050fff is cached\n"
        "register r5 at at points into s aligned 16\nregister r2 at at points into s\n"
        "access at at points into s\n",
        "aapaa",
    ),
    "an end in a loop": Case(ENDS, "path must end at last\none conflicts with last in g", "aa"),
}


def proofs(folder: Path, code: str, facts: str) -> FactProofs:
    elf = build(HEAD + code, language="S", link=(CODE,))
    file = folder / "my.facts"
    file.write_text(facts + "\n")
    return prove_facts(elf, options_for(file), SilentStageLog())


@pytest.mark.slow("a whole analysis or two for each case")
@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found = proofs(tmp_path, case.code, case.facts)
    assert [one.verdict.value[0] for one in found.facts] == list(case.verdicts), found.facts
    assert all(one.why for one in found.facts)
    assert all(bool(one.needs) == (one.verdict.value == "assumed") for one in found.facts)


@pytest.mark.slow("two whole analyses")
def test_verdicts_name_the_facts_that_they_depend_on(tmp_path: Path) -> None:
    facts = "loop loop at most 9\nregister r3 at from is at most 8"
    loop, register = proofs(tmp_path, FROM_MEMORY, facts).facts
    assert (loop.verdict.value, register.verdict.value) == ("proved", "assumed")
    assert loop.given == (str(register.fact.source),)
    facts = "loop loop at most 4\nodd never executes"
    loop, never = proofs(tmp_path, SQUARE, facts).facts
    assert (loop.verdict.value, never.verdict.value) == ("proved", "proved")
    assert not loop.given + never.given
    region = "region s from 0xf0050000 to 0xf0050fff is cached"
    facts = f"{region}\nregister r0 at main is at most 8\nregister r0 at at points into s"
    _, register, wrong = proofs(tmp_path, STORES, facts).facts
    assert wrong.verdict.value == "refuted"
    assert wrong.given == (str(register.fact.source),)
    [alone] = proofs(tmp_path, COUNTED, "loop loop at most 7").facts
    assert (alone.verdict.value, alone.given) == ("refuted", ())


@pytest.mark.slow("two whole analyses")
def test_code_in_a_function_with_a_summary_is_not_counted(tmp_path: Path) -> None:
    elf, file = build(HEAD + CALLS, language="S", link=(CODE,)), tmp_path / "my.facts"
    file.write_text("h executes at most 1 times\n")
    shared = replace(options_for(file), summary_settings=SummarySettings(contexts=0, least=1))
    for options, verdict in ((options_for(file), "proved"), (shared, "assumed")):
        [one] = prove_facts(elf, options, SilentStageLog()).facts
        assert one.verdict.value == verdict, one


@pytest.mark.slow("analyses a program of pairs")
def test_a_planted_pair_is_a_conflict(tmp_path: Path) -> None:
    file = tmp_path / "my.facts"
    file.write_text("work conflicts with more in main\n")
    elf = build_pairs(("global",), 1, "-O1").elf
    [one] = prove_facts(elf, options_for(file), SilentStageLog()).facts
    assert one.verdict.value == "proved", one
    assert "exclude each other" in one.why
    elf = build_pairs(("toggled",), 1, "-O1").elf
    [one] = prove_facts(elf, options_for(file), SilentStageLog()).facts
    assert one.verdict.value == "assumed", one
    assert one.formulas
    assert all("(check-sat)" in formula for formula in one.formulas)


@pytest.mark.slow("runs the command several times")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(HEAD + GUARDED, language="S", link=(CODE,))
    file = tmp_path / "my.facts"
    command = ["prove", str(elf), "--platform", "kzm", "--entry", "main", "--quiet", "--no-cache"]
    file.write_text("x executes at most 1 times\n")
    assert main([*command, "--facts", str(file)]) == 0
    file.write_text("x executes at most 1 times\ny never executes\n")
    folder = tmp_path / "open"
    assert main([*command, "--facts", str(file), "--obligations", str(folder)]) == 1
    assert main([*command, "--facts", str(file), "--allow-assumed"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["002.1.smt2", "002.txt"]
    assert "y never executes" in (folder / "002.txt").read_text()
    assert "(assert" in (folder / "002.1.smt2").read_text()
    capsys.readouterr()
    assert main([*command, "--facts", str(file), "--obligations", str(folder)]) == 2
    assert "is not an empty folder" in capsys.readouterr().err
    assert main([*command, "--facts", str(file), "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["proved"], document["refuted"], document["assumed"]) == (1, 0, 1)
