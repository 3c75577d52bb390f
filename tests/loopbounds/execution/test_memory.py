"""Memory of the only execution agrees with the concrete twin, wherever the stack is."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopbounds.execution.memory import ConcreteMemory
from loopbounds.execution.value import ConcreteValue, LowBytes, StackAddress, Undecided
from loopbounds.execution.word_range import WordRange
from quoll.assumptions import S3, S4
from quoll.image.image import Image
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from tests.testing.arm.interpreter import ByteMemory
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build

SOURCE = """const unsigned fixed[4] = {1, 2, 3, 4};
unsigned data[8] = {0x01020304, 5}, zero[8];
int main(void) { return data[fixed[0]] + zero[1]; }
"""
STACK, RAM = 0x7FFF0000, 0x60000000


@cache
def image() -> Image:
    loaded = Image.load(build(SOURCE, "-O1"))
    spans = loaded.loaded_in_place()
    return loaded.starting_with(spans).changing(spans)


def twin(of: Image) -> ByteMemory:
    return ByteMemory(
        {
            s.addr + i: byte
            for s in of.segments
            for i, byte in enumerate(s.data.ljust(s.size, b"\0"))
        }
    )


accesses = st.tuples(
    st.booleans(),
    st.sampled_from(["data", "zero", "frame", "ram"]),
    st.integers(0, 27),
    st.sampled_from([1, 2, 4, 8]),
    st.none() | st.integers(0, (1 << 64) - 1) | st.integers(-64, 64).map(StackAddress),
)


@pytest.mark.slow("many random memories")
@given(st.lists(accesses, max_size=30))
def test_what_is_known_is_what_is_there(
    drawn: list[tuple[bool, str, int, int, ConcreteValue]],
) -> None:
    ram = MemoryRegion("ram", RAM, RAM + 0xFFF, RegionKind.CACHED, RAM, fixed=True)
    memory, concrete = ConcreteMemory(image().mapped(MemoryMap((ram,)))), twin(image())
    unknown = 0xA5A5A5A5A5A5A5A5
    for stores, name, offset, size, value in drawn:
        place: ConcreteValue = StackAddress(offset - 40)
        at = STACK + offset - 40
        if name != "frame":
            place = at = (RAM if name == "ram" else address(image(), name)) + offset
        if stores:
            stored: ConcreteValue = value & (1 << 8 * size) - 1 if isinstance(value, int) else value
            stored = None if isinstance(stored, StackAddress) and size != 4 else stored
            word = stored if isinstance(stored, int) else unknown & (1 << 8 * size) - 1
            if isinstance(stored, StackAddress):
                word = STACK + stored.offset
            memory.store(place, size, stored)
            concrete.store(at, size, word)
        else:
            found = memory.load(place, size)
            here = concrete.load(at, size)
            if isinstance(found, StackAddress):
                found = STACK + found.offset
            if isinstance(found, LowBytes):
                found = here & -(1 << 8 * found.count) | found.value
            assert found in (None, here)


def test_forked_and_joined_memories() -> None:
    """Each memory covers a set of executions: a known word has its value in all of them."""
    ram = MemoryRegion("ram", RAM, RAM + 0xFFF, RegionKind.CACHED, RAM, fixed=True)
    for seed in range(cases(60)):
        random = Random(seed)
        start = ConcreteMemory(image().mapped(MemoryMap((ram,))))
        states = [(start, [twin(image())])]
        for _ in range(60):
            memory, executions = random.choice(states)
            offset = random.randrange(20)
            place: ConcreteValue = RAM + offset
            at = RAM + offset
            if random.random() < 0.5:
                place, at = StackAddress(offset - 24), STACK + offset - 24
            size, value = random.choice([1, 2, 4]), random.randrange(250)
            match random.randrange(6):
                case 0 if len(states) < 5:
                    states.append((memory.fork(), [deepcopy(one) for one in executions]))
                case 1 if len(states) > 1:
                    other = random.choice([state for state in states if state[0] is not memory])
                    memory.join(other[0])
                    executions += other[1]
                    states = [state for state in states if state is not other]
                case 2 | 3:
                    memory.store(place, size, value)
                    for one in executions:
                        one.store(at, size, value)
                case _:
                    found = memory.load(place, size)
                    if isinstance(found, LowBytes):
                        size, found = found.count, found.value
                    loaded = {one.load(at, size) for one in executions}
                    if isinstance(found, WordRange):
                        assert loaded <= {*range(found.low, found.high + 1, found.stride)}
                    else:
                        assert found is None or loaded == {found}


def test_an_access_to_three_words() -> None:
    memory = ConcreteMemory(image())
    data = address(image(), "data")
    memory.store(data + 2, 8, 0x1122334455667788)
    assert memory.load(data + 4, 4) == 0x33445566


def test_what_is_loaded_is_known() -> None:
    memory = ConcreteMemory(image())
    assert memory.load(address(image(), "data"), 4) == 0x01020304
    assert memory.load(address(image(), "data") + 1, 1) == 3
    assert memory.load(address(image(), "zero"), 8) == 0
    assert memory.load(address(image(), "fixed") + 4, 4) == 2
    assert memory.load(StackAddress(-4), 4) is None
    memory.store(StackAddress(-4), 4, None)
    memory.store(StackAddress(-4), 1, 7)
    assert memory.load(StackAddress(-4), 1) == 7
    assert memory.load(StackAddress(-4), 4) == LowBytes(1, 7)
    memory.store(StackAddress(-4), 4, LowBytes(2, 0x0102))
    assert memory.load(StackAddress(-3), 1) == 1
    assert memory.load(StackAddress(-2), 1) is None


@pytest.mark.parametrize(
    "place", [None, "fixed", "main"], ids=["anywhere", "to a constant", "to code"]
)
def test_stores_that_end_the_attempt(place: str | None) -> None:
    at = None if place is None else address(image(), place)
    with pytest.raises(Undecided):
        ConcreteMemory(image()).store(at, 4, 1)


def test_code_in_writable_memory_is_not_stored_to(tmp_path: Path) -> None:
    """Its instructions were decoded as they are loaded."""
    loaded = Image.load(build(SOURCE, "-O1", "-Wl,--omagic"))
    started = loaded.starting_with(loaded.loaded_in_place()).changing(loaded.loaded_in_place())
    with pytest.raises(Undecided, match="code"):
        ConcreteMemory(started).store(address(started, "main"), 4, 1)


@pytest.mark.parametrize("kind", RegionKind)
@pytest.mark.parametrize("fixed", [True, False])
def test_memory_outside_the_image(kind: RegionKind, fixed: bool) -> None:
    """Unknown at first; then it has the word stored last, if only the program stores there."""
    region = MemoryRegion("ram", STACK, STACK + 0xFFF, kind, STACK, fixed)
    memory = ConcreteMemory(image().mapped(MemoryMap((region,))))
    assert memory.load(STACK + 4, 4) is None
    memory.store(STACK + 4, 4, 0x01020304)
    known = fixed and kind in (RegionKind.CACHED, RegionKind.TCM)
    assert memory.load(STACK + 4, 4) == (0x01020304 if known else None)
    assert memory.load(STACK + 6, 1) == (2 if known else None)
    assert memory.load(STACK + 5, 4) is None
    memory.discard(STACK + 8)
    assert memory.load(STACK + 4, 4) is None


def test_a_device_keeps_nothing() -> None:
    memory = ConcreteMemory(image())
    memory.store(0x48020000, 4, 1)
    assert memory.load(0x48020000, 4) is None


def test_names_of_a_word() -> None:
    """S3 is assumed where the map has no entry for an address; two aliases raise Undecided."""
    data = address(image(), "data")
    memory = ConcreteMemory(image())
    memory.load(data, 4)
    assert memory.assumed == {S3.of()}
    low = data & ~0xFFF
    here = MemoryRegion("here", low, low + 0xFFF, RegionKind.CACHED, low, fixed=True)
    memory = ConcreteMemory(image().mapped(MemoryMap((here,))))
    memory.store(data, 4, 9)
    assert memory.load(data, 4) == 9
    assert not memory.assumed
    memory.store(StackAddress(-4), 4, 0)
    assert memory.assumed == {S4.of()}
    there = MemoryRegion("there", 0xA0000000, 0xA0000FFF, RegionKind.CACHED, low, fixed=True)
    memory = ConcreteMemory(image().mapped(MemoryMap((here, there))))
    with pytest.raises(Undecided):
        memory.store(data, 4, 1)


def test_a_word_that_other_code_stores_to_is_never_known() -> None:
    """By either of its addresses, as loaded or as stored."""
    mirrored = RAM + 0x1000
    regions = [
        MemoryRegion(name, low, low + 0xFFF, RegionKind.CACHED, RAM, fixed=True)
        for name, low in (("ram", RAM), ("again", mirrored))
    ]
    data = address(image(), "data")
    disturbed = image().disturbed([(data, data)]).mapped(MemoryMap(tuple(regions)))
    aliased = disturbed.disturbed([(RAM + 5, RAM + 5)])
    assert all(aliased.is_disturbed((at, at + 3)) for at in (data, RAM + 4, mirrored + 4))
    assert not any(aliased.is_disturbed((at, at + 3)) for at in (data + 4, RAM, mirrored + 8))
    assert aliased.at_start(data, 4) is None
    assert aliased.at_start(data + 4, 4) == 5
    single = image().mapped(MemoryMap((regions[0],))).disturbed([(RAM + 5, RAM + 5)])
    memory = ConcreteMemory(single)
    for at, known in ((RAM, 7), (RAM + 4, None)):
        memory.store(at, 4, 7)
        assert memory.load(at, 4) == known
