"""An assumption that the program contradicts is an error (rule 49).

``CONTRADICTED`` has a program for each kind of assumption of which that can be seen in the binary,
``UNDECIDABLE`` says of the others why it cannot.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from quoll.assumptions import KINDS
from tests.testing.wcet.small_programs import BOARDS, COUNTS, KZM, Analysed, Board

FACTS, REFUSED, NO_BOUND, TIMING, INFEASIBLE = 4, 5, 6, 7, 9  # exit statuses
READ_ONLY = "region data from 0xf0020000 to 0xf0020fff is read-only\n"
FUNCTIONS = ".type g, %function\ng: bx lr\n.type h, %function\nh: bx lr\n"
BRANCHES = "cmp r0, #1\nbeq 1f\nmov r1, #1\n1: bx lr\n"
STAYS = "msr spsr_cxsf, r1\nadr r0, go\nmovs pc, r0\ngo: ldr r3, =20000\n" + COUNTS + "bx lr\n"


class Case(NamedTuple):
    body: str
    status: int
    said: str  # in the error
    other: str = ""
    facts: str = ""
    board: Board = KZM


CONTRADICTED = {
    # Every place of the store is a live frame, more than 64 KiB of it.
    "S1": Case(
        "ldr sp, =0xf0080000\nsub sp, sp, #0x30000\nmov r3, #5\nstr r3, [sp]\nldr r2, =0x1ffff\n"
        "and r0, r0, r2\nbic r0, r0, #3\nldr r2, =0xf0050000\nmov r1, #1000\nstr r1, [r2, r0]\n"
        f"ldr r3, [sp]\n{COUNTS}bx lr\n",
        NO_BOUND,
        "ldr r3, [sp]",
    ),
    # Every place of the store is in a section that is not written otherwise: it is written here.
    "S2": Case(
        "and r0, r0, #1\nldr r2, =constant\nldr r1, =20000\nstr r1, [r2, r0, lsl #2]\n"
        f"ldr r3, [r2]\n{COUNTS}bx lr\n",
        NO_BOUND,
        "ldr r3, [r2]",
    ),
    # Every place of the store holds a saved register or the return address.
    "F1": Case(
        "push {r4, lr}\nand r0, r0, #1\nstr r1, [sp, r0, lsl #2]\npop {r4, pc}\n",
        REFUSED,
        "a store hits saved words wherever it goes",
    ),
    "return in context": Case(
        "push {r4, lr}\nldr r1, =g\nbl k\npop {r4, pc}\n",
        REFUSED,
        "bx r1 goes to",
        FUNCTIONS + ".type k, %function\nk: bx r1\n",
        "k returns to its caller\n",
    ),
    "exception return": Case(f"mov r1, #0x13\n{STAYS}", REFUSED, "the path goes on there"),
    # The function that changes to Supervisor mode is called in IRQ mode.
    "entry mode": Case(
        "push {r4, lr}\ncps #0x12\nbl k\ncps #0x13\npop {r4, pc}\n",
        REFUSED,
        "control gets here in mode 0x12",
        ".type k, %function\nk: push {r4, lr}\ncps #0x13\npop {r4, pc}\n",
    ),
    "returns-unmasked": Case(f"ldr r1, [r1]\n{STAYS}", REFUSED, "an unknown status word"),
    "ends": Case(
        "mov r1, #0xd3\nmsr spsr_cxsf, r1\nadr r0, go\n.global exit_to_user\nexit_to_user:\n"
        "movs pc, r0\ngo: bx lr\n",
        REFUSED,
        "the status word 0xd3",
    ),
    # The function that writes back its argument is called with a word of IRQ mode.
    "restores mode": Case(
        "push {r4, lr}\ncps #0x13\nmov r0, #0xd2\nbl k\npop {r4, pc}\n",
        REFUSED,
        "changes the mode here",
        ".type k, %function\nk: msr cpsr_c, r0\nbx lr\n",
    ),
    "return": Case(
        "push {r4, lr}\nstr r0, [sp, #4]\npop {r4, pc}\n", REFUSED, "is not proved to return"
    ),
    "tail call": Case("mov lr, r0\nb g\n", REFUSED, "bx lr", FUNCTIONS),
    "spilled table": Case(
        "sub sp, sp, #8\nldr r1, =table\nstr r1, [sp]\nldr r1, =main\nstr r1, [sp]\nldr r1, [sp]\n"
        "and r0, r0, #1\nldr pc, [r1, r0, lsl #2]\n",
        REFUSED,
        "which is not code",
    ),
    "fact: targets": Case(
        "ldr r1, =g\nhere: bx r1\n", REFUSED, "bx r1 goes to", FUNCTIONS, "targets of here are h\n"
    ),
    "fact: returns": Case(
        "push {r4, lr}\nldr r1, =g\nbl k\npop {r4, pc}\n",
        REFUSED,
        "bx r1 goes to",
        FUNCTIONS + ".type k, %function\nk: bx r1\n",
        "k returns to its caller\n",
    ),
    "fact: never returns": Case(
        "push {r4, lr}\ncmp r0, #0\nbleq g\npop {r4, pc}\n",
        REFUSED,
        "to no end of a path",
        FUNCTIONS,
        "g never returns\n",
    ),
    "fact: begins unmasked": Case(
        "push {r4, lr}\ncpsid i\nbl g\npop {r4, pc}\n",
        FACTS,
        "interrupts are masked when control gets to",
        FUNCTIONS,
        "g begins unmasked\n",
    ),
    "fact: loop": Case(
        f"mov r3, #5\n{COUNTS}bx lr\n", FACTS, "5 times", facts="loop 0xf0010004 at most 3\n"
    ),
    "fact: register": Case(
        "mov r3, #10\nhere: ldr r0, [r1]\nbx lr\n",
        FACTS,
        "r3 is 0xa",
        facts="register r3 at here is at most 4\n",
    ),
    "fact: pointer": Case(
        "ldr r1, =value\nhere: ldr r0, [r1]\nbx lr\n",
        FACTS,
        "r1 is 0xf0020000",
        facts="region low from 0x30000 to 0x30fff is cached\nregister r1 at here points into low\n",
    ),
    "fact: region": Case(
        "and r0, r0, #1\nldr r1, =value\nstr r0, [r1, r0, lsl #2]\nbx lr\n",
        REFUSED,
        "which is read-only by",
        facts=READ_ONLY,
    ),
    "fact: region of an object": Case(
        "and r0, r0, #1\nldr r1, =value\nstr r0, [r1, r0, lsl #2]\nbx lr\n",
        REFUSED,
        "which is read-only by",
        ".type value, %object\n.size value, 8\n",
        "region value is read-only\n",
    ),
    "fact: invariant": Case(
        "bx lr\n",
        FACTS,
        "value is 0x7 when a path starts",
        ".global vector_irq\n.set vector_irq, main\n",
        "region data from 0xf0020000 to 0xf00200ff is cached\n"
        "region data holds its initial contents at main\ninvariant small: value <= 3\n",
    ),
    "fact: branch": Case(
        f"mov r0, #1\n{BRANCHES}",
        INFEASIBLE,
        "branch at",
        facts="branch at 0xf0010008 is never taken\n",
    ),
    "fact: ignore edge": Case(
        "mov r0, #1\nb 1f\n1: bx lr\n",
        INFEASIBLE,
        "ignore edge",
        facts="ignore edge 0xf0010004 -> 0xf0010008\n",
    ),
    "fact: ignore": Case(
        "mov r0, #1\nb 1f\n1: bx lr\n", INFEASIBLE, "ignore", facts="ignore 0xf0010008\n"
    ),
    "fact: recursion": Case(
        "push {lr}\nmov r0, #5\nbl k\npop {pc}\n",
        FACTS,
        "5 times",
        ".type k, %function\nk: push {lr}\nsubs r0, r0, #1\nblne k\npop {pc}\n",
        "recursion of k at most 2\n",
    ),
    "fact: conflict": Case(
        "push {lr}\nbl g\nbl h\npop {pc}\n",
        INFEASIBLE,
        "conflicts",
        FUNCTIONS,
        "g conflicts with h in main\n",
    ),
    "fact: consistent": Case(
        "push {r4, lr}\nbl g\ncmp r0, #0\nbleq h\npop {r4, pc}\n",
        INFEASIBLE,
        "consistent",
        FUNCTIONS,
        "main+0x4 is consistent with h in main\nh never executes\n",
    ),
    "fact: count": Case(
        f"mov r3, #5\n{COUNTS}bx lr\n",
        FACTS,
        "k.facts:1: main+0x4 is executed at least 5 times on every path, not at most 4: every "
        "execution begins with the same",
        facts="main+0x4 executes at most 4 times\n",
    ),
    # No execution gets there: the sum is always 55.
    "fact: require": Case(
        "mov r3, #10\nmov r0, #0\n1: add r0, r0, r3\nsubs r3, r3, #1\nbne 1b\ncmp r0, #55\n"
        "beq 2f\nhere: nop\n2: bx lr\n",
        INFEASIBLE,
        "k.facts:1: require here",
        facts="require here\n",
    ),
    "fact: function": Case(
        "push {lr}\nbl k\npop {pc}\n",
        FACTS,
        "k.facts:1: k takes at least 40 cycles in every call, not at most 5: it issues at least 40 "
        "instructions that are no branches, on the shortest path",
        f".type k, %function\nk: {'nop;' * 40} bx lr\n",
        "function k takes at most 5 cycles\n",
    ),
    "fact: never executes": Case(
        BRANCHES, INFEASIBLE, "never executes", facts="main+0xc never executes\n"
    ),
    "fact: linear": Case(
        "push {lr}\nbl g\npop {pc}\n", INFEASIBLE, "count(g)", FUNCTIONS, "count(g) <= 0\n"
    ),
    "platform: predictor": Case("mcr p15, 0, r0, c1, c0, 0\nbx lr\n", TIMING, "SCTLR"),
    "platform: aligned": Case(
        "ldr r1, =value+1\nldr r0, [r1]\nbx lr\n", TIMING, "which is not aligned to 4 bytes"
    ),
    "platform: level-2": Case(
        "mcr p15, 1, r0, c9, c0, 2\nbx lr\n", TIMING, "the level-2 cache", board=BOARDS[1]
    ),
    "caches: locked": Case("mcr p15, 0, r0, c9, c0, 1\nbx lr\n", TIMING, "lockdown"),
    "platform: physical-caches": Case("mcr p15, 0, r0, c10, c2, 0\nbx lr\n", TIMING, "remap"),
    "machine": Case("mcr p15, 0, r0, c1, c0, 1\nbx lr\n", TIMING, "ACTLR"),
    "aborts": Case("udf #0\n", REFUSED, "no end of a path"),
    "S6": Case(
        "ldr sp, =0x40000\npush {r0}\nmcr p15, 0, r0, c2, c0, 0\npop {r0}\nbx lr\n",
        REFUSED,
        "the stack that ends here",
    ),
    # Every place of the repeated load is a device.
    "S7": Case(
        "ldr r2, =0xf8000000\nand r0, r0, #4\nldr r3, [r2, r0]\ncmp r3, #9\nbxhi lr\n"
        f"ldr r3, [r2, r0]\n{COUNTS}bx lr\n",
        NO_BOUND,
        "ldr r3, [r2, r0]",
    ),
}

ELSEWHERE = "it is about the board, its set-up or its bus, which are not in the binary"
TIME = "it is about when an interrupt arrives, which nothing in the binary decides"
QUESTION = "it selects the paths"
DATA = "it is about data that the binary does not have"
UNDECIDABLE = {
    "S3": "two translations that the platform does not fix are not in the binary",
    "S4": "the place of the stack is not known; with a fact about sp it is, and no S4 is used",
    "S5": "the place of the stack is not known",
    "S8": "code that uses the address otherwise takes the object away; the rest is on recordings",
    "privileged": "the word is not known; a known one of User mode is refused (test_status_words)",
    "little-endian": "the word is not known; a known one with bit E is refused (test_status_words)",
    "core-has": "the revision of the chip is not in the binary",
    "masked halt": "when interrupts arrive is not in the binary",
    "halts": "interrupt handlers, which may change where they return, are not part of the path",
    "targets in context": "extraction proves what calls leave alone, under F1 and S1",
    "stored functions": "code with a store that may hit the object leaves the call unresolved",
    "shared": "the analysis proves it",
    "preemptible": "the analysis proves it",
    "fact: calls": "which objects and indices there are is not known; a known target is an error",
    "fact: switches context": "what the context is that is loaded is not known",
    "fact: list": DATA,
    "fact: unknown addresses": "it speaks of addresses of which nothing is known",
    "fact: initial contents": "what runs before the path is not part of the program",
    "fact: path starts": QUESTION,
    "fact: path ends": QUESTION,
    "fact: supervisor calls": "the handler is not looked at: the fact stands in for it",
    "fact: supervisor calls enter": "the vectors that are installed are data",
    "cache registers": ELSEWHERE,
    "pending": QUESTION,
    "platform: tlb-walks": ELSEWHERE,
    "platform: clock": ELSEWHERE,
    "controller delay": ELSEWHERE,
    "platform: memory": ELSEWHERE,
    "platform: branches": ELSEWHERE,
    "platform: wrong-path": ELSEWHERE,
    "platform: wrong-path, returns": ELSEWHERE,
    "platform: return-stack": ELSEWHERE,
    "platform: dual-issue": ELSEWHERE,
    "platform: tlb": "which translations are locked is not in the binary",
    "platform: fetch-ahead": ELSEWHERE,
    "platform: outstanding": ELSEWHERE,
    "platform: entry": ELSEWHERE,
    "platform: victims": ELSEWHERE,
    "platform: write-back": ELSEWHERE,
    "platform: bus": ELSEWHERE,
    "platform: devices": ELSEWHERE,
    "platform: another key": ELSEWHERE,
    "caches: contents": "it is the worst case",
    "caches: eviction": ELSEWHERE,
    "caches: locked again": "whether code outside of the entry locks lines again is not known",
    "caches: at the entry": "what runs before the path is not part of the program",
    "stays pending": "nothing is assumed behind a store to a register of 'pending'",
    "acknowledged by a load": "a word never read is refused; its meaning is not in the binary",
    "withdrawn by a store": "it says which moment counts as the arrival",
    "counter apart": "a store that surely hits the word has a known address, and resets it",
    "others first": TIME,
    "taken at once": TIME,
    "handed over": "what runs behind the exits is not part of the path",
    "as loaded": "what runs before the path is not part of the program",
    "fast-interrupts": TIME,
    "not-masked": TIME,
    "unmasked": TIME,
    "between entries": "what runs between two entries is not part of their paths",
    "first entry": "start-up code is no entry of the platform",
    "behind an end": "what runs behind the ends of paths is not part of them",
    "undisturbed": "words that the handler surely stores to are not assumed; threads are no path",
    "handler stores": "where the handler stores to is not known",
    "vector mode": "who else enters a handler, and monitors, are not in the table",
    "still-masked": "what runs behind the exits is not part of the path",
    "other-calls": "what is called is looked at, and listed where it is not bounded",
    "tlb-refilled": "which translations are locked is not in the binary",
    "runs-on": "attributes that do not fit are refused; the processor is not in the binary",
    "forced-core": "it is asked for although the attributes contradict it",
    "mapped as before": "no platform says what is fixed",
}


def test_every_kind_is_decided() -> None:
    kinds = {kind.name for kind in KINDS}
    assert CONTRADICTED.keys() | UNDECIDABLE.keys() == kinds
    assert not CONTRADICTED.keys() & UNDECIDABLE.keys()


def test_a_return_address_that_is_surely_hit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A byte of it, at one of four numeric addresses in a stack of known place."""
    body = "mov r6, lr\nldr sp, =0xf0020080\nldr r4, =0xf002007c\nand r1, r1, #3\nbl k\nbx r6\n"
    callee = ".type k, %function\nk: push {r3, lr}\nstrb r2, [r4, r1]\npop {r3, pc}\n"
    found = Analysed(tmp_path, capsys)(body, other=callee)
    assert (found.status, "a store hits it wherever it goes" in found.error) == (REFUSED, True)


def test_an_exit_that_returns_to_its_caller_is_no_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The platform names exits by symbols; the loop behind the call was left out."""
    analysed = Analysed(tmp_path, capsys)
    body = f"push {{r4, lr}}\nbl leave\nldr r3, =20000\n{COUNTS}pop {{r4, pc}}\n"
    leave = ".type leave, %function\nleave: nop\n.global exit_to_user\nexit_to_user: {}\n"
    for form in ("bx lr", "mov pc, lr"):
        found = analysed(body, other=leave.format(form))
        assert found.status == REFUSED
        assert "returns to the callers of leave" in found.error
    facts = "path must end at exit_to_user\n"
    assert analysed(body, other=leave.format("bx lr"), facts=facts).status == 0
    assert analysed(body, other=leave.format("movs pc, lr")).status == 0


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("kind", CONTRADICTED)
def test_a_program_that_contradicts_it_is_refused(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CONTRADICTED[kind]
    analysed = Analysed(tmp_path, capsys)
    found = analysed(case.body, other=case.other, facts=case.facts, board=case.board)
    assert (found.status, case.said in found.error) == (case.status, True), found.error
