"""Writes of system registers act on values (rules 44 and 48): translations, invalidated lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.harness.cases import spread
from tests.testing.wcet.small_programs import BOARDS, COUNTS, Analysed, Board

pytestmark = [
    pytest.mark.slow("an analysis for each effect"),
    pytest.mark.xdist_group("system effects"),
]

FIXED, MOVED = "0xf0020000", "0x20000"  # addresses in memory whose translation is and is not fixed
RETURNS = "pop {r4, pc}\n"
STORES = "push {r4, lr}\nldr r4, =value\nmov r1, #5\nstr r1, [r4]\nmov r2, #0\n"
LOADS = f"ldr r3, [r4]\n{COUNTS}{RETURNS}"
FIXED_DATA = "region data from 0x20000 to 0x20fff is cached and fixed\n"
CHANGES = {
    "TTBR0": "mcr p15, 0, r0, c2, c0, 0",
    "DACR": "mcr p15, 0, r0, c3, c0, 0",
    "CONTEXTIDR": "mcr p15, 0, r0, c13, c0, 1",
    "all of the TLB": "mcr p15, 0, r2, c8, c7, 0",
    "a page of the TLB": "mcr p15, 0, r4, c8, c7, 1",
    "an address space of the TLB": "mcr p15, 0, r4, c8, c7, 2",
    "the data TLB": "mcr p15, 0, r2, c8, c6, 0",
}
TTBR0 = CHANGES["TTBR0"] + "\n"
INVALIDATES = "mcr p15, 0, r4, c7, c6, 1\n"
NO_BOUND, REFUSED = 6, 5  # exit statuses


@pytest.fixture
def analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Analysed:
    return Analysed(tmp_path, capsys)


@pytest.mark.parametrize("what", spread(CHANGES, 3))
def test_memory_without_a_fixed_translation_is_other_memory(analysed: Analysed, what: str) -> None:
    """Rule 44: values took the word that was stored before for the one behind the change."""
    body = f"{STORES}{CHANGES[what]}\n{LOADS}"
    assert analysed(body, data=MOVED).status == NO_BOUND
    assert analysed(body, data=FIXED).bound == 5


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("board", BOARDS[1:], ids=["arm", "thumb"])
def test_so_it_is_on_the_other_core_and_in_thumb(analysed: Analysed, board: Board) -> None:
    body = f"{STORES}{TTBR0}{LOADS}"
    assert analysed(body, data=MOVED, board=board).status == NO_BOUND
    assert analysed(body, data=FIXED, board=board).bound == 5
    body = f"{STORES}{INVALIDATES}{LOADS}"
    assert analysed(body, data=FIXED, board=board).status == NO_BOUND


@pytest.mark.slow("several whole analyses")
def test_a_condition_is_enough(analysed: Analysed) -> None:
    assert analysed(f"{STORES}cmp r0, #0\nmcrne p15, 0, r0, c2, c0, 0\n{LOADS}", data=MOVED).status


@pytest.mark.slow("several whole analyses")
def test_constants_are_others_too(analysed: Analysed) -> None:
    """A table in a section that is never written, read behind the change."""
    body = f"push {{r4, lr}}\n{TTBR0}ldr r4, =constant\n{LOADS}"
    assert analysed(body, rodata="0x30000").status == NO_BOUND
    assert analysed(body).bound == 5


@pytest.mark.slow("several whole analyses")
def test_a_callee_changes_them(analysed: Analysed) -> None:
    other = f".type flush, %function\nflush: {TTBR0}bx lr\n"
    body = f"{STORES}bl flush\n{LOADS}"
    assert analysed(body, other=other, data=MOVED).status == NO_BOUND
    assert analysed(body, other=other).bound == 5


@pytest.mark.slow("several whole analyses")
def test_a_change_at_the_end_of_an_iteration_comes_before_the_next(analysed: Analysed) -> None:
    body = f"{STORES}1: ldr r3, [r4]\nsubs r3, r3, #1\nstr r3, [r4]\nCHANGE\nbne 1b\n{RETURNS}"
    assert analysed(body.replace("CHANGE", TTBR0), data=MOVED).status == NO_BOUND
    assert analysed(body.replace("CHANGE", INVALIDATES)).status == NO_BOUND
    assert analysed(body.replace("CHANGE", TTBR0)).bound == 5


@pytest.mark.slow("several whole analyses")
def test_a_table_of_jumps_is_another_one(analysed: Analysed) -> None:
    body = f"{TTBR0}and r0, r0, #1\nldr r1, =table\nldr pc, [r1, r0, lsl #2]\n"
    other = "first: mov r0, #1\nbx lr\nsecond: bx lr\n"
    assert analysed(body, other=other, rodata="0x30000").status == REFUSED
    assert analysed(body, other=other).status == 0


@pytest.mark.slow("several whole analyses")
def test_memory_as_loaded_is_only_so_before(analysed: Analysed) -> None:
    body = f"push {{r4, lr}}\n{TTBR0}ldr r4, =value\n{LOADS}"
    assert analysed(body, "--from-reset", data=MOVED).status == NO_BOUND
    assert analysed(body, "--from-reset", data=MOVED, facts=FIXED_DATA).bound == 7
    body = f"{STORES}{TTBR0}{LOADS}"
    assert analysed(body, "--from-reset", data=MOVED).status == NO_BOUND
    assert analysed(body, "--from-reset", data=MOVED, facts=FIXED_DATA).bound == 5


FIXED_CODE = "region code from 0x10000 to 0x10fff is cached and fixed\n"


@pytest.mark.slow("several whole analyses")
def test_code_that_may_be_other_code_is_refused(analysed: Analysed) -> None:
    """Without a fact the instructions behind the change may be any."""
    body = f"{STORES}{TTBR0}{LOADS}"
    refused = analysed(body, text="0x10000")
    assert refused.status == REFUSED
    assert "TTBR0" in refused.error or "c2, c0" in refused.error
    assert "<main+0x18>" in refused.error
    assert "region NAME from 0x10000 to 0x10fff is cached and fixed" in refused.error
    assert analysed(body, text="0x10000", facts=FIXED_CODE).bound == 5


@pytest.mark.slow("several whole analyses")
def test_code_is_refused_wherever_control_goes_behind(analysed: Analysed) -> None:
    """The callee is not in fixed memory; the change and the instructions directly after it are."""
    link = '.section .far,"ax"\n.type far, %function\nfar: bx lr\n.text\n'
    body = f"push {{r4, lr}}\n{TTBR0}ldr r3, =far\nblx r3\n{RETURNS}"
    assert analysed(body, other=link).status == 0  # .far follows .text


@pytest.mark.slow("several whole analyses")
def test_a_path_may_end_at_the_change(analysed: Analysed) -> None:
    body = f"mov r3, #5\n{COUNTS}here: {TTBR0}bx lr\n"
    assert analysed(body, "--end", "here", text="0x10000").bound == 5


@pytest.mark.slow("several whole analyses")
def test_a_stack_of_known_place_is_refused(analysed: Analysed) -> None:
    body = f"ldr sp, =0x40000\npush {{r0}}\n{TTBR0}pop {{r3}}\n{COUNTS}bx lr\n"
    refused = analysed(body)
    assert refused.status == REFUSED
    assert "stack" in refused.error
    assert "0x00040000" in refused.error
    facts = "region stack from 0x3f000 to 0x3ffff is cached and fixed\n"
    body = body.replace("push {r0}", "mov r0, #5\npush {r0}")
    assert analysed(body, facts=facts).bound == 5


@pytest.mark.slow("several whole analyses")
def test_frames_of_a_stack_of_unknown_place_are_assumed_to_stay(analysed: Analysed) -> None:
    body = f"push {{r4, lr}}\nmov r1, #5\npush {{r1}}\n{TTBR0}pop {{r3}}\n{COUNTS}{RETURNS}"
    found = analysed(body)
    assert found.bound == 5
    assert any(text.startswith("S6: ") for text in map(str, found.assumptions))
    body = f"ldr sp, =0xf0040000\nmov r1, #5\npush {{r1}}\n{TTBR0}pop {{r3}}\n{COUNTS}bx lr\n"
    found = analysed(body)
    assert found.bound == 5
    assert not any(text.startswith("S6: ") for text in map(str, found.assumptions))


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("where", ["r4", "r4, #4", "r4, #0x3c"])
def test_an_invalidated_line_loses_its_stores(analysed: Analysed, where: str) -> None:
    """Rule 48: an invalidated dirty line loses its stored words."""
    stores, loads = STORES.replace("[r4]", f"[{where}]"), LOADS.replace("[r4]", f"[{where}]")
    assert analysed(f"{stores}{INVALIDATES}{loads}").status == NO_BOUND
    body = f"{stores}{INVALIDATES}{loads}"
    assert analysed(body, "--from-reset", data=MOVED, facts=FIXED_DATA).status == NO_BOUND


@pytest.mark.slow("several whole analyses")
def test_the_line_is_the_one_around_the_address(analysed: Analysed) -> None:
    body = f"{STORES}add r5, r4, #AWAY\nmcr p15, 0, r5, c7, c6, 1\n{LOADS}"
    assert analysed(body.replace("AWAY", "0x3f")).status == NO_BOUND
    assert analysed(body.replace("AWAY", "0x40")).bound == 5


@pytest.mark.slow("several whole analyses")
def test_an_unknown_line_may_be_any(analysed: Analysed) -> None:
    found = analysed(f"{STORES}mcr p15, 0, r0, c7, c6, 1\n{LOADS}")
    assert found.status == NO_BOUND
    body = "push {r4, lr}\nmov r1, #5\npush {r1}\nmcr p15, 0, r0, c7, c6, 1\npop {r3}\n"
    found = analysed(f"{body}{COUNTS}{RETURNS}")
    assert found.bound == 5
    assert any(text.startswith("S1: ") for text in map(str, found.assumptions))


def test_a_line_of_the_stack_loses_the_return_address(analysed: Analysed) -> None:
    body = f"push {{r4, lr}}\nmcr p15, 0, sp, c7, c6, 1\n{RETURNS}"
    refused = analysed(body)
    assert refused.status == REFUSED
    assert "invalidated" in refused.error


@pytest.mark.slow("several whole analyses")
def test_constants_in_an_invalidated_line_are_not_known(analysed: Analysed) -> None:
    body = f"push {{r4, lr}}\nldr r4, =constant\n{INVALIDATES}{LOADS}"
    assert analysed(body).status == NO_BOUND


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("crm", [10, 14], ids=["clean", "clean and invalidate"])
def test_what_is_written_back_is_kept(analysed: Analysed, crm: int) -> None:
    assert analysed(f"{STORES}mcr p15, 0, r4, c7, c{crm}, 1\n{LOADS}").bound == 5


FRAME = (
    "sub sp, sp, #256\nmov r1, #10\nstr r1, [sp]\n1: ldr r3, [sp]\nsubs r3, r3, #1\n"
    "str r3, [sp]\nadd r2, sp, #{}\nmcr p15, 0, r2, c7, c6, 1\ncmp r3, #0\nbne 1b\n"
    "add sp, sp, #256\nbx lr\n"
)
RANGE = (
    STORES + "add r2, r4, #{}\nadd r0, r4, #{}\n2: mcr p15, 0, r2, c7, c6, 1\n"
    "add r2, r2, #32\ncmp r2, r0\nblo 2b\n" + LOADS
)


@pytest.mark.slow("several whole analyses")
def test_lines_of_frames_are_told_apart(analysed: Analysed) -> None:
    assert analysed(FRAME.format(128)).bound == 10
    assert analysed(FRAME.format(32)).status == NO_BOUND


@pytest.mark.slow("several whole analyses")
def test_a_loop_over_lines_loses_what_is_in_them(analysed: Analysed) -> None:
    def written(first: int, last: int) -> str:
        return RANGE.replace("#{}", f"#{first}", 1).replace("#{}", f"#{last}", 1)

    assert analysed(written(0, 128)).status == NO_BOUND
    assert analysed(written(128, 256)).status == 0


@pytest.mark.slow("several whole analyses")
def test_nusmv_takes_what_is_lost_word_by_word(analysed: Analysed) -> None:
    """NuSMV has words of 64 bits at most: a whole line in one symbol made it fail."""
    body = (
        f"{STORES}cmp r0, #0\nmcreq p15, 0, r4, c7, c6, 1\n"
        f"ldr r3, [r4]\nand r3, r3, #31\nadd r3, r3, #1\n{COUNTS}{RETURNS}"
    )
    found = analysed(body, "--checker", "nusmv")
    assert (found.status, found.bound) == (0, 32)
