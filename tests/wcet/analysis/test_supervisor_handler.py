"""svc in code of the kernel that enters the kernel's own handler: a bound of the handler each."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from quoll.errors import WcetError
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build
from tests.testing.wcet.stated import AT, bounded

KERNEL = """
.syntax unified
.arm
.global main
.type main, %function
main:   push {r4, r5, lr}
        mov r4, r0
        {first}
        add r5, r4, #1
        svc #2
        add r0, r5, r4
        pop {r4, r5, pc}
        .size main, . - main
.balign 64
.global vector_svc
.type vector_svc, %function
{mode}
vector_svc: push {r0-r3, r12, lr}
        mov r1, #9
1:      subs r1, r1, #1
        bne 1b
        {nested}
        {leave}
        .size vector_svc, . - vector_svc
"""
LEAVE = "ldm sp!, {r0-r3, r12, pc}^"
ENTERS = "every supervisor call enters vector_svc\n"


def kernel(first: str = "svc #1", nested: str = "", *, thumb: bool = False) -> Path:
    text = KERNEL.replace("{first}", first).replace("{nested}", nested)
    text = text.replace("{mode}", ".thumb\n.thumb_func" if thumb else "")
    leave = "pop {r0-r3, r12, lr}\n movs pc, lr" if thumb else LEAVE
    text = text.replace("{leave}", leave)
    return build(text, AT, language="asm", cpu="cortex-a8", thumb=thumb)


FIRST = ("svc #1", "nop", "cmp r0, #3\n svceq #1")


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("thumb", "first"),
    spread(product((False, True), ("svc #1", "nop", "cmp r0, #3\n svceq #1")), 3),
)
def test_each_takes_what_the_handler_does(first: str, thumb: bool, tmp_path: Path) -> None:
    """As with the handler's bound as an entry for a number; and the path may end in each."""
    elf = kernel(first, thumb=thumb)
    result = bounded(elf, tmp_path, ENTERS, "main", "vector_svc")
    main, handler = (result.entries[name].cycles for name in ("main", "vector_svc"))
    taken = bounded(elf, tmp_path, "", "syscall").entries["syscall"].cycles
    assert taken > handler
    number = f"every supervisor call takes at most {taken} cycles\n"
    by_number = bounded(elf, tmp_path, number, "main").entries["main"].cycles
    assert by_number <= main <= by_number + taken // 8
    assert main > (2 if "svc" in first else 1) * taken
    listed = map(str, result.entries["main"].assumptions)
    assert any("every supervisor call enters vector_svc" in text for text in listed)
    assert not any(
        "supervisor call" in text for text in map(str, result.entries["vector_svc"].assumptions)
    )


def test_an_svc_in_the_handler_is_refused(tmp_path: Path) -> None:
    elf = kernel(nested="svc #3")
    for entry in ("main", "vector_svc"):
        with pytest.raises(WcetError, match="enters the handler that it is in"):
            bounded(elf, tmp_path, ENTERS, entry)


def test_a_stack_that_is_stated_for_the_start_of_paths_is_refused(tmp_path: Path) -> None:
    stack = "region top from 0xf0020000 to 0xf0020000 is cached\n"
    stack += "register r13 at vector_svc points into top\n"
    with pytest.raises(WcetError, match="sp is then the interrupted code's"):
        bounded(kernel(), tmp_path, ENTERS + stack, "main")


def test_a_handler_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WcetError, match="did you mean vector_svc"):
        bounded(kernel(), tmp_path, "every supervisor call enters vector_swi\n", "main")
    with pytest.raises(WcetError, match="supervisor"):
        bounded(kernel(), tmp_path, f"{ENTERS}path must end at every supervisor call\n", "main")
