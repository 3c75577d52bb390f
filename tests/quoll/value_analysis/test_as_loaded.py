"""Memory as loaded: values cover executions that start with it."""

from __future__ import annotations

import random
import subprocess
from collections import Counter

import pytest

from quoll.abstract_domain.abstract_memory import S2
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from quoll.inlining.expand import expand
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import EntryRegisters, analyse
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build
from tests.testing.values.executed import STACK, analysed, walk
from tests.testing.values.programs import random_program


def initialised(seed: int) -> str:
    """A random program whose data are initialised, at random."""
    chance = random.Random(seed)
    words = ", ".join(str(chance.choice([0, 1, 5, chance.getrandbits(32)])) for _ in range(8))
    source = random_program(seed)
    assert "unsigned globals[8];" in source
    source = source.replace("unsigned globals[8];", f"unsigned globals[8] = {{{words}}};")
    return source.replace("bytes[16];", "bytes[16] = {1, 2, 3};")


@pytest.mark.slow("compiles programs and executes them on many inputs")
@pytest.mark.parametrize("thumb", [False, True])
@pytest.mark.parametrize("known_stack", [False, True])
def test_random_programs_stay_within_what_is_known(thumb: bool, known_stack: bool) -> None:
    known: Counter[str] = Counter()
    for seed in range(200, 200 + cases(2)):
        source = initialised(seed)
        for from_reset in (False, True):
            image, graph, values = analysed(source, thumb, "-O1", known_stack, from_reset)
            for arguments in ([0, 0], [3, 700]):
                found = walk(image, graph, values, arguments)
                known[f"{from_reset} {arguments}"] += found["registers known"]
    assert known["True [0, 0]"] + known["True [3, 700]"] > (
        known["False [0, 0]"] + known["False [3, 700]"]
    )


GLOBALS = """
unsigned start = 7, limit = 3, table[4] = {2, 3, 5, 7}, left;
unsigned main(unsigned *p) { %s }
"""


def returned(body: str, *, known_stack: bool = False) -> set[int]:
    """The possible results of ``main``, from reset."""
    source = GLOBALS % body
    _, graph, values = analysed(source, False, "-O1", known_stack, from_reset=True)
    last = [n for n in graph.exits if values.reached(n)]
    sets = [values.operand(n, len(graph.nodes[n].block.insns) - 1, 0) for n in last]
    return {value for known in sets for value in (known if known.size < 64 else [-1])}


@pytest.mark.parametrize(
    ("body", "possible"),
    [
        ("return start;", {7}),
        ("return left;", {0}),
        ("limit = 9; return start + limit;", {16}),
        ("unsigned was = start; start = 4; return was * start;", {28}),
        ("return table[(unsigned)p & 3];", {2, 3, 4, 5, 6, 7}),
        ("*p = 1; return start;", {-1}),
        ("unsigned was = start; *p = 1; return was;", {7, -1}),
        ("table[(unsigned)p & 3] = 1; return start;", {7}),
        ("table[(unsigned)p & 3] = 1; return table[2];", {-1}),
        ("if (p) start = 1; return start;", {1, 2, 3, 4, 5, 6, 7}),
    ],
)
def test_what_may_have_been_stored_is_not_what_was_loaded(body: str, possible: set[int]) -> None:
    assert returned(body) <= possible


def test_a_stack_in_the_memory_that_is_loaded_changes_it() -> None:
    """Where the place of the stack is known; others are assumed to be elsewhere."""
    source = """
    __attribute__((section(".stack"))) unsigned words[64] = {[56 ... 63] = 5};
    unsigned main(unsigned a)
    { volatile unsigned x[4]; x[1] = a; return *(volatile unsigned *)&words[%d]; }
    """
    found: dict[int, set[int]] = {}
    for word in (2, 61):
        link = (f"-Wl,--section-start=.stack={STACK - 64 * 4:#x}",)
        image = Image.load(build(source % word, link=link))
        image = image.starting_with(image.loaded_in_place())
        entry = address(image, "main")
        while True:
            graph = expand(extract(image, [entry]), entry, image)
            entry_state = EntryRegisters(0x13, {13: ValueSet.of(STACK)})
            values = analyse(graph, image, entry_state, starts=True)
            if not values.changed:
                break
            image = image.changing(values.changed)
        (last,) = graph.exits
        known = values.operand(last, len(graph.nodes[last].block.insns) - 1, 0)
        found[word] = set(known) if known.size < 64 else {-1}
    assert found == {2: {0}, 61: {-1}}


def test_a_store_of_unknown_address_spares_read_only_sections() -> None:
    """Where no segment is writable, all of them are as loaded, and the code is among them."""
    source = """const unsigned fixed[2] = {1, 2};
    unsigned main(volatile unsigned *p) { *p = 5; return fixed[p[1] & 1]; }"""
    image = Image.load(build(source))
    image = image.starting_with(image.loaded_in_place())
    entry = address(image, "main")
    assert any(low <= entry <= high for low, high in image.as_loaded)
    graph = expand(extract(image, [entry]), entry, image)
    values = analyse(graph, image, EntryRegisters(0x13, {}), starts=True)
    changed = image.changing(values.changed)
    assert changed.constant(address(image, "fixed"), 4) == 1
    assert changed.constant(entry, 4) is not None
    assert S2 in values.environment.used


def test_segments_that_are_copied_elsewhere_are_not_loaded_in_place() -> None:
    """Their bytes are in ROM; where the code finds them start-up code puts them."""
    source = "unsigned given = 3; unsigned main(void) { return given; }"
    elf = build(source, link=("-Wl,-Tdata=0x20000",))
    rom = elf.with_name("rom.elf")
    lma = "--change-section-lma=.data=0x80020000"
    subprocess.run(["arm-none-eabi-objcopy", lma, elf, rom], check=True)
    loaded, copied = Image.load(elf), Image.load(rom)
    [span] = loaded.loaded_in_place()
    assert span[0] <= address(loaded, "given") <= span[1]
    assert copied.loaded_in_place() == ()
    region = MemoryRegion("ram", 0, 0xFFFFF, RegionKind.CACHED, 0x80000000, True)
    translated = MemoryMap((region,))
    assert copied.mapped(translated).loaded_in_place() == (span,)
    assert loaded.mapped(translated).loaded_in_place() == ()


def test_parts_that_stores_change_are_taken_out_of_what_is_constant() -> None:
    source = "unsigned words[8] = {1, 2, 3, 4}; unsigned main(void) { return words[1]; }"
    image = Image.load(build(source))
    at = address(image, "words")
    started = image.starting_with([(at, at + 31)])
    assert started.constant(at + 4, 4) == 2
    changed = started.changing([(at + 4, at + 7), (at + 30, at + 40)])
    assert changed.constant_as_loaded() == ((at, at + 3), (at + 8, at + 29))
    assert changed.changed_as_loaded() == ((at + 4, at + 7), (at + 30, at + 31))
    assert changed.constant(at + 4, 4) is None
    assert changed.at_start(at + 4, 4) == 2
    assert image.at_start(at + 4, 4) is None
    assert started.at_start(at + 30, 4) is None
