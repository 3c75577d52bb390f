"""Values use facts about memory; regions fill the map of the platform."""

from __future__ import annotations

import pytest

from quoll.assumptions import stated
from quoll.errors import FactsError
from quoll.extraction.extract import extract
from quoll.facts.fact import FactSource
from quoll.facts.located import locate
from quoll.facts.memory_facts import RegionFact
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.image.memory_map import Cacheability, MemoryMap, MemoryRegion, RegionKind
from quoll.inlining.expand import expand
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.quoll.building import address, build

PROGRAM = """
    .text
    .global main
    .type main, %function
main:
    ldr r1, [r0, #8]
    ldrne r2, [r3, r1]
    cmp r1, #0
    addeq r4, r4, #0
    ldr r5, [r4], #4
    ldr r6, [r0, #12]
    ldr r7, =cell
    ldr r8, [r7]
    ldr r9, [r7]
    ldr r10, [r8]
    ldr r11, [r9, #4]
    bx lr
    .ltorg
    .data
cell:
    .word 5
"""
POOL = "region pool from 0x80000010 to 0x8000FFFF is cached\n"


def image() -> Image:
    return Image.load(build(PROGRAM, language="asm"))


def values(facts: str) -> tuple[ValueResults, int]:
    """Values of main, and the node it is."""
    loaded = image()
    main = loaded.symbol("main")
    assert main is not None
    graph = expand(extract(loaded, [main.addr]), main.addr, loaded)
    found = analyse(graph, loaded, regions=locate(parse(facts, "a.facts"), loaded).regions)
    return found, graph.entry


def test_a_region_is_named_by_an_object() -> None:
    """It has the same effect as its addresses, in every build."""
    sized = PROGRAM + ".type cell, %object\n.size cell, 4\n"
    loaded = Image.load(build(sized, language="asm"))
    low = address(loaded, "cell")
    named, written = (
        locate(parse(line, "a.facts"), loaded).regions.of_kind("read-only")
        for line in (
            "region cell is read-only",
            f"region cell from {low:#x} to {low + 3:#x} is read-only",
        )
    )
    assert [str(fact) for fact in named] == [str(fact) for fact in written]
    assert str(parse("region cell is read-only", "a.facts").facts[0]) == "region cell is read-only"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("region cell is read-only", "the size of cell is not known"),
        ("region absent is read-only", "there is no symbol absent"),
    ],
)
def test_an_object_of_unknown_size_is_no_region(line: str, said: str) -> None:
    with pytest.raises(FactsError, match=said):
        locate(parse(line, "a.facts"), image())


def test_a_register_points_into_a_region() -> None:
    found, node = values(POOL + "register r0 at main points into pool aligned 64\n")
    assert found.access(node, 0) == ValueSet(0x80000048, 0x8000FFC8, 64)
    assert found.access(node, 5) == ValueSet(0x8000004C, 0x8000FFCC, 64)
    free, node = values("")
    assert free.access(node, 0) == ANY


STACK = """
    .text
    .global main
    .type main, %function
main:
    push {r4, lr}
    mov r4, sp
    ldr r0, [r4, #4]
later:
    ldr r1, [sp]
    pop {r4, pc}
"""


@pytest.mark.parametrize("place", ["main", "later"])
def test_sp_at_the_entry_is_a_stack_of_known_place(place: str) -> None:
    """Not so at a later place: frames below sp at entry may be live."""
    loaded = Image.load(build(STACK, language="asm"))
    main = loaded.symbol("main")
    assert main is not None
    graph = expand(extract(loaded, [main.addr]), main.addr, loaded)
    text = f"region top from 0x9000 to 0x9000 is cached\nregister r13 at {place} points into top\n"
    found = analyse(graph, loaded, regions=locate(parse(text, "a.facts"), loaded).regions)
    nodes = [n for n, node in enumerate(graph.nodes) if node.block.addr == main.addr]
    assert nodes == [graph.entry]
    seen = [found.access(graph.entry, insn) for insn in (0, 2, 3)]
    if place == "main":
        assert seen == [ValueSet.of(0x8FF8), ValueSet.of(0x8FFC), ValueSet.of(0x8FF8)]
    else:
        assert seen == [ANY, ANY, ANY]


def test_an_access_points_into_a_region_when_it_is_made() -> None:
    found, node = values(POOL + "access at main+4 points into pool\n")
    assert found.access(node, 1) == ValueSet(0x80000010, 0x8000FFFF, 1)
    assert found.access(node, 0) == ANY


def test_accesses_of_unknown_address_point_into_a_region() -> None:
    found, node = values(POOL + "accesses of unknown address point into pool\n")
    inside = ValueSet(0x80000010, 0x8000FFFC, 1)
    assert found.access(node, 0) == inside
    assert found.access(node, 1) == inside
    assert found.access(node, 5) == ValueSet(0x80000014, 0x8000FFFC, 1), "4 above the first"
    main = image().symbol("main")
    assert main is not None
    assert {at - main.addr for at in found.unknown} == {0, 4, 0x14, 0x24, 0x28}, (
        "neither what the pc is the base of, nor what has a known address"
    )


LISTS = """
    .text
    .global main
    .type main, %function
main:
    ldm r0, {r1, r2, r3}
    stmdb r3, {r5, r6}
    and r7, r7, #255
    ldr r8, =cell
    ldr r9, [r8, r7, lsl #2]
    ldr r10, [sp, r9]
    bx lr
    .ltorg
    .data
cell:
    .space 1024
"""


def test_all_of_an_access_is_in_the_region_but_stacks_and_arrays_are_not_unknown() -> None:
    loaded = Image.load(build(LISTS, language="asm"))
    main = loaded.symbol("main")
    assert main is not None
    graph = expand(extract(loaded, [main.addr]), main.addr, loaded)
    facts = POOL + "accesses of unknown address point into pool\n"
    found = analyse(graph, loaded, regions=locate(parse(facts, "a.facts"), loaded).regions)
    assert found.access(graph.entry, 0) == ValueSet(0x80000010, 0x8000FFF4, 1)
    below = found.access(graph.entry, 1)
    assert below is not None
    assert below.low + 4 >= 0x80000010
    assert below.high <= 0x8000FFFC
    assert {at - main.addr for at in found.unknown} == {0, 4}


def test_a_fact_that_cannot_be_changes_nothing() -> None:
    two = POOL + "region far from 0x1000 to 0x1FFF is cached\n"
    found, node = values(
        two + "register r0 at main points into pool\nregister r0 at main+0x14 points into far\n"
    )
    assert found.access(node, 5) == ValueSet(0x8000001C, 0x8001000B, 1)


def test_origins_tell_which_addresses_differ_by_a_constant() -> None:
    """Two loads of one cell of ordinary memory give one word, so their uses share a symbol."""
    found, node = values("")
    first, second = found.origin(node, 9), found.origin(node, 10)
    assert first is not None
    assert second is not None
    assert first.symbol == second.symbol
    assert second.offset - first.offset == 4
    other = found.origin(node, 0)
    assert other is not None
    assert other.symbol != first.symbol
    assert found.origin(node, 7) is None  # a constant


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ("register r0 at main points into pool", "no region pool"),
        ("region a from 0x20 to 0x10 is cached", "lowest to its highest"),
        ("region a from 0x10 to 0x1F is hot", "expected"),
        ("region a from 0x10 to 0x1F is read-only and fixed", "state two facts"),
        (
            "region a from 0x10 to 0x1F is cached\nregion a from 0x10 to 0x1F is cached and fixed",
            "contradicts",
        ),
        (POOL + "register r15 at main points into pool", "no register r15"),
        (POOL + "register r0 at main points into pool aligned 3", "no power of two"),
        ("accesses of unknown address point into pool", "no region pool"),
        ("accesses of any address point into pool", "expected"),
        (POOL + "register r0 at nowhere points into pool", "no symbol nowhere"),
        ("region a from 0x1 to 0x2 is cached\naccess at main points into a aligned 16", "aligned"),
        (POOL + "region pool from 0x0 to 0x10 is cached", "contradicts"),
    ],
)
def test_wrong_facts_are_refused(facts: str, said: str) -> None:
    with pytest.raises(FactsError) as error:
        locate(parse(facts, "a.facts"), image())
    assert said in str(error.value)


def region(low: int, high: int, kind: str) -> RegionFact:
    return RegionFact(FactSource("a.facts", 1, ""), "fact", low, high, kind)


def test_fixed_translations_are_stated() -> None:
    line = "region ram from 0x1000 to 0x2fff is cached and fixed"
    (fact,) = parse(line, "a.facts").of(RegionFact)
    assert str(fact) == line
    memory = MemoryMap((MemoryRegion("tcm", 0x1800, 0x1FFF, RegionKind.CACHED, None, False),))
    wider = memory.with_facts([fact])
    assert [wider.fixed(at) for at in (0xFFF, 0x1000, 0x1800, 0x2000, 0x3000)] == [
        False, True, False, True, False,
    ]  # fmt: skip
    assert wider.physical(0x1000) is None
    assert not wider.tells((0x1000, 0x1003))
    moving = MemoryMap(()).with_facts(parse(line[:-10], "a.facts").of(RegionFact))
    assert not moving.fixed(0x1000)


def test_regions_fill_what_the_platform_leaves_open() -> None:
    ram = MemoryRegion("ram", 0x1000, 0x1FFF, RegionKind.CACHED, None, True)
    wider = MemoryMap((ram,)).with_facts([region(0x800, 0x2FFF, "cached")])
    assert wider.cacheability(0x800, 0x2FFF) is Cacheability.ALWAYS
    assert [wider.fixed(a) for a in (0x900, 0x1000, 0x2000)] == [False, True, False]
    assert wider.cacheability(0x2FFF, 0x3000) is Cacheability.MAYBE
    tcm = MemoryMap((ram,)).with_facts([region(0x4000, 0x4FFF, "tcm"), region(0, 9, "read-only")])
    assert tcm.cacheability(0x4000, 0x4FFF) is Cacheability.ON_CHIP
    assert tcm.cacheability(0, 9) is Cacheability.MAYBE
    with pytest.raises(FactsError, match="overlaps 'ram', which is cached"):
        MemoryMap((ram,)).with_facts([region(0x1800, 0x1FFF, "device")])


CHANGING = """
    .section .changing, "awx"
    .global main
    .type main, %function
main:
    cmp r0, #2
    ldrls pc, [pc, r0, lsl #2]
    b 3f
    .word 1f, 2f, 3f
1:  mov r0, #1
    bx lr
2:  ldr r3, =other
    bx r3
3:  bx lr
    .ltorg
    .type other, %function
other:
    bx lr
"""


def test_constants_beside_code_of_a_writable_section_are_what_a_fact_says() -> None:
    """As in hypervisors whose text is writable in the ELF: tables and literals may change."""
    loaded = Image.load(build(CHANGING, language="asm"))
    main, text = address(loaded, "main"), loaded.section_at(address(loaded, "main"))
    assert text is not None
    assert text.writable
    said = f"region NAME from {text.addr:#x} to {text.addr + text.size - 1:#x} is read-only"
    (unresolved,) = extract(loaded, [main]).unresolved
    assert unresolved.addr == main + 4
    assert said in unresolved.hint
    facts = parse(said.replace("NAME", "text"), "a.facts")
    program = extract(loaded, [main], locate(facts, loaded))
    assert not program.unresolved
    assert [len(table.targets) for table in program.jump_tables if table.table] == [3]
    assert program.assumptions[:1] == (stated(facts.facts[0]),)
    assert address(loaded, "other") in program.functions


def test_what_is_read_only_ends_where_the_fact_says() -> None:
    loaded = Image.load(build(CHANGING, language="asm"))
    main = address(loaded, "main")
    assert loaded.constant(main, 4) is None
    fixed = loaded.holding([(main, main + 3)])
    assert fixed.constant(main, 4) == int.from_bytes(loaded.read(main, 4) or b"", "little")
    assert fixed.constant(main + 1, 4) is None
    assert loaded.constant(main, 4) is None
