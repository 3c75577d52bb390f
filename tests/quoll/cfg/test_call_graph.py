"""Who calls whom: order, recursion, and the chain that a refusal shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quoll.cfg.call_graph import call_graph, recursions, refuse_recursion
from quoll.cfg.cfg import Program
from quoll.errors import ControlFlowError
from quoll.facts.applied import RecursionDepth
from quoll.image.image import Image
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

TREE = """
main: push {r4, lr}
    bl left
    bl right
    pop {r4, pc}
left: push {r4, lr}
    bl leaf
    pop {r4, pc}
right: b leaf
leaf: bx lr
"""
CIRCLE = """
main: push {r4, lr}
    bl even
    pop {r4, pc}
even: push {r4, lr}
    cmp r0, #0
    popeq {r4, pc}
    sub r0, r0, #1
    bl odd
    pop {r4, pc}
odd: push {r4, lr}
    bl even
    bl odd
    pop {r4, pc}
"""


def program(text: str) -> tuple[Image, Program]:
    labels = ("left", "right", "leaf", "even", "odd")
    image = assemble("".join(f".type {name}, %function\n" for name in labels) + text)
    return image, extracted(image)


def test_callees_come_before_callers() -> None:
    image, found = program(TREE)
    graph = call_graph(found)
    main, left, right, leaf = (address(image, name) for name in ("main", "left", "right", "leaf"))
    assert {f: graph.callees(f) for f in graph.calls} == {
        main: (left, right), left: (leaf,), right: (leaf,), leaf: ()
    }  # fmt: skip
    assert [call.tail for call in graph.calls[right]] == [True]
    assert graph.order[0] == leaf
    assert graph.order[-1] == main
    assert not graph.recursive
    assert not graph.cycles
    assert recursions(found) == []
    refuse_recursion(found, image)


def test_a_recursion_is_shown_by_its_shortest_chain() -> None:
    image, found = program(CIRCLE)
    even, odd = (address(image, name) for name in ("even", "odd"))
    (recursion,) = recursions(found)
    assert recursion.functions == {even, odd}
    assert [(call.caller, call.callee) for call in recursion.cycle] == [(even, odd), (odd, even)]
    assert not recursion.bounded
    with pytest.raises(ControlFlowError, match="recursion: even -> odd -> even") as refused:
        refuse_recursion(found, image, reasons={odd: "its argument is unknown"})
    assert "its argument is unknown" in str(refused.value)


def test_one_question_names_a_function_on_every_cycle() -> None:
    """``odd`` also calls itself: a depth of ``even`` would leave that cycle."""
    image, found = program(CIRCLE)
    with pytest.raises(ControlFlowError, match="recursion of odd at most N") as refused:
        refuse_recursion(found, image)
    assert [one.addr for one in refused.value.missing] == [address(image, "odd")]


TWO_CYCLES = """
main: push {r4, lr}
    bl left
    pop {r4, pc}
left: push {r4, lr}
    blne left
    bl right
    pop {r4, pc}
right: push {r4, lr}
    blne right
    blne left
    pop {r4, pc}
"""


def test_questions_about_several_functions_come_together() -> None:
    image, found = program(TWO_CYCLES)
    left, right = (address(image, name) for name in ("left", "right"))
    with pytest.raises(ControlFlowError) as refused:
        refuse_recursion(found, image)
    assert sorted(one.addr for one in refused.value.missing) == [left, right]
    refuse_recursion(found, image, bounded={left, right})


def test_each_chain_must_pass_a_function_of_known_depth() -> None:
    image, found = program(CIRCLE)
    even, odd = (address(image, name) for name in ("even", "odd"))
    refuse_recursion(found, image, bounded={odd})
    with pytest.raises(ControlFlowError, match="recursion: odd -> odd"):
        refuse_recursion(found, image, bounded={even})
    for known, bounded in ((odd, True), (even, False)):
        depths = {known: RecursionDepth(3, ())}
        stated = replace(found, guidance=replace(found.guidance, depths=depths))
        assert [recursion.bounded for recursion in recursions(stated)] == [bounded]
