"""Endless loops never return, with any instruction in them (rule 53)."""

from __future__ import annotations

import pytest

from quoll.cfg.endless_functions import endless_functions
from quoll.cfg.unresolved import UnresolvedKind
from quoll.errors import ControlFlowError
from quoll.facts.read import parse
from quoll.inlining.expand import expand, refuse_stops
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

IDLES = """
main:   push {{r4, lr}}
        cmp r0, #0
        blmi halt
        cmp r0, #1
        bleq panic
        pop {{r4, pc}}
panic:  cpsid i
        bl halt
        mov r0, r1
        bx r0
halt:   push {{r4, lr}}
        bl idle
        .word 0xffffffff
idle:   {wait}
        {more}
        b idle
other:  bx lr
"""
WAITS = ("wfi", "wfe", "wfieq", "mcr p15, 0, r0, c7, c0, 4")


@pytest.mark.parametrize("wait", WAITS)
def test_an_endless_loop_with_a_wait_never_returns(wait: str) -> None:
    """Control does not run into the code behind its callers' calls."""
    image = assemble(IDLES.format(wait=wait, more="bl other"), cpu="cortex-a8")
    program = extracted(image)
    assert program.unresolved == ()
    functions = {cfg.name: cfg.returns for cfg in program.functions.values()}
    assert functions == {"main": True, "panic": False, "halt": False, "idle": False, "other": True}


@pytest.mark.parametrize(
    "more",
    [
        "popeq {r4, pc}",  # it returns
        "blx r1",  # nobody knows whether a path ends there
        "bl leaves",  # a path may end there
        "beq leaves",
    ],
)
def test_a_wait_with_a_way_on_needs_a_fact(more: str) -> None:
    source = IDLES.format(wait="wfi", more=more) + "leaves: movs pc, lr\n"
    program = extracted(assemble(source, cpu="cortex-a8"))
    kinds = [unresolved.kind for unresolved in program.unresolved]
    assert UnresolvedKind.WAITS in kinds


def test_an_endless_loop_that_does_nothing_ends_the_path() -> None:
    """The report lists the way there and the loop, and no fact is needed."""
    image = assemble(IDLES.format(wait="wfi", more=""), cpu="cortex-a8")
    graph = expand(extracted(image), address(image, "main"), image)
    refuse_stops(graph, image)
    idle = frozenset({address(image, "idle")})
    ends = {graph.nodes[n].block.addr: at for n, at in graph.halts.items()}
    assert ends == {address(image, "idle"): idle}
    assert graph.halts.keys() < set(graph.exits)
    code = {i.addr for node in graph.nodes for i in node.block.insns}
    assert {address(image, name) for name in ("panic", "halt", "idle")} < code


def test_an_entry_that_only_halts_has_no_bound() -> None:
    image = assemble(IDLES.format(wait="wfi", more=""), cpu="cortex-a8")
    with pytest.raises(ControlFlowError, match="no end of a path is reachable"):
        expand(extracted(image, "panic"), address(image, "panic"), image)


@pytest.mark.parametrize(
    ("code", "halts"),
    [
        ("bl wait\n b idle", True),
        ("bl wait\nagain: str r0, [r1]\n b again", False),
        ("bl wait\n blx r1\n b idle", False),
    ],
)
def test_a_function_that_halts_needs_no_statement(code: str, halts: bool) -> None:
    """Neither a wait for a device before the loop nor a callee that returns does."""
    source = f"""
main:   push {{r4, lr}}
        cmp r0, #0
        blne panic
        pop {{r4, pc}}
panic:  cpsid i
        {code}
idle:   wfi
        b idle
wait:   ldr r2, [r3]
        tst r2, #1
        beq wait
        bx lr
"""
    program = extracted(assemble(source, cpu="cortex-a8"))
    doubts = {one.addr: one for one in program.unresolved}
    found = endless_functions(program.functions, program.entries[0], doubts)
    assert [one.halts for one in found] == [halts] * len(found)
    assert found or doubts


@pytest.mark.parametrize("work", ["ldr r0, [r1]", "str r0, [r1]", "bl other", "push {r0}"])
def test_the_endless_loop_is_the_place_to_state(work: str) -> None:
    """One place, not the calls of each function that leads there."""
    image = assemble(IDLES.format(wait="wfi", more=work), cpu="cortex-a8")
    main = address(image, "main")
    with pytest.raises(ControlFlowError, match="no end of a path") as error:
        refuse_stops(expand(extracted(image), main, image), image)
    idle = address(image, "idle")
    assert [missing.addr for missing in error.value.missing] == [idle]
    assert str(error.value).startswith(image.place(idle))
    assert f"by way of {image.place(address(image, 'panic'))} and 1 other" in str(error.value)
    program = extracted(image, facts=parse("path must end at idle", "k.facts"))
    refuse_stops(expand(program, main, image), image)


def test_a_tail_call_of_a_function_that_never_returns_needs_no_frame() -> None:
    """Clang calls such a function by ``mov lr, pc; b``, with its own frame on the stack."""
    source = """
main:   push {r4, lr}
        bl get
        pop {r4, pc}
get:    push {r11, lr}
        cmp r0, #4
        poplo {r11, pc}
        mov lr, pc
        b halt
halt:   b halt
"""
    program = extracted(assemble(source))
    assert program.unresolved == ()
    assert {str(one)[:2] for one in program.assumptions} == {"S1"}
