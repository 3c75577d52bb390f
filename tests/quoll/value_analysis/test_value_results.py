"""Values of whole programs in their contexts, against executions by the interpreter."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from quoll.abstract_domain.terms import RIGID
from quoll.errors import WcetError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand, without_edges
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.value_analysis.value_results import EntryRegisters, analyse
from tests.testing.harness.cases import cases, in_turn
from tests.testing.quoll.building import build
from tests.testing.quoll.sketch import assemble
from tests.testing.values.executed import analysed, walk
from tests.testing.values.programs import random_program

SETTINGS = [(False, "-O0"), (False, "-O2"), (True, "-O1"), (True, "-O2")]


@pytest.mark.slow("compiles programs and executes them on many inputs")
@pytest.mark.parametrize(("setting", "known_stack"), in_turn(SETTINGS, [True, False]))
def test_covers_executions_of_programs(setting: tuple[bool, str], known_stack: bool) -> None:
    thumb, optimise = setting
    rng = random.Random(7)
    counts: Counter[str] = Counter()
    for seed in range(known_stack, cases(4), 2):
        image, graph, values = analysed(random_program(seed), thumb, optimise, known_stack)
        for _ in range(4):
            a, b = rng.choice([0, 3, rng.randrange(1 << 32)]), rng.randrange(1 << 10)
            counts += walk(image, graph, values, [a, b])
    assert counts["steps"] > 1000
    assert counts["registers known"] > counts["nodes"]
    if known_stack:
        assert counts["exact"] > counts["accesses"] / 3


def test_programs_vary() -> None:
    texts = {random_program(seed) for seed in range(30)}
    assert len(texts) == 30
    for word in ("switch", "for (unsigned *", "break", "? ", "f1("):
        assert sum(word in text for text in texts) > 5


DEAD = """
__attribute__((noipa)) unsigned f(unsigned kind, unsigned x)
{
    if (kind == 1)
        return x * 3;
    if (kind == 2)
        return x / 3;
    return x + 1;
}
unsigned main(unsigned a) { return f(1, a) + f(2, a) + f(5, a); }
"""


def test_edges_die_in_their_context() -> None:
    """Of three branches per call, each context keeps one way (rule 4)."""
    _, graph, values = analysed(DEAD, False, "-O1", True)
    decided = [e for e in values.dead_edges if values.reached(graph.edges[e].src)]
    contexts = {graph.nodes[graph.edges[e].src].context for e in decided}
    assert len(contexts) == 3
    assert all(values.explain(e) != "not reached" for e in decided)
    reasons = {values.explain(e) for e in decided}
    assert {"cmp r0, #1: r0 = 0x1", "cmp r0, #1: r0 = 0x5"} <= reasons
    alive = set(range(len(graph.edges))) - values.dead_edges
    assert {graph.edges[e].src for e in alive} <= {
        n for n in range(len(graph.nodes)) if values.reached(n)
    }


def test_the_guard_of_a_product_with_zero_excludes_an_endless_loop() -> None:
    """__mulsf3 shifts a denormal up until its highest bit is set, which 0 never has."""
    source = "float main(float x) { return x * 0.0f; }"
    image = Image.load(build(source, "-Wno-main", link=("-lgcc",)))
    symbol = image.symbol("main")
    assert symbol is not None
    whole = expand(extract(image, [symbol.addr]), symbol.addr, image)
    graph = without_edges(whole, analyse(whole, image).dead_edges, image)
    assert len(graph.nodes) < len(whole.nodes)
    assert not graph.stops


@pytest.mark.slow("compiles programs and executes them on many inputs")
@pytest.mark.parametrize(("thumb", "optimise"), SETTINGS)
def test_values_without_dead_edges_are_those_computed_again(thumb: bool, optimise: str) -> None:
    """Carried over to the smaller graph they cover executions, and are no less precise."""
    rng = random.Random(8)
    carried = 0
    for source in (DEAD, *(random_program(seed) for seed in range(cases(2)))):
        image, whole, values = analysed(source, thumb, optimise, False)
        graph = without_edges(whole, values.dead_edges, image)
        known, again = values.within(graph), analyse(graph, image)
        if known is None or len(graph.nodes) == len(whole.nodes):
            continue
        carried += 1
        assert not known.dead_edges
        for node, at in enumerate(graph.nodes):
            for register in range(15):
                assert known.register(node, register) == again.register(node, register)
            for index in range(len(at.block.insns)):
                assert known.access(node, index) == again.access(node, index)
        for edge in range(len(graph.edges)):
            few, more = (
                sum(symbol >= RIGID for symbol in found.aliases(edge)) for found in (known, again)
            )
            assert few == more
        walk(image, graph, known, [rng.randrange(1 << 32), rng.randrange(1 << 10)])
    assert carried


SEVERAL_ENTRIES = """
main:   mov     r3, #1
        cmp     r0, #0
        beq     second
first:  add     r1, r1, #1
second: subs    r2, r2, #1
        bne     first
        cmp     r3, #1
        bne     never
        bx      lr
never:  mov     r0, #2
        bx      lr
"""


def test_values_are_carried_over_where_blocks_were_copied() -> None:
    image = assemble(SEVERAL_ENTRIES)
    symbol = image.symbol("main")
    assert symbol is not None
    whole = expand(extract(image, [symbol.addr]), symbol.addr, image)
    assert len({id(node.block) for node in whole.nodes}) < len(whole.nodes)
    values = analyse(whole, image)
    graph = without_edges(whole, values.dead_edges, image)
    known = values.within(graph)
    assert known is not None
    assert known.visits == 0
    assert len(graph.nodes) == len(whole.nodes) - 1
    again = analyse(graph, image)
    for node in range(len(graph.nodes)):
        for register in range(15):
            assert known.register(node, register) == again.register(node, register)


STACK_FROM_LITERAL = """
        .text
        .global main
main:   ldr     sp, =0x20000
        srsdb   sp!, #0x13
        cps     #0x13
        ldr     sp, =0x30000
        push    {r0, lr}
        cps     #0x12
        push    {r1, r3}
        cps     #0x13
        ldr     r4, [sp]
        str     r1, [r2]
        ldr     r5, [sp, #4]
        stm     sp, {r13, r14}^
        ldm     sp, {r13, r14}^
        msr     cpsr_c, r0
        push    {r6, r7}
        movs    pc, lr
        .ltorg
"""


def test_stacks_and_banks() -> None:
    image = Image.load(build(STACK_FROM_LITERAL, language="asm"))
    symbol = image.symbol("main")
    assert symbol is not None
    program = extract(image, [symbol.addr])
    graph = expand(program, symbol.addr, image)
    values = analyse(graph, image, EntryRegisters(mode=0x12))
    (node,) = (n for n in range(len(graph.nodes)))
    texts = [insn.text for insn in graph.nodes[node].block.insns]
    found = {text: values.access(node, index) for index, text in enumerate(texts)}
    assert found["push {r0, lr}"] == ValueSet.of(0x30000 - 8)
    assert found["push {r1, r3}"] == ValueSet.of(0x20000 - 8)
    assert found["ldr r4, [sp]"] == ValueSet.of(0x30000 - 8)
    assert found["ldr r5, [sp, #4]"] == ValueSet.of(0x30000 - 4)
    assert found["str r1, [r2]"] == ANY
    assert found["push {r6, r7}"] == ANY
    assert any(a.startswith("S1") for a in map(str, values.assumptions))


def test_unsupported_instruction_is_named() -> None:
    source = ".text\n.global main\nmain: setend be\n bx lr\n"
    image = Image.load(build(source, language="asm"))
    symbol = image.symbol("main")
    assert symbol is not None
    with pytest.raises(WcetError, match="big-endian"):
        analyse(expand(extract(image, [symbol.addr]), symbol.addr, image), image)


def test_a_mask_that_changes_nothing_leaves_the_word() -> None:
    """An address of cached memory, aligned and masked twice: the second is the first."""
    masks = "orr r1, r1, #0xf0000000\nbic r1, r1, #0x08000000\nbic r1, r1, #0xff\n"
    twice = f"ldr r1, [r0]\n{masks}ldr r2, [r1]\n{masks}ldr r3, [r1, #4]\n"
    image = assemble(f"main: {twice}bic r1, r1, #0x100\nldr r4, [r1]\nbx lr\n")
    main = image.symbol("main")
    assert main is not None
    graph = expand(extract(image, [main.addr]), main.addr, image)
    found = analyse(graph, image)
    first, second, third = (found.origin(graph.entry, n) for n in (4, 8, 10))
    assert first is not None
    assert second == first._replace(offset=first.offset + 4)
    assert third is not None
    assert third.symbol != first.symbol
