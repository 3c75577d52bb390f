"""Loads at constant distances from an unknown word: charges cover its lines, at any place."""

from __future__ import annotations

from random import Random

import pytest

from cache.classify import classify
from cache.events import CacheEvent
from cache.geometry import CacheGeometry
from cache.groups import AccessGroup, Block, Groups, common_groups, most_lines, renamed
from cache.lines import NO_LINES, AccessedLines
from cache.must import MustState, MustTransfer
from cache.policy import AgingRule
from cache.reference import HitClass, ReferenceKind
from quoll.abstract_domain.terms import RIGID
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import SymbolicAddress
from tests.testing.cache.graphs import Program, straight
from tests.testing.cache.walks import L1, hierarchy

POINTER, OTHER = RIGID, RIGID + 1
LINE = 32
ONE_WAY = (AgingRule(1),)
RAM = ValueSet(0xF0010000, 0xF0110000, 4)


def random_blocks(random: Random) -> tuple[Block, ...]:
    """Words in a row, of an access at a random distance."""
    first = 4 * random.randrange(24)
    return tuple((first + 4 * n, first + 4 * n + 4) for n in range(random.choice([1, 1, 2, 4, 9])))


def lines(blocks: tuple[Block, ...], place: int) -> set[int]:
    """The lines of ``blocks`` from a symbol at ``place``."""
    return {(low + place) // LINE for low, _ in blocks}


def load(symbol: int, blocks: tuple[Block, ...]) -> CacheEvent:
    return CacheEvent(AccessedLines(None, symbol, blocks), certain=True, pays=True, group=0)


def test_most_lines_is_reached_and_not_exceeded() -> None:
    random = Random(1)
    for _ in range(300):
        blocks = tuple({*random_blocks(random), *random_blocks(random)})
        counts = [len(lines(blocks, at)) for at in range(0, LINE, 4)]
        assert most_lines(blocks, LINE) == max(counts)
    assert most_lines(tuple((n, n + 4) for n in range(0, 52, 4)), LINE) == 3
    assert most_lines(tuple((n, n + 4) for n in range(0, 52, 4)), 64) == 2
    assert most_lines(((0, 32), (32, 64)), LINE) == 2, "aligned to lines"


def test_charges_cover_misses_at_every_place() -> None:
    """In a cache without the lines; fewer are charged than if each load were alone."""
    random = Random(2)
    fewer = 0
    for _ in range(100):
        state = MustState((NO_LINES,), (NO_LINES,))
        step = MustTransfer(state, ONE_WAY, ONE_WAY, CacheGeometry(4096, 1, LINE))
        charged, seen = 0, tuple[Block, ...]()
        for _ in range(random.randint(1, 8)):
            blocks = random_blocks(random)
            verdict = step.apply(load(POINTER, blocks))
            assert not verdict.credited
            alone = most_lines(blocks, LINE)
            due = alone if verdict.misses is None else verdict.misses
            charged += 0 if verdict.resident else due
            fewer += due < alone and not verdict.resident
            seen = (*seen, *blocks)
            for place in range(0, LINE, 4):
                assert len(lines(seen, place)) <= charged
    assert fewer > 100


def random_group(random: Random) -> AccessGroup:
    group = AccessGroup()
    for _ in range(random.randint(1, 3)):
        found = group.with_blocks(random_blocks(random), LINE)
        assert found is not None
        group = found._replace(charged=found.charged + random.choice([0, 0, 1]))
    return group


def potential(groups: Groups, places: dict[int, int]) -> int:
    """What all groups have left, when symbols point to ``places``."""
    return sum(g.charged - len(lines(g.blocks, places[s])) for s, g in groups.items())


def test_a_join_has_the_potential_of_neither_more() -> None:
    random = Random(3)
    joined = 0
    for _ in range(500):
        a = {POINTER: random_group(random), OTHER: random_group(random)}
        b = {POINTER: random_group(random)}
        if random.random() < 0.5:
            b[POINTER] = a[POINTER]._replace(charged=a[POINTER].charged + random.choice([-1, 0, 1]))
        both = common_groups(a, b)
        joined += bool(both)
        for place in range(0, LINE, 4):
            places = {POINTER: place, OTHER: random.randrange(0, LINE, 4)}
            assert potential(both, places) <= potential(a, places)
            if b[POINTER].charged >= most_lines(b[POINTER].blocks, LINE):
                assert potential(both, places) <= potential(b, places)
    assert joined > 100


def test_a_word_with_two_names_pays_once() -> None:
    group = AccessGroup(((0, 4), (4, 8)), 2)
    images = {POINTER: OTHER << 32 | 8, OTHER: OTHER << 32 | 4, OTHER + 1: POINTER << 32}
    after = renamed({OTHER: group}, images)
    assert after == {POINTER: AccessGroup(((-8, -4), (-4, 0)), 2)}
    places = {POINTER: 8 + 20, OTHER: 20}
    assert potential(after, places) == potential({OTHER: group}, places)


def charged(
    text: str, offsets: list[int], value: ValueSet | None = RAM, others: tuple[int, ...] = ()
) -> list[list[bool]]:
    """For each load, which of its lines are charged a miss."""
    count = len(offsets)
    values = [value] * count
    program = straight(text, list(values))
    origins = {
        (0, i): SymbolicAddress(OTHER if i in others else POINTER, at)
        for i, at in enumerate(offsets)
    }
    program = Program(program.graph, program.values, origins)
    references = classify(program.graph, program, hierarchy(0)).references[0]
    found: list[list[bool]] = [[] for _ in offsets]
    for r in references:
        if r.kind is ReferenceKind.LOAD:
            found[r.insn].append(r.l1 is HitClass.NC and not r.credited)
    return found


def test_lists_in_a_row_are_as_many_misses_as_lines() -> None:
    text = "ldm r4, {r0-r3}\n" * 3
    assert sum(map(sum, charged(text, [0, 16, 32]))) == 3


def test_words_of_an_object_are_as_many_misses_as_lines() -> None:
    text = "ldr r3, [r4]\n" * 8
    assert sum(map(sum, charged(text, [0, 4, 12, 8, 28, 40, 36, 20]))) == 3


@pytest.mark.parametrize(
    ("text", "misses"),
    [
        ("ldr r3, [r4]\nldr r3, [r4]\nldr r3, [r4]\n", 2),
        ("ldr r3, [r4]\nldr r3, [r4]\nldrd r2, r3, [r4]\n", 4),
        ("ldm r4, {r0-r3}\nldm r4, {r0-r3}\nldm r4, {r0-r3}\n", 6),
    ],
)
def test_memory_that_may_be_uncached(text: str, misses: int) -> None:
    """Only loads of equally many words in one line stand for each other."""
    assert sum(map(sum, charged(text, [0, 4, 8], None))) == misses


def test_another_pointer_ends_a_group() -> None:
    text = "ldr r3, [r4]\n" * 5
    assert sum(map(sum, charged(text, [0, 4, 0, 8, 12], others=(2,)))) == 5


def test_a_load_that_is_charged_elsewhere_is_in_no_group() -> None:
    state = MustState((NO_LINES,), (NO_LINES,))
    step = MustTransfer(state, ONE_WAY, ONE_WAY, L1)
    assert step.apply(load(POINTER, ((0, 4),))._replace(first=True)).misses is None
    assert step.build().groups == {}
    assert step.apply(load(POINTER, ((4, 8),))).misses == 1
