"""A walk back over a whole call finds the value that a walk through its instructions finds."""

from __future__ import annotations

from random import Random

import pytest

from loopbounds.bounds import deep_recursion
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.called_stores import CalledStores
from loopbounds.slicing.cell import MemoryCell
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.stacks import StackSpans
from loopbounds.terms.bit_vectors import Term, add, const
from quoll.assumptions import Assumption
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.value_analysis.value_results import analyse
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build

WORDS = 1 << 32
STORES = (
    "str r5, [r0]",  # anywhere but in a live frame: S1
    "str r5, [r1, #4]",  # into the caller's frame, where r1 = sp
    "strh r5, [r1, #20]",
    "stm r1, {{r4, r5, r6}}",
    "str r5, [sp]",
    "str r5, [sp, #12]",
    "strb r5, [sp, #5]",
    "ldr r2, =0xf0020000\nstr r5, [r2]",
    "tst r0, #1\nstrne r5, [r0, #8]",
    "mov r2, #3\n{0}: str r5, [r0], #4\nsubs r2, r2, #1\nbne {0}b",
    "ldr r2, [sp, #4]\nstr r5, [r2]",
    "and r2, r0, #60\nstr r5, [sp, r2]",  # perhaps into the frame of a caller
    "tst r0, #2\nbeq {0}f\nstr r5, [sp, #8]\n{0}:",
)


def program(random: Random) -> str:
    """Nested functions, each with stores, a frame, and calls of the next one."""
    text = [".global main"]
    for depth, name in enumerate(("main", "f", "g", "h")):
        text += [f"{name}: push {{r4-r7, lr}}", "sub sp, sp, #20"]
        for label in random.sample(range(1, 40), random.randint(1, 3)):
            text.append(random.choice(STORES).format(label))
            if depth < 3:
                passed = random.choice(("mov r1, r0", "mov r1, sp", "mov r0, r4"))
                text.append(f"{passed}\nbl {'fgh'[depth]}")
        text += ["add sp, sp, #20", "pop {r4-r7, pc}", ".ltorg"]
    return "\n".join(text)


Found = tuple[dict[tuple[int, int], Term], list[set[Assumption]]]


def found(code: GraphCode) -> Found:
    """The registers and frame words of ``main`` at each node, each with its assumptions."""
    whole = GatedSsa(code).whole
    values, sp = {}, whole.at(code.graph.entry, 13)
    with deep_recursion():
        for node in range(len(code.graph.nodes)):
            for register in (4, 7, 11, 13):
                values[node, register] = whole.at(node, register)
            for above in (-40, -36, -35, -24, -20, -4):
                cell = MemoryCell(add(sp, const(above % WORDS, 32)), 4)
                values[node, above] = whole.at(node, cell)
        scopes = [GatedSsa(code).whole for _ in code.graph.exits]
        for scope, node in zip(scopes, code.graph.exits, strict=True):
            values[node, -1] = scope.after(node, 4)
    return values, [scope.used for scope in scopes]


@pytest.mark.slow("compiles random programs")
def test_the_value_behind_a_call_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random, passed = Random(5), 0
    spared = CalledStores.spared

    def counted(stores: CalledStores, node: int, cell: MemoryCell) -> int | None:
        nonlocal passed
        entering = spared(stores, node, cell)
        passed += entering is not None
        return entering

    for _ in range(cases(12)):
        text = program(random)
        image = Image.load(build(text, language="asm"))
        entry = address(image, "main")
        graph = expand(extract(image, [entry]), entry, image)
        code = GraphCode(
            graph,
            AcyclicGraph.of(graph),
            image,
            analyse(graph, image),
            StackSpans.of((node.block for node in graph.nodes), image),
            bounds={loop.index: 3 for loop in graph.loops},
        )
        monkeypatch.setattr(CalledStores, "spared", counted)
        quick = found(code)
        monkeypatch.setattr(CalledStores, "spared", lambda *_: None)
        assert quick == found(code), text
    assert passed > 50
