"""Instructions that are compiled together have the effect that they have one by one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from loopbounds.execution.generated_code import NEXT, STOPPED, UNKNOWN, BlockWriter, compiled
from loopbounds.execution.machine import REGISTERS, CompiledInsn, CompiledRun
from loopbounds.execution.memory import ConcreteMemory
from loopbounds.execution.value import ConcreteValue, StackAddress, Undecided, WordRange
from quoll.arm.insn import PC
from quoll.image.image import Image
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from tests.testing.loopbounds.counting import Program
from tests.testing.loopbounds.programs import FLAGS, KINDS, random_program
from tests.testing.quoll.building import build

RAM = 0x60000000
MAP = MemoryMap((MemoryRegion("ram", RAM, RAM + 0xFFFF, RegionKind.CACHED, RAM, fixed=True),))


def registers(chance: random.Random) -> list[ConcreteValue]:
    """Addresses in memory, small numbers and any words; seldom one that is not known."""
    words = [
        chance.choice(
            [RAM + chance.randrange(0x8000) & ~3, chance.randrange(8), chance.getrandbits(32)]
        )
        for _ in range(PC)
    ]
    flags = [chance.randrange(2) for _ in range(REGISTERS - PC)]
    found: list[ConcreteValue] = [*words, *flags]
    if chance.randrange(4) == 0:
        found[chance.randrange(len(found))] = None
    return found


def one_by_one(
    insns: tuple[CompiledInsn, ...], held: list[ConcreteValue], memory: ConcreteMemory
) -> int:
    target = NEXT
    for insn in insns:
        target = insn.execute(held, memory)
        if target != NEXT:
            break
    return target


def compiled_blocks(
    chance: random.Random, *, thumb: bool
) -> Iterator[tuple[Image, tuple[CompiledInsn, ...]]]:
    """The instructions of the blocks of random programs, each with its image."""
    for kind in sorted(KINDS)[::3]:
        flags = (*FLAGS.get(kind, ()), *(("-mthumb",) if thumb else ()))
        code = Program(
            build(random_program(chance, kind), *flags, optimise="-O1"), "main", memory=MAP
        )
        for node in code.graph.nodes:
            yield code.image, tuple(CompiledInsn.of(insn) for insn in node.block.insns)


@pytest.mark.slow("many random instruction sequences and states")
@pytest.mark.parametrize("thumb", [False, True], ids=["arm", "thumb"])
def test_a_run_has_the_effect_of_its_instructions(thumb: bool) -> None:
    chance = random.Random(f"runs {thumb}")
    counts: Counter[str] = Counter()
    for image, insns in compiled_blocks(chance, thumb=thumb):
        run = CompiledRun.of(insns)
        if run is None:
            counts["not compiled"] += 1
            continue
        for _ in range(6):
            held = registers(chance)
            alone, other = list(held), list(held)
            memories = ConcreteMemory(image), ConcreteMemory(image)
            try:
                expected = one_by_one(insns, alone, memories[0])
            except Undecided:
                with pytest.raises(Undecided):
                    run.execute(other, memories[1])
                counts["undecided"] += 1
                continue
            counts["fast"] += run.effect(list(held), ConcreteMemory(image)) != UNKNOWN
            assert run.execute(other, memories[1]) == expected
            assert other == alone
            places = [w & ~3 for w in held if isinstance(w, int) and w >> 16 == RAM >> 16]
            near = [place + offset for place in places for offset in range(-32, 36, 4)]
            here, there = ([m.load(at, 4) for at in near] for m in memories)
            assert here == there
    assert counts["fast"] > 100
    assert counts["undecided"]


def effects(
    insns: tuple[CompiledInsn, ...], held: list[ConcreteValue], memory: ConcreteMemory
) -> int:
    """As ``one_by_one``; raises Undecided where a condition is not known."""
    target = NEXT
    for insn in insns:
        assert target == NEXT
        target = insn.effect(held, memory)
    return target


def any_registers(chance: random.Random) -> list[ConcreteValue]:
    """As ``registers``; many are unknown, or ranges, or addresses in a stack."""
    held = registers(chance)
    for number in range(PC):
        kind = chance.randrange(6)
        if kind == 0:
            held[number] = None
        elif kind == 1:
            low = RAM + chance.randrange(64) * 4
            held[number] = WordRange(low, low + 4 * chance.choice([1, 9, 5000]), 4)
        elif kind == 2:
            held[number] = StackAddress(-4 * chance.randrange(64))
    for flag in range(PC, REGISTERS):
        if chance.randrange(4) == 0:
            held[flag] = None
    return held


@pytest.mark.slow("many random instruction sequences and states")
@pytest.mark.parametrize("thumb", [False, True], ids=["arm", "thumb"])
def test_a_block_stops_before_an_undecided_instruction(thumb: bool) -> None:
    """Up to there its instructions, one by one, have the same effect; that one is undecided."""
    chance = random.Random(f"blocks {thumb}")
    counts: Counter[str] = Counter()
    for image, insns in compiled_blocks(chance, thumb=thumb):
        source = BlockWriter().source(insn.ops for insn in insns)
        if source is None:
            counts["not compiled"] += 1
            continue
        effect = compiled(source)
        for _ in range(8):
            held = any_registers(chance)
            together, alone = list(held), list(held)
            memories = ConcreteMemory(image), ConcreteMemory(image)
            for memory in memories:
                memory.touched = []
            try:
                target = effect(together, memories[0])
            except Undecided:
                with pytest.raises(Undecided):
                    effects(insns, alone, memories[1])
                counts["undecided"] += 1
                continue
            done = STOPPED - target if target <= STOPPED else len(insns)
            expected = effects(insns[:done], alone, memories[1])
            if target <= STOPPED:
                counts["stopped"] += 1
                assert expected == NEXT
                with pytest.raises(Undecided):
                    insns[done].effect(list(alone), memories[1].fork())
            else:
                counts["whole"] += 1
                assert target == expected
            assert together == alone
            assert memories[0].touched == memories[1].touched
            assert memories[0].has_words_of(memories[1])
    assert min(counts["whole"], counts["stopped"]) > 100, counts
