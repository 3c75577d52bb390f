"""Exception returns to known code of the kernel end no path (rule 49)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.wcet.small_programs import BOARDS, COUNTS, Analysed, Board

REFUSED = 5
ROUNDS = 200
GO = f"go: ldr r3, ={ROUNDS}\n{COUNTS}bx lr\n"
SAVES = "mov r1, #{}\nmsr spsr_cxsf, r1\n"
RETURNS = f"adr r0, go\nmovs pc, r0\n{GO}"
USER, MASKED, UNMASKED = SAVES.format(0x10), SAVES.format(0xD3), SAVES.format(0x13)


@pytest.fixture
def analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Analysed:
    return Analysed(tmp_path, capsys)


FOLLOWED = {
    "masked": MASKED + RETURNS,
    "subs": f"mov r12, lr\n{MASKED}adr lr, go\nadd lr, lr, #4\nsubs pc, lr, #4\n"
    f"{GO.replace('bx lr', 'bx r12')}",
    "ldm": f"{MASKED}adr r0, go\npush {{r0}}\nldmia sp!, {{pc}}^\n{GO}",
    "rfe": f"mov r1, #0xd3\nadr r0, go\npush {{r0, r1}}\nrfeia sp!\n{GO}",
    "the control field alone": f"{USER}mov r1, #0xd3\nmsr spsr_c, r1\n{RETURNS}",
    "an immediate": f"{USER}msr spsr_c, #0xd3\n{RETURNS}",
    "of the mode that comes back": "mov r12, lr\ncps #0x12\n"
    f"{MASKED}cps #0x13\n{USER}cps #0x12\n{RETURNS.replace('bx lr', 'bx r12')}",
    "one of two places": f"{MASKED}ands r0, r0, #1\nadr r0, go\nadrne r0, other\nmovs pc, r0\n"
    f"{GO}other: bx lr\n",
    "a condition": f"{MASKED}cmp r0, #0\nadr r0, go\nmovseq pc, r0\n{GO}",
    "in a callee": "push {r4, lr}\nbl callee\npop {r4, pc}\n"
    f".type callee, %function\ncallee: {MASKED}{RETURNS}",
}
STAY = {
    "unmasked": UNMASKED + RETURNS,
    "unknown": RETURNS,
    "a condition": f"{USER}cmp r0, #0\nmov r1, #0xd3\nmsreq spsr_c, r1\n{RETURNS}",
    "of another mode": f"{USER}cps #0x12\n{RETURNS}",
    "big-endian data": f"ldr r1, =0x2d3\nadr r0, go\npush {{r0, r1}}\nrfeia sp!\n{GO}",
    "Thumb code": f"mov r1, #0xf3\nadr r0, go\npush {{r0, r1}}\nrfeia sp!\n{GO}",
    "changed by a callee": f"push {{r4, lr}}\n{USER}bl change\n{RETURNS}",
    "changed back by a callee": f"push {{r4, lr}}\n{MASKED}bl unmask\n"
    f"{RETURNS.replace('bx lr', 'pop {r4, pc}')}",
}
LEAVE = {
    "user": USER + RETURNS,
    "rfe": f"mov r1, #0x10\nadr r0, go\npush {{r0, r1}}\nrfeia sp!\n{GO}",
    "flags of another status": f"{USER}mov r1, #0xd3\nmsr spsr_f, r1\n{RETURNS}",
    "of the mode that comes back": f"cps #0x12\n{USER}cps #0x13\n{MASKED}cps #0x12\n{RETURNS}",
    "nothing is known": "movs pc, lr\n",
    "memory of somebody else": "ldr r0, =0x8000\nmovs pc, r0\n",
}
CHANGE = (
    f".type change, %function\nchange: {MASKED}bx lr\n"
    f".type unmask, %function\nunmask: {UNMASKED}bx lr\n"
)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("case", FOLLOWED)
def test_returns_that_surely_stay_are_followed(analysed: Analysed, case: str) -> None:
    """Rule 49: the loop behind the return belongs to the path."""
    found = analysed(FOLLOWED[case])
    assert found.status == 0, found.error
    assert found.bound == ROUNDS


@pytest.mark.parametrize("case", STAY)
def test_returns_that_may_stay_are_refused(analysed: Analysed, case: str) -> None:
    """Rule 49: the path ended there, and the loop behind it was left out."""
    found = analysed(STAY[case], other=CHANGE)
    assert found.status == REFUSED
    assert "may not leave the kernel" in found.error or "callers and callees" in found.error
    assert "path must end at" in found.error


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("case", LEAVE)
def test_returns_that_leave_end_the_path(analysed: Analysed, case: str) -> None:
    found = analysed(LEAVE[case])
    assert found.status == 0
    assert any(
        "leaves the kernel, or unmasks interrupts" in text for text in map(str, found.assumptions)
    )


def test_a_fact_ends_the_path(analysed: Analysed) -> None:
    body = MASKED + RETURNS.replace("movs", "here: movs")
    assert analysed(body, "--end", "here").status == 0


@pytest.mark.slow("several whole analyses")
def test_a_fact_about_all_of_them_is_contradicted_by_a_known_status(analysed: Analysed) -> None:
    facts = "path must end at every exception return\n"
    assert analysed(RETURNS, facts=facts).status == 0
    assert analysed(UNMASKED + RETURNS, facts=facts).status == 0
    assert analysed(MASKED + RETURNS, facts=facts).status == REFUSED


@pytest.mark.slow("several whole analyses")
def test_an_exit_of_the_platform_may_unmask(analysed: Analysed) -> None:
    named = RETURNS.replace("movs", ".global exit_to_idle\nexit_to_idle: movs")
    assert analysed(UNMASKED + named).status == 0
    assert analysed(named).status == 0
    assert analysed(MASKED + named).status == REFUSED


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("board", BOARDS[1:], ids=["arm", "thumb"])
def test_so_it_is_on_the_other_core_and_in_thumb(analysed: Analysed, board: Board) -> None:
    go = GO if board == BOARDS[1] else GO.replace("go:", ".thumb_func\ngo:")
    back = go.replace("bx lr", "bx r12")
    returns = f"mov r12, lr\nldr r0, =go\nmov lr, r0\nsubs pc, lr, #0\n{back}"
    wide = f"mov r1, #0xd3\nldr r0, =go\npush {{r0, r1}}\nrfeia sp!\n{go}"
    for body in (MASKED + returns, wide):
        found = analysed(body, board=board)
        assert found.status == (REFUSED if board.thumb else 0)
        assert board.thumb or found.bound == ROUNDS
    assert analysed(USER + returns, board=board).status == 0


ENTERED = "is called in Supervisor mode, in which it returns to its caller"


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("change", ["cps #0x13", "mov r1, #0xd3\nmsr cpsr_c, r1"])
def test_an_entry_is_called_in_the_mode_in_which_it_returns(
    analysed: Analysed, change: str
) -> None:
    """The stack on which it saved registers is then the one that it pops; this is listed."""
    found = analysed(f"push {{r4, lr}}\n{change}\nldr r3, ={ROUNDS}\n{COUNTS}pop {{r4, pc}}\n")
    assert found.status == 0, found.error
    assert found.bound == ROUNDS
    assert sum(ENTERED in text for text in found.assumptions) == 1


def test_a_function_that_the_program_calls_gets_no_mode(analysed: Analysed) -> None:
    """It calls itself in IRQ mode: on which stack it saved registers is not known."""
    body = (
        "cmp r0, #0\npush {r4, lr}\nmovne r0, #0\ncpsne #0x12\nblne main\ncps #0x13\npop {r4, pc}\n"
    )
    found = analysed(body.replace("cpsne #0x12\nblne main", "beq 2f\ncps #0x12\nbl main\n2:"))
    assert found.status == REFUSED
