"""Exception returns to known code of the kernel end no path (rule 49)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.wcet.small_programs import BOARDS, COUNTS, Analysed, Board

REFUSED = 5
GO = f"go: ldr r3, =20000\n{COUNTS}bx lr\n"
SAVES = "mov r1, #{}\nmsr spsr_cxsf, r1\n"
RETURNS = f"adr r0, go\nmovs pc, r0\n{GO}"
USER, MASKED, UNMASKED = SAVES.format(0x10), SAVES.format(0xD3), SAVES.format(0x13)


@pytest.fixture
def analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Analysed:
    return Analysed(tmp_path, capsys)


STAY = {
    "masked": MASKED + RETURNS,
    "unmasked": UNMASKED + RETURNS,
    "unknown": RETURNS,
    "subs": f"{MASKED}adr lr, go\nadd lr, lr, #4\nsubs pc, lr, #4\n{GO}",
    "ldm": f"{MASKED}adr r0, go\npush {{r0}}\nldmia sp!, {{pc}}^\n{GO}",
    "rfe": f"mov r1, #0xd3\nadr r0, go\npush {{r0, r1}}\nrfeia sp!\n{GO}",
    "the control field alone": f"{USER}mov r1, #0xd3\nmsr spsr_c, r1\n{RETURNS}",
    "an immediate": f"{USER}msr spsr_c, #0xd3\n{RETURNS}",
    "a condition": f"{USER}cmp r0, #0\nmov r1, #0xd3\nmsreq spsr_c, r1\n{RETURNS}",
    "of another mode": f"{USER}cps #0x12\n{RETURNS}",
    "of the mode that comes back": f"cps #0x12\n{MASKED}cps #0x13\n{USER}cps #0x12\n{RETURNS}",
    "changed by a callee": f"push {{r4, lr}}\n{USER}bl change\n{RETURNS}",
    "one of two places": f"ands r0, r0, #1\nadr r0, go\nadrne r0, other\nmovs pc, r0\n{GO}"
    "other: bx lr\n",
}
LEAVE = {
    "user": USER + RETURNS,
    "rfe": f"mov r1, #0x10\nadr r0, go\npush {{r0, r1}}\nrfeia sp!\n{GO}",
    "flags of another status": f"{USER}mov r1, #0xd3\nmsr spsr_f, r1\n{RETURNS}",
    "of the mode that comes back": f"cps #0x12\n{USER}cps #0x13\n{MASKED}cps #0x12\n{RETURNS}",
    "nothing is known": "movs pc, lr\n",
    "memory of somebody else": "ldr r0, =0x8000\nmovs pc, r0\n",
}
CHANGE = f".type change, %function\nchange: {MASKED}bx lr\n"


@pytest.mark.parametrize("case", STAY)
def test_returns_that_may_stay_are_refused(analysed: Analysed, case: str) -> None:
    """Rule 49: the path ended there, and the loop behind it was left out."""
    found = analysed(STAY[case], other=CHANGE)
    assert found.status == REFUSED
    assert "the path goes on there" in found.error
    assert "path must end at" in found.error


@pytest.mark.slow
@pytest.mark.parametrize("case", LEAVE)
def test_returns_that_leave_end_the_path(analysed: Analysed, case: str) -> None:
    found = analysed(LEAVE[case])
    assert found.status == 0
    assert any("leaves the kernel, or unmasks interrupts" in text for text in found.assumptions)


def test_a_fact_ends_the_path(analysed: Analysed) -> None:
    body = MASKED + RETURNS.replace("movs", "here: movs")
    assert analysed(body, "--end", "here").status == 0


@pytest.mark.slow
def test_a_fact_about_all_of_them_is_contradicted_by_a_known_status(analysed: Analysed) -> None:
    facts = "path must end at every exception return\n"
    assert analysed(RETURNS, facts=facts).status == 0
    assert analysed(UNMASKED + RETURNS, facts=facts).status == 0
    assert analysed(MASKED + RETURNS, facts=facts).status == REFUSED


@pytest.mark.slow
def test_an_exit_of_the_platform_may_unmask(analysed: Analysed) -> None:
    named = RETURNS.replace("movs", ".global exit_to_idle\nexit_to_idle: movs")
    assert analysed(UNMASKED + named).status == 0
    assert analysed(named).status == 0
    assert analysed(MASKED + named).status == REFUSED


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS[1:], ids=["arm", "thumb"])
def test_so_it_is_on_the_other_core_and_in_thumb(analysed: Analysed, board: Board) -> None:
    go = GO if board == BOARDS[1] else GO.replace("go:", ".thumb_func\ngo:")
    returns = f"ldr r0, =go\nmov lr, r0\nsubs pc, lr, #0\n{go}"
    wide = f"mov r1, #0xd3\nldr r0, =go\npush {{r0, r1}}\nrfeia sp!\n{go}"
    assert analysed(MASKED + returns, board=board).status == REFUSED
    assert analysed(USER + returns, board=board).status == 0
    assert analysed(wide, board=board).status == REFUSED
