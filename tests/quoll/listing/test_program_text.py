"""Listings: small golden texts, JSON that agrees with the program, dot that Graphviz could read."""

from __future__ import annotations

import json
import re
from textwrap import dedent

import networkx as nx
import pytest
from hypothesis import given, settings

from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.inlining.context_count import ContextCounter
from quoll.inlining.expand import expand
from quoll.inlining.vivu import FULL
from quoll.listing.export import (
    call_graph_dot,
    cfg_dot,
    control_flow,
    program_json,
    to_graphml,
)
from quoll.listing.never_returns import why_never_returns
from quoll.listing.program_text import (
    call_graph_text,
    disassembly,
    loops_text,
    summary,
)
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build
from tests.testing.quoll.random_programs import programs
from tests.testing.quoll.sketch import assemble, extracted

TEXT = """
main:   push {r4, lr}
outer:  bl work
inner:  subs r0, r0, #1
        bne inner
        subs r4, r4, #1
        bne outer
        pop {r4, lr}
        b work + 4
        .type work, %function
work:   mov r1, #2
        bx lr
"""


def test_summary() -> None:
    image = assemble(TEXT)
    assert summary(extracted(image), image) == dedent(
        """\
        functions     2
        instructions  11
        blocks        7
        edges         7
        loops         2
        jump tables   0
        inlined       2 contexts, 7 blocks, 11 instructions from 0x00008000 <main> prog.S:7
        assumed: S1: a store of unknown address does not hit live stack frames
        """
    )


def test_loops_and_calls() -> None:
    image = assemble(TEXT)
    program = extracted(image)
    assert loops_text(program, image) == dedent(
        """\
        loop at 0x00008004 <outer> prog.S:8, 3 blocks, back from 0x00008014
            loop at 0x00008008 <inner> prog.S:9, 1 blocks, back from 0x0000800c
        """
    )
    assert call_graph_text(program, image) == dedent(
        """\
        0x00008000 <main> prog.S:7
            call of work at 0x00008004 <outer> prog.S:8
        0x00008020 <work> prog.S:16
        """
    )
    alone = assemble("main: bx lr")
    assert loops_text(extracted(alone), alone) == "no loops\n"


def test_disassembly_interleaves_source_and_effects() -> None:
    image = assemble(TEXT)
    (main, _) = extracted(image).functions.values()
    text = disassembly(main, image)
    assert text.startswith("0x00008000 <main> prog.S:7\nblock 0\n    prog.S:7")
    assert (
        dedent(
            """\
        block 2, in loop 0, in loop 1, loop header
            prog.S:9  inner:  subs r0, r0, #1
          00008008  e2500001  subs r0, r0, #1
            prog.S:10  bne inner
          0000800c  1afffffd  bne 0x8008
                -> block 2 (taken) 0x00008008 <inner> prog.S:9
                -> block 3 (fallthrough) 0x00008010 <inner+0x8> prog.S:11
        """
        )
        in text
    )
    assert "-> call of 0x00008020 <work> prog.S:16\n" in text
    assert "-> block 2 after the call 0x00008008" in text
    assert text.endswith("-> return\n")


def test_json_has_everything_and_agrees() -> None:
    image = assemble(TEXT)
    program = extracted(image)
    value = json.loads(json.dumps(program_json(program, image)))
    assert value["schema_version"] == 3
    assert [f["name"] for f in value["functions"]] == ["main", "work"]
    assert (value["instructions"], value["blocks"], value["edges"], value["loops"]) == (11, 7, 7, 2)
    assert value["contexts"] == {"main": 2}
    assert value["noreturn"] == []
    assert value["recursion"] == []
    assert value["functions"][0]["blocks"][1]["calls"] == ["work"]
    assert [loop["parent"] for loop in value["functions"][0]["loops"]] == [None, 0]
    trouble = assemble("main: push {lr}\n blx r3\n bl main\n pop {pc}\n .type end, %function\nend:")
    value = program_json(extracted(trouble), trouble)
    assert value["recursion"] == [
        {"functions": ["main"], "cycle": ["main"], "depths": {}, "proved": [], "bounded": False}
    ]
    assert value["contexts"] == {"main": None}
    assert "targets of blx r3" in str(value["unresolved"])


def test_dot_has_each_block_and_edge_once() -> None:
    image = assemble(TEXT)
    program = extracted(image)
    for cfg in program.functions.values():
        dot = cfg_dot(control_flow(cfg, image))
        assert len(re.findall(r"^  b\d+ \[label=", dot, re.MULTILINE)) == len(cfg.blocks)
        assert len(re.findall(r"^  b\d+ -> b\d+ ", dot, re.MULTILINE)) == len(cfg.edges)
        assert dot.count("{") == dot.count("}")
    assert call_graph_dot(program.call_graph()).count(" -> ") == 1


def test_graphml_can_be_read_again() -> None:
    image = assemble(TEXT)
    program = extracted(image)
    for graph in (
        program.call_graph(),
        *(control_flow(cfg, image) for cfg in program.functions.values()),
    ):
        again = nx.parse_graphml(to_graphml(graph), node_type=int)
        assert dict(again.nodes(data=True)) == dict(graph.nodes(data=True))
        assert [e[:2] for e in again.edges] == [e[:2] for e in graph.edges]


def test_thumb_halfwords_and_quotes() -> None:
    image = Image.load(build("int main(int x) { return x * 77777; }", thumb=True, cpu="cortex-a8"))
    program = extracted(image)
    (main,) = program.functions.values()
    text = disassembly(main, image)
    assert re.search(r"^  00008000  [0-9a-f]{4} [0-9a-f]{4} \w", text, re.MULTILINE)
    assert "int main(int x)" not in text.splitlines()[0]


@pytest.mark.slow("many random programs")
@settings(max_examples=cases(8), deadline=None)
@given(programs())
def test_contexts_are_counted_as_they_are_made(text: str) -> None:
    image = assemble(text)
    program = extracted(image)
    count = ContextCounter(program, image, FULL).of(program.entries[0])
    assert count
    try:
        expanded = expand(program, program.entries[0], image)
    except ControlFlowError:
        return
    assert len(expanded.contexts) == count.contexts
    assert len(expanded.nodes) <= count.blocks or not loops_are_reducible(text)


def test_all_of_a_recursion_is_without_size() -> None:
    """``h`` is not on the shortest cycle that is listed."""
    image = assemble(
        "main: push {r4, lr}\n bl f\n pop {r4, pc}\n"
        "f: push {r4, lr}\n cmp r0, #0\n beq 1f\n bl g\n bl h\n1: bl leaf\n pop {r4, pc}\n"
        "g: push {r4, lr}\n bl f\n pop {r4, pc}\n"
        "h: push {r4, lr}\n bl g\n pop {r4, pc}\n"
        "leaf: bx lr\n"
    )
    program = extracted(image)
    count = ContextCounter(program, image, FULL)
    known = [f.name for entry, f in program.functions.items() if count.of(entry)]
    assert known == ["leaf"]


def loops_are_reducible(text: str) -> bool:
    """Whether no block was copied: copies are not counted."""
    image = assemble(text)
    return "several entries" not in loops_text(extracted(image), image)


def test_why_functions_never_return() -> None:
    image = assemble(
        """
        main:    cmp r0, #0
                 bleq endless
                 bl trapping
        .type endless, %function
        endless: b .
        .type trapping, %function
        trapping: .word 0xe7f000f0
        """
    )
    program = extracted(image)
    reasons = {
        cfg.name: why_never_returns(program, cfg, image) for cfg in program.functions.values()
    }
    assert reasons["endless"] == "it loops for ever"
    assert reasons["trapping"].startswith("nothing follows udf #0 at ")
    assert "it calls trapping, which never returns," in reasons["main"]


def test_a_call_of_a_known_function_is_no_jump_table() -> None:
    image = assemble(
        "main: push {lr}\n ldr r3, =f\n blx r3\n cmp r0, #1\n ldrls pc, [pc, r0, lsl #2]\n b 1f\n"
        " .word 1f, 2f\n1: mov r0, #1\n2: pop {pc}\n.type f, %function\nf: bx lr\n.ltorg"
    )
    program = extracted(image)
    assert len(program.jump_tables) == 2
    assert "\njump tables   1\n" in summary(program, image)


def test_a_jump_to_a_constant_is_no_jump_table() -> None:
    image = assemble("main: ldr pc, =f\n.type f, %function\nf: bx lr\n.ltorg")
    program = extracted(image)
    assert [table.table is None for table in program.jump_tables] == [False]
    assert "\njump tables   0\n" in summary(program, image)
