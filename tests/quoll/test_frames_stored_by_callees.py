"""Callees that store into the frames of their callers, at known places (rules 35 and 36).

Before, such stores silently spared saved registers and return addresses, under S1, which is about
stores of unknown address only: the graph lacked executed code.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from quoll.arm.insn import AccessKind
from quoll.assumptions import F1, RETURN_IN_CONTEXT
from quoll.errors import ControlFlowError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY
from quoll.recordings.follow import MissingEdge, follow, follow_prefix
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.quoll.building import address
from tests.testing.quoll.frame_programs import Run, Writer, execute
from tests.testing.quoll.sketch import assemble, extracted

CASES, RUNS = 150, 3

CALLER = """
main:   push {{r4, lr}}
        {setup}
        bl   f
        mov  r0, #3
        {cleanup}
        pop  {{r4, pc}}
        .type f, %function
f:      ldr  r1, =other
        mov  r2, r1
        {stores}
        bx   lr
        .type other, %function
other:  bx   lr
        .ltorg
"""
HANDED = [  # r0 is the address of the saved r4, so that the return address is at r0 + 4
    "str r1, [r0, #4]",
    "strb r1, [r0, #5]",
    "strh r1, [r0, #6]",
    "strd r2, r3, [r0, #0]",
    "add r0, r0, #4\n stm r0, {r1, r2}",
    "stmib r0, {r1}",
    "strex r3, r1, [r0]\n add r0, r0, #4\n strex r3, r1, [r0]",
    "add r0, r0, #4\n swp r1, r1, [r0]",
    "cmp r3, #0\n streq r1, [r0, #4]",
    "add r0, r0, #4\n stm r0, {r1, r2}^",
    "str r1, [r0, #4]!",
    "add r0, r0, #1\n str r1, [r0, #3]",
]


@pytest.mark.parametrize("store", HANDED)
def test_a_return_address_is_stored_through_a_pointer_that_was_handed_over(store: str) -> None:
    image = assemble(CALLER.format(setup="mov r0, sp", cleanup="", stores=store))
    assert refusal(image) == {"main"}


@pytest.mark.parametrize(
    "store",
    [
        "str r1, [sp, #4]",
        "strb r1, [sp, #7]",
        "strh r1, [sp, #4]",
        "add ip, sp, #8\n push {ip}\n ldr ip, [sp], #4\n str r1, [ip, #-4]",
        "mov ip, sp\n add ip, ip, #4\n str r1, [ip]",
        "stmib sp, {r1, r2}",
        "add sp, sp, #8\n push {r1, r2}",
        "and r3, r3, #3\n add r3, sp, r3, lsl #2\n str r1, [r3]",
    ],
)
def test_a_return_address_above_the_frame_of_the_callee_is_stored(store: str) -> None:
    image = assemble(CALLER.format(setup="", cleanup="", stores=store))
    assert refusal(image) == {"main"}


def refusal(image: Image) -> set[str]:
    """The functions with places that extraction does not resolve."""
    program = extracted(image)
    found = {image.symbol_at(u.addr) for u in program.unresolved}
    return {known[0].name for known in found if known}


def test_a_saved_register_of_the_caller_is_stored() -> None:
    """The caller does not preserve the register; its own return stays valid."""
    image = assemble(CALLER.format(setup="mov r0, sp", cleanup="", stores="str r1, [r0]"))
    program = extracted(image)
    assert program.unresolved == ()
    assert 4 not in program.left[address(image, "main")].preserved


def test_a_callee_of_a_callee_stores() -> None:
    """Places are handed on: r0 is the caller's, and the callee's frame lies between."""
    image = assemble(
        "main: push {r4, lr}\n mov r0, sp\n bl f\n pop {r4, pc}\n .type f, %function\n"
        "f: push {r4, lr}\n add r0, r0, #8\n bl g\n pop {r4, pc}\n .type g, %function\n"
        "g: mov r1, #0x8000\n str r1, [r0, #-4]\n bx lr"
    )
    assert refusal(image) == {"main"}


def test_locals_and_arguments_on_the_stack_may_be_stored() -> None:
    """An output through a pointer and the callee's own stack arguments hit nothing that is kept."""
    image = assemble(
        CALLER.format(
            setup="sub sp, sp, #16\n add r0, sp, #8",
            cleanup="add sp, sp, #16",
            stores="str r1, [r0]\n str r1, [r0, #4]\n str r1, [sp]\n str r1, [sp, #4]",
        )
    )
    program = extracted(image)
    assert program.unresolved == ()
    assert F1.of() not in program.assumptions
    assert set(range(4, 12)) <= program.left[address(image, "main")].preserved


THROUGH_MEMORY = """
main:   push {r4, lr}
        sub  sp, sp, #8
        add  r3, sp, #8
        str  r3, [sp]
        bl   f
        mov  r0, #3
        add  sp, sp, #8
        pop  {r4, pc}
        .type f, %function
f:      ldr  r0, [sp]
        SOURCE
        str  r1, [r0, #4]
        bx   lr
        .type other, %function
other:  bx   lr
        .ltorg
"""


def test_a_known_target_without_an_edge_is_an_error() -> None:
    """The pointer is an argument on the stack, which extraction does not follow: contexts do."""
    image = assemble(THROUGH_MEMORY.replace("SOURCE", "ldr r1, =other"))
    program = extracted(image)
    assert F1.of() in program.assumptions
    graph = expand(program, address(image, "main"), image)
    with pytest.raises(ControlFlowError, match=r"goes to 0x0000\w+ <other>.*but the graph only"):
        analyse(graph, image)


def test_an_unknown_target_is_listed_by_its_place() -> None:
    image = assemble(THROUGH_MEMORY.replace("SOURCE", "ldr r1, [r2]"))
    graph = expand(extracted(image), address(image, "main"), image)
    place = image.place(address(image, "main") + 28)
    assert (
        RETURN_IN_CONTEXT.of(insn="pop {r4, pc}", place=place) in analyse(graph, image).assumptions
    )


def test_a_jump_that_is_never_made_by_what_a_call_leaves_alone() -> None:
    """A callee stores the saved word that excluded a jump: it has no targets, and is made."""
    image = assemble(
        """
        main:   push {r4, r5, lr}
                sub  sp, sp, #8
                add  r3, sp, #8
                str  r3, [sp]
                mov  r4, #0
                bl   f
                cmp  r4, #0
                ldrne pc, [r5]
                add  sp, sp, #8
                pop  {r4, r5, pc}
                .type f, %function
        f:      push {r4, lr}
                ldr  r0, [sp, #8]
                mov  r1, #7
                str  r1, [r0, #-16]
                pop  {r4, pc}
        """
    )
    program = extracted(image)
    if not program.unresolved:
        with pytest.raises(ControlFlowError):
            analyse(expand(program, address(image, "main"), image), image)


def test_a_store_to_one_of_several_known_addresses_hits_a_stack_of_known_place() -> None:
    """The stack stands at a constant, the store goes to a table by a bounded index, over it."""
    image = assemble(
        """
        main:   ldr  sp, =stack + 32
                bl   f
                b    main
                .type f, %function
        f:      push {r4, lr}
                ldr  r1, =stack
                and  r0, r0, #7
                ldr  r2, [r2]
                str  r2, [r1, r0, lsl #2]
                pop  {r4, pc}
                .ltorg
                .data
                .align 2
        stack:  .space 64
        """
    )
    program = extracted(image, ends=frozenset({address(image, "main") + 8}))
    values = analyse(expand(program, address(image, "main"), image), image)
    place = image.place(address(image, "f") + 20)
    assert RETURN_IN_CONTEXT.of(insn="pop {r4, pc}", place=place) in values.assumptions


@pytest.mark.slow("many random programs")
def test_what_runs_is_in_the_graph_or_something_that_is_listed_is_violated() -> None:
    """Random programs, executed: an edge that lacks needs more than that S1 is listed."""
    seen: Counter[str] = Counter()
    randoms = [Random(seed) for seed in range(CASES)]
    programs = (Writer(random, f"p{seed}").program() for seed, random in enumerate(randoms))
    image = assemble("\n".join(["main: bx lr", *programs]))
    for seed, random in enumerate(randoms):
        entry = address(image, f"p{seed}")
        try:
            program = extract(image, [entry])
            graph = expand(program, entry, image)
            values = analyse(graph, image)
        except ControlFlowError:
            seen["refused"] += 1
            continue
        listed = tuple(map(str, (*program.assumptions, *values.assumptions)))
        for _ in range(RUNS):
            run = execute(image, entry, random)
            seen[judged(graph, image, values, listed, run)] += 1
    assert seen["missing"] == 0, seen
    assert seen["covered"] > CASES, seen
    assert min(seen["refused"], seen["listed"]) > CASES // 20, seen


def judged(
    graph: Supergraph, image: Image, values: ValueResults, listed: tuple[str, ...], run: Run
) -> str:
    """Whether the run is a path, or which assumption it violates."""
    if run.wrote_code:
        return "changes itself"
    try:
        path = follow(graph, image, run.pcs)
    except MissingEdge:
        path = follow_prefix(graph, image, run.pcs)
    else:
        if run.returned and values.dead_edges.isdisjoint(visit.edge for visit in path):
            return "covered"
    last = path[-1]
    at = last.start + len(graph.nodes[last.node].block.insns) - 1
    place = image.place(run.pcs[at])
    if any(place in text for text in listed):
        return "listed"
    for visit in path:
        for index, insn in enumerate(graph.nodes[visit.node].block.insns):
            stores = insn.memory and insn.memory.access in (AccessKind.STORE, AccessKind.SWAP)
            hits = stores and run.hits[visit.start + index]
            known = values.frame_access(visit.node, index) is not None
            if hits and not known and values.access(visit.node, index) == ANY:
                return "S1"
    return "missing"
