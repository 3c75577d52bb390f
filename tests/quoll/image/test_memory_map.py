"""Names of one memory: the map against a translation byte by byte (rule 34)."""

from __future__ import annotations

from random import Random

import pytest

from quoll.image.memory_map import MemoryMap, MemoryRegion, PhysicalMirror, RegionKind, same_in_page

SIZE = 0x80  # of the addresses that are tried
MIRROR = PhysicalMirror(0x1040, 0x105F, 0x1000)


def random_map(random: Random) -> MemoryMap:
    """Three regions in little memory, part of which answers twice; not all are told."""
    cuts = sorted(random.sample(range(SIZE), 6))
    regions = tuple(
        MemoryRegion(
            f"r{low}",
            low,
            high,
            RegionKind.CACHED,
            random.choice([None, 0x1000 + random.randrange(64), 0x1000 + low]),
            random.random() < 0.8,
        )
        for low, high in zip(cuts[::2], cuts[1::2], strict=True)
    )
    return MemoryMap(regions, (MIRROR,) if random.random() < 0.5 else ())


def translation(memory: MemoryMap) -> dict[int, int]:
    """Virtual to physical, where that is known and stays so."""
    found = {}
    for region in memory.regions:
        for addr in range(region.low, region.high + 1):
            if region.physical is not None and region.fixed:
                at = region.physical + addr - region.low
                if any(m.low <= at <= m.high for m in memory.mirrors):
                    at = at - MIRROR.low + MIRROR.of
                found[addr] = at
    return found


@pytest.mark.slow("many random inputs")
def test_names_are_those_of_the_same_bytes() -> None:
    """Held: one word at two addresses was two words (5 where 50 turns run)."""
    random, shared = Random(5), 0
    for _ in range(150):
        memory = random_map(random)
        physical = translation(memory)
        near = range(-SIZE - 8, SIZE + 8)
        assert set(memory.places_that_meet(4, 8)) == {
            away for away in near if memory.meets_at((away, away), 4, 8)
        }
        for _ in range(30):
            low, other = random.randrange(SIZE - 8), random.randrange(SIZE - 8)
            a = low, low + random.choice([0, 1, 3, 7])
            b = other, other + random.choice([0, 1, 3, 7])
            bytes_a, bytes_b = (
                {physical.get(addr, ("virtual", addr)) for addr in range(x[0], x[1] + 1)}
                for x in (a, b)
            )
            assert memory.meets(a, b) == bool(bytes_a & bytes_b), (memory, a, b)
            assert memory.meets(b, a) == memory.meets(a, b)
            assert memory.tells(a) == all(addr in physical for addr in range(a[0], a[1] + 1))
            size = a[1] - a[0] + 1
            whole = {
                addr
                for addr in range(SIZE)
                if all(
                    physical.get(addr + i, ("", addr + i)) == physical.get(low + i, ("", low + i))
                    for i in range(size)
                )
            }
            assert set(memory.names(low, size)) <= whole
            shared += len(memory.names(low, size)) > 1
            if bytes_a & bytes_b and not (a[0] <= b[1] and b[0] <= a[1]):
                assert memory.meets_at((b[0] - a[0],) * 2, b[1] - b[0] + 1, size)
    assert shared > 100


def test_what_is_assumed_to_be_apart() -> None:
    """Two places of a page are never one word; the same place of two pages may be."""
    ram = MemoryRegion("RAM", 0x8000, 0xBFFF, RegionKind.CACHED, 0x8000, True)
    loose = MemoryRegion("task", 0x1_0000, 0x1_3FFF, RegionKind.CACHED, 0x8000, False)
    memory = MemoryMap((ram, loose))
    assert not memory.assumes_apart((0x8000, 0x8003), (0x9000, 0x9003))  # both are told
    assert memory.assumes_apart((0x8000, 0x8003), (0x1_1000, 0x1_1003))  # that may be switched
    assert memory.assumes_apart((0x8000, 0x8003), (0x2_0000, 0x2_0003))
    assert not memory.assumes_apart((0x8000, 0x8003), (0x2_0004, 0x2_0007))
    assert same_in_page((0x8001, 0x8004), (0x2_0004, 0x2_0007))
    assert same_in_page((0x8004, 0x8007), (0x2_0000, 0x2_0FFF))
