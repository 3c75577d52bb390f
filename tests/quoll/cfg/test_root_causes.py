"""Root causes of unresolved transfers: places that others follow from are named, not these."""

from __future__ import annotations

import pytest

from quoll.cfg.root_causes import root_causes
from quoll.errors import ControlFlowError
from quoll.facts.read import parse
from quoll.inlining.expand import expand
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

LEAVES = """
.type leave, %function
.type behind, %function
.type more, %function
main:   push {r4, lr}
        bl more
        cmp r0, #0
        beq leaves
        bl more
        pop {r4, pc}
leaves: bl leave
behind: ldr r3, [r0]
        bx r3
leave:  mov sp, r0
        rfeia sp
more:   push {r4, lr}
        cmp r0, #1
        blxne r1
        pop {r4, pc}
"""


def test_code_behind_a_function_that_only_may_return_asks_nothing() -> None:
    """``leave`` ends in an exception return; whether control comes back is the first question."""
    image = assemble(LEAVES)
    program = extracted(image, ends=frozenset())
    main = address(image, "main")
    places = {unresolved.addr for unresolved in program.unresolved}
    jump, call = address(image, "behind") + 4, address(image, "more") + 8
    exception_return = address(image, "leave") + 4
    assert places == {jump, call, exception_return}
    assert root_causes(program.functions, main, places) == {call, exception_return}
    with pytest.raises(ControlFlowError) as error:
        expand(program, main, image)
    assert {missing.addr for missing in error.value.missing} == {call, exception_return}


def test_a_stated_return_uncovers_the_next_question() -> None:
    image = assemble(LEAVES.replace("rfeia sp", "bx r6"))
    facts = parse("leave+4 returns to its caller\n", "k.facts")
    program = extracted(image, facts=facts, ends=frozenset())
    with pytest.raises(ControlFlowError) as error:
        expand(program, address(image, "main"), image)
    assert address(image, "behind") + 4 in {missing.addr for missing in error.value.missing}


MUTUAL = """
.type ping, %function
.type pong, %function
main:   push {r4, lr}
        bl ping
        pop {r4, pc}
ping:   push {r4, lr}
        bl pong
        pop {r4, pc}
pong:   push {r4, lr}
        cmp r0, #0
        bleq ping
        bx r5
"""


def test_a_cycle_of_calls_has_a_root_cause() -> None:
    image = assemble(MUTUAL)
    program = extracted(image)
    places = {unresolved.addr for unresolved in program.unresolved}
    assert root_causes(program.functions, address(image, "main"), places) == places != set()
