"""Invariants that every store preserves: proved without ends of paths and bounds of loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quoll.inlining.sharing import SummarySettings
from tests.testing.wcet.entry_programs import RETURNS, kernel
from tests.testing.wcet.proved import options_for
from wcet.analysis.stage_times import SilentStageLog
from wcet.proving.prove import FactProofs, prove_facts
from wcet.proving.verdict import JudgedFact

DATA = (
    ".type w, %object\n.size w, 4\nw: .word 3\n"
    ".type other, %object\n.size other, 64\nother: .space 64\n"
)
SMALL = "invariant small: w <= 7"
CALLS = "ldr sp, =0xf0200000\npush {r4, lr}\nbl g\nbl g\npop {r4, lr}\n" + RETURNS
# g counts up to a number in memory, so that its loop has no bound, and may end the path.
COUNTS = (
    ".type g, %function\ng: ldr r1, =w\nldr r2, =other\nldr r2, [r2, #4]\n"
    "1: ldr r0, [r1]\nadd r0, r0, #1\ncmp r0, #7\nmovhi r0, #0\n{}str r0, [r1]\n"
    "subs r2, r2, #1\nbne 1b\ncmp r3, #0\nbxeq lr\nb leave\n"
    ".type leave, %function\nleave: movs pc, r2\n"
)
TEXT = f"{SMALL}\npath must end at leave"
BY_STORES = "every store preserves it"


def judged(folder: Path, code: dict[str, str], facts: str, data: str = DATA) -> JudgedFact:
    """The verdict on the first fact; functions of any size have a summary."""
    return proofs(folder, code, facts, data).facts[0]


def proofs(folder: Path, code: dict[str, str], facts: str, data: str = DATA) -> FactProofs:
    """The verdicts on all facts, as ``judged``."""
    file = folder / "my.facts"
    file.write_text(facts + "\n")
    shared = SummarySettings(contexts=0, least=1)
    options = replace(options_for(file), entries=("all",), summary_settings=shared)
    return prove_facts(kernel(code, data), options, SilentStageLog())


CASES = {
    "without a bound": (COUNTS.format(""), "proved", BY_STORES),
    "one word more": (COUNTS.format("").replace("#7", "#8"), "assumed", "paths end in"),
    "any word before": (COUNTS.format("str r3, [r1]\n"), "assumed", "paths end in"),
    "a part of it": (COUNTS.format("strb r0, [r1, #1]\n"), "assumed", "paths end in"),
    "two words": (COUNTS.format("strd r0, [r1]\n"), "assumed", "paths end in"),
    "exchanged": (COUNTS.format("swp r0, r0, [r1]\n"), "assumed", "paths end in"),
    "next to it": (COUNTS.format("str r3, [r1, #4]\n"), "proved", BY_STORES),
    "behind a pointer": (COUNTS.format("str r3, [r3]\n"), "proved", BY_STORES),  # S8
    "lines are dropped": (
        COUNTS.format("mcr p15, 0, r3, c7, c6, 1\n"), "assumed", "paths end in",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str, tmp_path: Path) -> None:
    others, verdict, why = CASES[name]
    found = judged(tmp_path, {"svc": CALLS, "others": others}, TEXT)
    assert (found.verdict.value, why in found.why) == (verdict, True), found


def test_code_behind_an_end_in_a_summary_is_assumed(tmp_path: Path) -> None:
    others = COUNTS.format("").replace("leave: movs pc, r2", "leave: b behind\nbehind: movs pc, r2")
    found = proofs(tmp_path, {"svc": CALLS, "others": others}, TEXT)
    behind = [one for one in map(str, found.assumptions) if "code behind" in one]
    assert found.facts[0].verdict.value == "proved"
    assert any("<leave>" in one for one in behind), behind


def test_a_predicate_about_two_words(tmp_path: Path) -> None:
    """Each store may preserve its own word only: the other one decides."""
    code = {"svc": CALLS, "others": COUNTS.format("")}
    found = judged(tmp_path, code, "invariant order: w <= other\npath must end at leave")
    assert found.verdict.value == "assumed", found


def test_a_store_of_more_than_the_word(tmp_path: Path) -> None:
    """The stored number is 5, and the second byte of it 0."""
    code = {"svc": CALLS, "others": COUNTS.format("mov r0, #5\n")}
    found = judged(tmp_path, code, "invariant high: byte w+1 >= 1\npath must end at leave")
    assert found.verdict.value == "assumed", found


def test_an_object_to_which_a_pointer_leads(tmp_path: Path) -> None:
    data = f"{DATA}.word w\n"
    others = COUNTS.format("str r3, [r3]\n")
    found = judged(tmp_path, {"svc": CALLS, "others": others}, TEXT, data)
    assert found.verdict.value == "assumed", found


def test_exceptions_on_a_path(tmp_path: Path) -> None:
    """A word that is right at each point may be read by an entry that begins there."""
    unmasked = CALLS.replace("bl g\n", "cpsie i\nbl g\ncpsid i\n", 1)
    found = judged(tmp_path, {"svc": unmasked, "others": COUNTS.format("")}, TEXT)
    assert (found.verdict.value, BY_STORES in found.why) == ("proved", True), found


BETWEEN = "cpsie i\nmov r0, #1\nstr r0, [r2]\n{}ldr r0, [r2]\nstr r0, [r1]\ncpsid i\n"
READING = "ldr sp, =0xf0200000\nldr r1, =w\nldr r2, =other\n{}" + RETURNS
HANDLER = "ldr r2, =other\nmov r0, #{}\nstr r0, [r2, #{}]\n" + RETURNS


@pytest.mark.parametrize(
    ("between", "number", "place", "verdict"),
    [
        ("", 50, 0, "assumed"),
        ("1: subs r3, r3, #1\nbne 1b\n", 50, 0, "assumed"),
        ("", 50, 4, "proved"),
    ],
)
def test_an_interrupt_between_a_store_and_a_load(
    between: str, number: int, place: int, verdict: str, tmp_path: Path
) -> None:
    """Its handler may store to the word that the path has just stored, and stores on."""
    code = {
        "svc": READING.format(BETWEEN.format(between)), "irq": HANDLER.format(number, place)
    }  # fmt: skip
    found = proofs(tmp_path, code, SMALL)
    assert found.facts[0].verdict.value == verdict, found.facts[0]
    listed = any("preserve registers, stack and the words" in str(a) for a in found.assumptions)
    assert listed == (verdict == "proved")


def test_a_function_that_a_fact_replaces(tmp_path: Path) -> None:
    code = {"svc": CALLS, "others": COUNTS.format("")}
    found = judged(tmp_path, code, f"{TEXT}\nfunction g takes at most 90 cycles")
    assert found.verdict.value == "assumed", found


def test_a_context_switch_needs_no_bound(tmp_path: Path) -> None:
    """Its loop without a bound is no error; what runs before it goes on is not known."""
    switch = (
        ".type g, %function\ng: ldr r1, =other\nldr r2, [r1, #4]\n1: subs r2, r2, #1\nbne 1b\n"
        "ldr sp, [r1]\nbx lr\n"
    )
    facts = f"{SMALL}\ng switches context"
    found = judged(tmp_path, {"svc": CALLS, "others": switch}, facts)
    assert (found.verdict.value, "paths end in" in found.why) == ("assumed", True), found
