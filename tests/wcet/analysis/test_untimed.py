"""Instructions without a timing class are named together, before anything is proved."""

from __future__ import annotations

import pytest

from quoll.errors import TimingError
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound

SOURCE = """
.text
.global main
.type main, %function
main:   ldr r1, [r0]
1:      ldr r1, [r1]
        cmp r1, #0
        bne 1b                  @ nothing bounds it
        .inst 0xe7c42113        @ bfi r2, r3, of ARMv6T2
        .inst 0xe0653291        @ mls r5, r1, r2, r3
        bx lr
"""


def test_all_are_named_before_a_loop_is_asked_about() -> None:
    elf = build(SOURCE, CODE, language="S")
    with pytest.raises(TimingError, match=r"bfi .* needs ARMv6T2.*; also mls ") as caught:
        bound(elf)
    assert "bfi" in str(caught.value)


@pytest.mark.slow("several whole analyses")
def test_what_values_leave_out_is_not_asked_about() -> None:
    dead = SOURCE.replace("bne 1b", "b 2f\n 2: mov r2, #1\n cmp r2, #1\n bxeq lr")
    assert bound(build(dead, CODE, language="S")).entries["main"].cycles > 0
