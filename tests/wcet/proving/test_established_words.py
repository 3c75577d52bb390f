"""Invariants that functions establish: proved by the ends of these functions, and of the paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address
from tests.testing.wcet.entry_programs import RETURNS, EntryMachine, kernel
from tests.testing.wcet.proved import options_for
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.invariant_proofs import preserved
from wcet.proving.verdict import EntryFinding, FindingKind

DATA = (
    ".type w, %object\n.size w, 4\nw: .word 0\n"
    ".type other, %object\n.size other, 64\nother: .space 64\n"
)
NULL = "invariant null: w = 0"
WAKES = "ldr sp, =0xf0200000\npush {r4, lr}\nldr r1, =w\ncmp r0, #0\nstrne r0, [r1]\n"
CALLS = WAKES + "bl run\npop {r4, lr}\n" + RETURNS
# Clears the word if it is not 0. The word is not stored to on the other way.
RUN = (
    ".type run, %function\nrun: ldr r1, =w\nldr r2, [r1]\ncmp r2, #0\nbeq 1f\n"
    "mov r3, #0\nstr r3, [r1]\n{}1: {}bx lr\n"
)
# A path ends here; the code behind calls run, and returns.
LEAVES = WAKES + "pop {r4, lr}\nldr r3, =other\nldr r3, [r3]\ncmp r3, #0\nbne leave\n" + CALLS
LEAVE = (
    ".type leave, %function\nleave: ldr sp, =0xf0200000\n"
    ".global exit_to_interrupt\nexit_to_interrupt: {}\n{}movs pc, r4\n"
)
ESTABLISHED = "by the functions that establish it"


class Case(NamedTuple):
    code: str  # of the system call
    others: str
    holds: bool
    established: bool = True


CASES = {
    "a function clears it": Case(CALLS, RUN.format("", ""), True),
    "by a conditional store": Case(CALLS, RUN.format("", "").replace("beq 1f\n", ""), True),
    "another word": Case(CALLS, RUN.format("", "").replace("mov r3, #0", "mov r3, #9"), False),
    "only sometimes": Case(CALLS, RUN.format("", "").replace("str r3", "strmi r3"), False),
    "stored to again": Case(CALLS, RUN.format("", "str r0, [r1]\n"), False),
    "stored to on one way": Case(CALLS, RUN.format("str r0, [r1]\n", ""), False),
    "a part is stored to": Case(CALLS, RUN.format("", "strb r0, [r1, #2]\n"), False),
    "next to it": Case(CALLS, RUN.format("", "str r0, [r1, #4]\n"), True),
    "behind a pointer": Case(
        CALLS,
        RUN.format("", "ldr r3, [r1, #8]\nstr r0, [r3]\n"),
        True,  # S8
    ),
    "stored to behind the call": Case(
        CALLS.replace("bl run\n", "bl run\nldr r1, =w\nstr r4, [r1]\n"), RUN.format("", ""), False
    ),
    "around the call": Case(
        CALLS.replace("bl run\n", "cmp r4, #0\nblne run\n"), RUN.format("", ""), False
    ),
    "only a loop clears it": Case(CALLS, RUN.format("subs r0, r0, #1\nbne run\n", ""), True, False),
    "code behind an end": Case(LEAVES, LEAVE.format("bl run", "") + RUN.format("", ""), True),
    "code behind does not": Case(LEAVES, LEAVE.format("nop", "") + RUN.format("", ""), False),
    "code behind stores to it": Case(
        LEAVES,
        LEAVE.format("bl run", "ldr r1, =w\nstr r0, [r1]\n") + RUN.format("", ""),
        False,
    ),
    "code behind is interrupted": Case(
        LEAVES, LEAVE.format("bl run", "cpsie i\n") + RUN.format("", ""), False
    ),
    "code behind enters the kernel": Case(
        LEAVES, LEAVE.format("bl run", "svc 0\n") + RUN.format("", ""), False
    ),
    "code behind returns to a caller": Case(
        LEAVES, LEAVE.format("bl run", "bx r4\n") + RUN.format("", ""), False
    ),
    "code behind relies on the entry": Case(
        LEAVES.replace("bne leave", "bne leave\nb last\nlast: nop"),
        LEAVE.format("nop", "cmp r0, #0\nbeq 2f\nbl run\n2: ") + RUN.format("", ""),
        False,
    ),
}


def judged(folder: Path, case: Case) -> tuple[EntryFinding, EntryBasis]:
    """The finding about the system call, of which the word is 0 at the start."""
    (file := folder / "my.facts").write_text(NULL + "\n")
    elf = kernel({"svc": case.code, "others": case.others}, DATA)
    options = replace(options_for(file), entries=("syscall",))
    run = AnalysisRun.begin(elf, options, SilentStageLog())
    basis = EntryBasis.of(run, "syscall", run.entries["syscall"], run.facts)
    [invariant] = run.facts.invariants
    return preserved(basis, invariant), basis


@pytest.mark.parametrize("name", CASES)
def test_findings(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found, basis = judged(tmp_path, case)
    assert (found.kind is FindingKind.HOLDS) == case.holds, found
    assert (ESTABLISHED in found.why) == (case.holds and case.established), found
    assert case.holds or not basis.noted


def test_assumptions(tmp_path: Path) -> None:
    """None is about the code behind an end that is followed, nor about masks in a function."""
    found, basis = judged(tmp_path, CASES["code behind an end"])
    texts = list(map(str, basis.noted))
    assert found.kind is FindingKind.HOLDS
    assert not basis.relied
    assert not [text for text in texts if "masked when a path starts" in text], texts
    _, basis = judged(tmp_path, CASES["behind a pointer"])
    assert [text for text in map(str, basis.noted) if "does not hit w, an object" in text]


def test_an_end_where_it_holds(tmp_path: Path) -> None:
    """The code behind is not followed: it is assumed to preserve the word."""
    code = "ldr r3, =other\nldr r3, [r3]\ncmp r3, #0\nbne leave\n" + CALLS
    others = LEAVE.format("nop", "") + RUN.format("", "")
    found, basis = judged(tmp_path, Case(code, others, True))
    assert (found.kind, len(basis.relied)) == (FindingKind.HOLDS, 1), found


def test_thumb(tmp_path: Path) -> None:
    run = RUN.format("", "").replace("mov r3", "movs r3")
    case = Case(
        CALLS.replace("bl run", "blx run"), f".thumb\n.thumb_func\n{run}.ltorg\n.arm\n", True
    )
    found, _ = judged(tmp_path, case)
    assert ESTABLISHED in found.why, found


def piece(random: Random, label: int, *, calls: bool) -> str:
    """A store, a test of a word around another piece, a loop, or a call."""
    word = random.choice((0, 0, 4, 8))
    plain = [
        f"mov r5, #{random.choice((0, 0, 0, 5))}\nstr r5, [r4, #{word}]\n",
        f"cmp r{random.randrange(3)}, #0\nmov{random.choice(('eq', 'ne'))} r5, #0\n"
        f"streq r5, [r4, #{word}]\n",
        f"ldr r5, [r4, #{word}]\ncmp r5, #0\nmovne r5, #0\nstr r5, [r4]\n",
        "mov r5, r0\nstrne r5, [r4]\n",
    ]
    clears = "mov r5, #0\nstr r5, [r4]\n"
    jumps = [
        f"ldr r5, [r4, #{word}]\ncmp r5, #0\nb{random.choice(('eq', 'ne'))} {label}f\n"
        f"{random.choice([*plain, clears])}{label}:\n",
        f"cmp r{random.randrange(3)}, #0\nbeq {label}f\n"
        f"{random.choice([*plain, clears])}{label}:\n",
        f"mov r6, #3\n{label}: {random.choice([*plain, clears])}subs r6, r6, #1\nbne {label}b\n",
    ]
    made = [*plain, clears, *jumps]
    return random.choice([*made, *["bl run\n"] * 6] if calls else made)


def pieces(random: Random, *, calls: bool) -> str:
    return "".join(piece(random, 1 + n, calls=calls) for n in range(random.randint(1, 3)))


@pytest.mark.parametrize("seed", range(cases(30)))
def test_no_execution_breaks_an_established_invariant(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    run = f".type run, %function\nrun: ldr r4, =w\n{pieces(random, calls=False)}bx lr\n"
    start = "mov r7, lr\nldr r4, =w\n"
    code = start + pieces(random, calls=True) + pieces(random, calls=True) + "movs pc, r7\n"
    found, basis = judged(tmp_path, Case(code, run, True))
    if found.kind is not FindingKind.HOLDS:
        return
    machine = EntryMachine.of(basis.image)
    for _ in range(40):
        machine.enter("svc", random)
        assert machine.memory.load(address(basis.image, "w"), 4) == 0, (code, run)
