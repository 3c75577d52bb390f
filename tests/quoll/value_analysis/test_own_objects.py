"""Words of objects of their own, over stores of unknown address, against executions (S8)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from quoll.abstract_domain.abstract_memory import S1
from quoll.arm.insn import LR, PC, SP
from quoll.assumptions import S8
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from quoll.inlining.expand import expand
from quoll.intervals.strided_interval import ValueSet
from quoll.own_objects.own_objects import own_objects, with_own_objects
from quoll.value_analysis.context_domain import EntryRegisters
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.quoll.building import address, build

STACK, RETURN, BUFFER = 0x7_0000, 0xFFFF0000, 0x5_0000
OWN, TAKEN = ("a", "b", "c"), ("t", "u")
DATA = ".data\nholder: .word t, u\n.bss\n.balign 4\n" + "".join(
    f".type {name}, %object\n.size {name}, 4\n{name}: .space {4 << number}\n"
    for number, name in enumerate(("t", "a", "b", "u", "c"))
)


def values_of(image: Image, name: str) -> ValueResults:
    entry = address(image, name)
    graph = expand(extract(image, [entry]), entry, image)
    return analyse(graph, image)


def function(name: str, random: Random) -> str:
    """Stores and loads of five words, by their names and through r8 and r9."""
    lines = [f".type {name}, %function", f"{name}:"]
    for _ in range(14):
        word = random.choice(OWN + TAKEN)
        kind = random.choice((0, 0, 0, 1, 2, 3, 4, 5, 5, 5))
        if kind == 0:
            lines.append(f"ldr ip, ={word}; mov r1, #{random.randrange(256)}; str r1, [ip]")
        elif kind == 1:
            suffix, offset = random.choice([("b", 1), ("h", 2), ("", 0)])
            lines.append(f"ldr ip, ={word}; str{suffix} r3, [ip, #{offset}]")
        elif kind in (2, 3):
            size = random.choice(["", "b", "h"])
            lines.append(f"str{size} r{random.randrange(2, 8)}, [r{random.choice([8, 9])}]")
        elif kind == 4:
            lines.append(f"cmp r{random.randrange(2, 8)}, #9; ldrhi ip, ={word}; strhi r2, [ip]")
        else:
            lines.append(f"ldr ip, ={word}; ldr r{random.randrange(2, 8)}, [ip]")
    lines += [f"b {name}_end", f"{name}_end: bx lr", ".ltorg"]
    return "\n".join(lines)


@pytest.mark.slow("many random instruction sequences and states")
def test_executions_are_covered() -> None:
    random = Random(8)
    names = [f"f{i}" for i in range(60)]
    source = "\n".join(function(name, random) for name in names)
    text = f".syntax unified\n.text\n.global main\n.type main, %function\nmain: bx lr\n{source}\n"
    plain = Image.load(build(text + DATA, language="asm"))
    image = with_own_objects(plain)
    assert set(own_objects(plain).names.values()) == set(OWN)
    known = lost = 0
    for name in names:
        values, before = values_of(image, name), values_of(plain, name)
        end = address(image, f"{name}_end")
        last = next(n for n, node in enumerate(values.graph.nodes) if node.block.addr == end)
        insns = {i.addr: i for node in values.graph.nodes for i in node.block.insns}
        places = [BUFFER, *(address(image, word) for word in TAKEN)]
        for _ in range(20):
            memory = ByteMemory(
                {s.addr + i: b for s in image.segments for i, b in enumerate(s.data)}
            )
            machine = ConcreteMachine(memory)
            machine.registers[:15] = [random.getrandbits(random.choice([4, 32])) for _ in range(15)]
            machine.registers[8:10] = random.choice(places), random.choice(places)
            machine.registers[SP], machine.registers[LR] = STACK, RETURN
            machine.registers[PC] = address(image, name)
            while machine.registers[PC] != end:
                machine.step(insns[machine.registers[PC]])
            for register in range(2, 8):
                assert machine.registers[register] in values.register(last, register), name
        exact = [
            (v.register(last, r).exact is not None) for v in (values, before) for r in range(2, 8)
        ]
        known, lost = known + sum(exact[:6]), lost + sum(exact[6:])
        assert S8.name not in {one.name for one in before.assumptions}
        more = values.assumptions if sum(exact[:6]) > sum(exact[6:]) else [S8.of(object="a")]
        assert S8.name in {one.name for one in more}
    assert known > lost + 10


def test_an_address_that_a_call_loses_is_the_one_of_the_store() -> None:
    """Values lose r4 over a call that changes it on a way that no execution takes."""
    source = """
    .syntax unified
    .text
    .global main
    .type main, %function
main: ldr r4, =a
    mov r1, #1
    str r1, [r4]
    cmp r0, r0
    beq 1f
    ldr r4, [r9]
1:  mov r1, #2
    str r1, [r4]
    ldr ip, =a
    ldr r2, [ip]
    b end
end: bx lr
    .ltorg
"""
    image = with_own_objects(Image.load(build(source + DATA, language="asm")))
    values = values_of(image, "main")
    last = next(
        n for n, node in enumerate(values.graph.nodes) if node.block.addr == address(image, "end")
    )
    assert 2 in values.register(last, 2)


def test_only_words_that_are_read_behind_such_a_store_are_listed() -> None:
    source = """
    .syntax unified
    .text
    .global main
    .type main, %function
main: ldr ip, =a
    str r1, [ip]
    ldr ip, =b
    str r1, [ip]
    str r1, [r9]
    ldr ip, =b
    ldr r2, [ip]
    bx lr
    .ltorg
"""
    values = values_of(with_own_objects(Image.load(build(source + DATA, language="asm"))), "main")
    assert S8.of(object="b") in values.assumptions
    assert S8.of(object="a") not in values.assumptions
    assert S1 not in values.assumptions


OUTSIDE = """
PHDRS { code PT_LOAD; }
SECTIONS {
    .text 0x8000 : { *(.text) *(.data) } :code
    .bss 0x20000 : { *(.bss) } :NONE
}
"""


@pytest.mark.parametrize(
    ("kind", "fixed", "known"),
    [
        (RegionKind.CACHED, True, True),
        (RegionKind.CACHED, False, False),
        (RegionKind.UNCACHED, True, False),
        (RegionKind.DEVICE, True, False),
        (None, True, False),
    ],
)
def test_an_object_outside_of_all_segments(
    kind: RegionKind | None, fixed: bool, known: bool, tmp_path: Path
) -> None:
    """A word that an invariant states survives a store, if the platform has RAM there."""
    source = """
    .syntax unified
    .text
    .global main
    .type main, %function
main: str r1, [r9]
    ldr ip, =a
    ldr r2, [ip]
    b end
end: bx lr
    .ltorg
"""
    script = tmp_path / "kernel.ld"
    script.write_text(OUTSIDE)
    loaded = Image.load(build(source + DATA, language="asm", link=(f"-Wl,-T,{script}",)))
    physical = 0x20000 if fixed else None
    regions = () if kind is None else (MemoryRegion("r", 0x20000, 0x20FFF, kind, physical, fixed),)
    image = with_own_objects(loaded.mapped(MemoryMap(regions)))
    word = address(image, "a")
    assert image.own_object(word, 4) == "a"
    assert image.segment_at(word) is None
    entry = address(image, "main")
    graph = expand(extract(image, [entry]), entry, image)
    values = analyse(graph, image, EntryRegisters(words={(word, 4): ValueSet.of(5)}))
    last = next(n for n, node in enumerate(graph.nodes) if node.block.addr == address(image, "end"))
    assert (values.register(last, 2).exact == 5) is known
    assert (S8.of(object="a") in values.assumptions) is known
