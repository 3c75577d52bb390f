"""Guidance: each fact's effect on the graph, and executions that refute it (rule 2)."""

from __future__ import annotations

import pytest

from quoll.assumptions import F1, stated
from quoll.errors import FactsError, InfeasibleError
from quoll.extraction.extract import extract
from quoll.facts.applied import unused_guidance
from quoll.facts.located import locate
from quoll.facts.read import Facts, parse
from quoll.image.image import Image
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.follow import RefutedFact, follow
from quoll.value_analysis.value_results import analyse
from tests.testing.quoll.invariants import verify_program, verify_supergraph
from tests.testing.quoll.sketch import assemble

SOURCE = """
main:   push {r4, lr}
        mov r4, #7
        cmp r0, #0
m0:     beq m2
m1:     bl f
        b m3
m2:     bl g
m3:     cmp r1, #0
m4:     popne {r4, pc}
m5:     mov r0, r4
        pop {r4, pc}
        .type f, %function
f:      cmp r1, #1
f0:     bxeq lr
f1:     str r2, [r0]
        bx lr
        .type g, %function
g:      push {lr}
        bl f
        pop {pc}
"""


def facts_of(text: str) -> Facts:
    return parse(text, "k.facts")


def graph_of(image: Image, text: str) -> tuple[Supergraph, tuple[str, ...]]:
    """The verified graph under facts, and all that it assumes."""
    facts = facts_of(text)
    symbol = image.symbol("main")
    assert symbol
    program = extract(image, [symbol.addr], locate(facts, image))
    verify_program(program)
    graph = expand(program, symbol.addr, image)
    verify_supergraph(graph, program)
    cut = guided_in_contexts(graph, image, locate(facts, image))
    verify_supergraph(cut, program, complete=cut is graph)
    removed = (removed.fact for removed in cut.guidance.removed)
    return cut, tuple(map(str, (*program.assumptions, *removed)))


def places(image: Image, graph: Supergraph) -> list[str]:
    """The labels of the blocks, in the order of addresses, once for each context."""
    found = []
    for node in sorted(graph.nodes, key=lambda n: (n.block.addr, n.context)):
        symbol = image.symbol_at(node.block.addr)
        assert symbol
        found.append(symbol[0].name + (f"+{symbol[1]}" if symbol[1] else ""))
    return found


def run_through_f(image: Image) -> list[int]:
    """r0 = 1, r1 = 2: calls f, stores, returns conditionally."""
    a = {name: image.symbol(name).addr for name in ("main", "m0", "m1", "m3", "f")}  # type: ignore[union-attr]
    return [
        *range(a["main"], a["m1"] + 4, 4),
        *range(a["f"], a["f"] + 16, 4),
        a["m1"] + 4,
        a["m3"],
        a["m3"] + 4,
    ]


def run_through_g(image: Image) -> list[int]:
    """r0 = 0, r1 = 1: calls g, which calls f, which returns at once."""
    a = {name: image.symbol(name).addr for name in ("main", "m2", "m3", "f", "g")}  # type: ignore[union-attr]
    return [
        *range(a["main"], a["main"] + 16, 4),
        a["m2"],
        *range(a["g"], a["g"] + 8, 4),
        *range(a["f"], a["f"] + 8, 4),
        a["g"] + 8,
        a["m3"],
        a["m3"] + 4,
    ]


ALL = ["main", "m1", "m1+4", "m2", "m3", "m5", "f", "f", "f1", "f1", "g", "g+8"]
LESS = {
    "branch at m0 is always taken": ["m1", "m1+4", "f", "f1"],
    "branch at m0 is never taken": ["m2", "f", "f1", "g", "g+8"],
    "branch at f0 is always taken": ["f1", "f1"],
    "branch at f0 is always taken in g": ["f1"],
    "branch at f0 is always taken in f when called from g": ["f1"],
    "branch at f0 is never taken in f": [],
    "branch at m4 is always taken": ["m5"],
    "ignore m1": ["m1", "m1+4", "f", "f1"],
    "ignore g": ["m2", "f", "f1", "g", "g+8"],
    "ignore edge m0 -> m2": ["m2", "f", "f1", "g", "g+8"],
    "ignore edge m2 -> g": ["m2", "f", "f1", "g", "g+8"],
    "path must end at f1": [],
    "path may end at m0": [],
    "path must end at m1": ["m1+4", "f", "f1"],
    "require m2": [],
}


@pytest.mark.parametrize("fact", LESS)
def test_what_a_fact_removes(fact: str) -> None:
    image = assemble(SOURCE)
    graph, assumed = graph_of(image, fact)
    left = ALL.copy()
    for label in LESS[fact]:
        left.remove(label)
    assert places(image, graph) == left
    listed = any(fact in text for text in assumed)
    assert listed or fact.startswith("require"), "requirements are listed as constraints"
    whole, nothing = graph_of(image, "")
    assert places(image, whole) == ALL
    assert not any("k.facts" in text for text in nothing)


REFUTED = {
    "branch at m0 is always taken": "f",
    "branch at m0 is never taken": "g",
    "branch at f0 is always taken": "f",
    "branch at f0 is always taken in main": "f",
    "branch at f0 is never taken": "g",
    "branch at f0 is never taken in g": "g",
    "branch at m4 is never taken": "fg",
    "ignore m5": "",
    "ignore m1": "f",
    "ignore m2": "g",
    "ignore edge m1 -> f": "f",
    "ignore edge m3 -> m5": "",
    "require m2": "f",
    "require m1": "g",
    "function f takes at most 1 cycles": "f",
    "function f takes at most 2 cycles": "",
    "function f takes at most 1 cycles and preserves memory": "f",
    "path must end at m3": "",
    "path may end at m3": "",
    "path must end at m1": "",
    "path may end at m1": "",
}


@pytest.mark.parametrize("fact", REFUTED)
def test_an_execution_refutes_a_fact(fact: str) -> None:
    """The error names the fact; executions that it allows are paths of the graph.

    The core issues one instruction in a cycle.
    """
    image = assemble(SOURCE)
    graph, _ = graph_of(image, fact)
    for name, pcs in (("f", run_through_f(image)), ("g", run_through_g(image))):
        if name in REFUTED[fact]:
            with pytest.raises(RefutedFact, match=f"refutes 'fact: .*:[0-9]+: {fact}"):
                follow(graph, image, pcs, 1)
        else:
            follow(graph, image, pcs, 1)


def test_two_instructions_may_issue_in_a_cycle() -> None:
    """f has two instructions that are no branches."""
    image = assemble(SOURCE)
    graph, _ = graph_of(image, "function f takes at most 1 cycles")
    follow(graph, image, run_through_f(image), 2)
    follow(graph, image, run_through_f(image))
    with pytest.raises(RefutedFact, match="2 of which are no branches: at least 2 cycles"):
        follow(graph, image, run_through_f(image), 1)


def test_a_replaced_function_is_not_looked_at() -> None:
    image = assemble(SOURCE)
    graph, assumed = graph_of(image, "function f takes at most 90 cycles")
    assert "f" not in places(image, graph)
    assert any("function f takes at most 90 cycles; it preserves r4" in text for text in assumed)
    over = [e for e in range(len(graph.edges)) if graph.passed(e)]
    assert [graph.passed(e)[0].cycles for e in over] == [90, 90]
    visits = follow(graph, image, run_through_f(image))
    assert visits[-1].start == len(run_through_f(image)) - 2


def test_what_a_replaced_function_may_change() -> None:
    image = assemble(
        """
        main:   push {r4, lr}
                sub sp, sp, #8
                mov r4, #7
                mov r1, #5
                str r4, [sp]
                ldr r2, =cell
                str r4, [r2]
        before: bl f
        after:  ldr r3, [sp]
                ldr r2, =cell
                ldr r2, [r2]
        end:    nop
                b last
        last:   add sp, sp, #8
                pop {r4, pc}
                .type f, %function
        f:      bx lr
                .pool
                .data
        cell:   .word 0
        """
    )
    for preserves in (False, True):
        text = "function f takes at most 9 cycles" + " and preserves memory" * preserves
        graph, _ = graph_of(image, text)
        values = analyse(graph, image)
        last = image.symbol("last")
        assert last
        (node,) = [n for n, at in enumerate(graph.nodes) if at.block.addr == last.addr]
        assert values.register(node, 4).exact == 7
        assert values.register(node, 1).exact is None
        assert values.register(node, 3).exact == 7, "a live frame, under S1"
        assert (values.register(node, 2).exact == 7) == preserves
        assert any("S1" in text for text in map(str, values.assumptions)) or preserves


@pytest.mark.parametrize(
    "handed", ["mov r0, sp", *(f"str sp, [sp, #{n}]" for n in (4, 60, 64, 96))]
)
def test_a_frame_whose_address_is_handed_on_is_not_spared(handed: str) -> None:
    """In a register, or in any word of the caller's frame: all may be arguments."""
    image = assemble(
        f"""
        main:   push {{r4, lr}}
                sub sp, sp, #104
                mov r4, #7
                str r4, [sp]
                {handed}
                bl f
                ldr r3, [sp]
                b last
        last:   add sp, sp, #104
                pop {{r4, pc}}
                .type f, %function
        f:      bx lr
        """
    )
    graph, _ = graph_of(image, "function f takes at most 9 cycles")
    values, last = analyse(graph, image), image.symbol("last")
    assert last
    (node,) = [n for n, at in enumerate(graph.nodes) if at.block.addr == last.addr]
    assert values.register(node, 3).exact is None


def test_registers_that_functions_of_the_call_string_saved_are_spared() -> None:
    """F1 is about them in every context; a local word is lost, whatever it holds."""
    image = assemble(
        """
        main:   push {r4, r5, lr}
                mov r4, #7
                mov r5, #9
                bl f
        before: mov r0, r4
                mov r1, r5
                b last
        last:   pop {r4, r5, pc}
                .type f, %function
        f:      push {r4, lr}
                bl g
                pop {r4, pc}
                .type g, %function
        g:      push {r5, lr}
                sub sp, sp, #8
                str r4, [sp]
                mov r0, sp
                bl h
                ldr r2, [sp]
                mov r4, r2
                add sp, sp, #8
                pop {r5, pc}
                .type h, %function
        h:      bx lr
        """
    )
    graph, _ = graph_of(image, "function h takes at most 9 cycles")
    values, last = analyse(graph, image), image.symbol("last")
    assert last
    (node,) = [n for n, at in enumerate(graph.nodes) if at.block.addr == last.addr]
    assert [values.register(node, r).exact for r in (0, 1)] == [7, 9]
    assert values.register(node, 2).exact is None
    assert F1.of() in values.assumptions


def test_a_function_outside_of_the_image_can_be_replaced() -> None:
    image = assemble(
        """
        .equ rom, 0x100000
        main:   push {r4, lr}
                bl rom
                pop {r4, lr}
                b rom
        """
    )
    symbol = image.symbol("main")
    assert symbol
    program = extract(image, [symbol.addr])
    assert "not code" in program.unresolved[0].reason
    graph, _ = graph_of(image, "function 0x100000 takes at most 9 cycles")
    assert len(graph.nodes) == 2
    assert len(graph.exits) == 1


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("branch at m1 is never taken", "no conditional branch, but bl"),
        ("branch at main is never taken", "no conditional branch, but push"),
        ("branch at m9 is never taken", "no symbol m9"),
        ("branch at m0 is never taken in h", "no symbol h"),
        ("ignore edge m0 -> m9", "no symbol m9"),
        ("function f takes at most 0 cycles", "at least one cycle"),
        ("function h takes at most 9 cycles", "no symbol h"),
        ("branch at m0 is taken", "always taken|never taken"),
        ("ignore m1\nrequire m1", "contradicts"),
        ("function f takes at most 9 cycles\nf never returns", "never to return"),
    ],
)
def test_wrong_guidance_is_refused(fact: str, message: str) -> None:
    with pytest.raises(FactsError) as refused:
        graph_of(assemble(SOURCE), fact)
    assert message in str(refused.value)


def test_facts_that_exclude_every_path() -> None:
    with pytest.raises(
        InfeasibleError, match=r"without these facts one may be: fact: .*: ignore m1"
    ):
        graph_of(assemble(SOURCE), "ignore m1\nignore m2")


def test_guidance_without_effect_is_found() -> None:
    facts = facts_of("ignore g\nignore m1\nrequire m1x")
    unused = unused_guidance(facts, [stated(facts.facts[0])])
    assert [str(fact) for fact in unused] == ["ignore m1"]


def test_the_old_spelling_is_refused() -> None:
    """Before, 'path ends at' cut later code, although a path may go on by its documentation."""
    with pytest.raises(FactsError, match=r"must end at PLACE.*may end at PLACE"):
        facts_of("path ends at m1")
    with pytest.raises(FactsError, match="contradicts"):
        facts_of("path may end at m1\npath must end at m1")


def test_a_path_that_may_end_goes_on_too() -> None:
    image = assemble(SOURCE)
    may, _ = graph_of(image, "path may end at f1")
    whole, _ = graph_of(image, "")
    assert {i.addr for n in may.nodes for i in n.block.insns} == {
        i.addr for n in whole.nodes for i in n.block.insns
    }
    f1 = image.symbol("f1")
    assert f1
    ends = {may.nodes[n].block.last.addr for n in may.exits}
    assert f1.addr in ends
    assert ends - {f1.addr} == {whole.nodes[n].block.last.addr for n in whole.exits}
    follow(may, image, run_through_f(image))
    follow(may, image, run_through_f(image)[: run_through_f(image).index(f1.addr) + 1])
