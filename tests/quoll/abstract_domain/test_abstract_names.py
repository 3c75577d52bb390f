"""Values where a word has several addresses, against executions in memory that is translated."""

from __future__ import annotations

from random import Random

import pytest

from quoll.abstract_domain.abstract_memory import S3, S4
from quoll.arm.insn import LR, PC, SP
from quoll.errors import ControlFlowError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.image.memory_map import NO_MAP, MemoryMap
from quoll.inlining.expand import expand
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.quoll.building import address, build
from tests.testing.values.windows import HOME, LATER, PLAIN, WINDOWS, Translated, region

TEXT = 0x8000
RETURN = 0xFFFF0000


def values_of(image: Image, name: str) -> ValueResults:
    entry = address(image, name)
    graph = expand(extract(image, [entry]), entry, image)
    return analyse(graph, image)


def function(name: str, random: Random) -> str:
    """Stores and loads of all sizes, of the same twelve bytes by three names."""
    lines = [f".global {name}", f".type {name}, %function", f"{name}:"]
    if random.random() < 0.5:
        lines.append(f"ldr sp, ={random.choice([HOME, PLAIN]) + 16}")
    for _ in range(10):
        window = random.choice([HOME, PLAIN, LATER])
        offset = random.randrange(8, 20) - (8 if window == LATER else 0)
        size, suffix = random.choice([(4, ""), (4, ""), (2, "h"), (1, "b")])
        offset -= offset % size
        kind = random.randrange(4)
        if kind == 3:
            lines.append(f"push {{r{random.choice([2, 3])}}}; add sp, sp, #4")
            continue
        lines.append(f"ldr r0, ={window + offset}")
        if kind == 2:
            lines.append(f"ldr{suffix} r{random.randrange(2, 8)}, [r0]")
        else:
            value = random.choice(["#", "#", "r"])
            if value == "#":
                lines.append(f"mov r1, #{random.randrange(256)}; str{suffix} r1, [r0]")
            else:
                lines.append(f"str{suffix} r{random.randrange(2, 8)}, [r0]")
    lines += [f"b {name}_end", f"{name}_end: bx lr", ".ltorg"]
    return "\n".join(lines)


@pytest.mark.slow("many random instruction sequences and states")
def test_executions_by_several_names_are_covered() -> None:
    """Before, a store by one alias left the word known by another alias unchanged."""
    random = Random(34)
    names = [f"f{i}" for i in range(60)]
    source = "\n".join(function(name, random) for name in names)
    elf = build(
        f".syntax unified\n.data\n.space 64\n.text\n.global main\nmain: bx lr\n{source}\n",
        f"-Wl,-Tdata={HOME:#x}",
        language="asm",
    )
    image = Image.load(elf).mapped(WINDOWS)
    known = 0
    for name in names:
        values = values_of(image, name)
        graph = values.graph
        end = address(image, f"{name}_end")
        last = next(n for n, node in enumerate(graph.nodes) if node.block.addr == end)
        insns = {i.addr: i for node in graph.nodes for i in node.block.insns}
        memory = Translated({s.addr + i: b for s in image.segments for i, b in enumerate(s.data)})
        machine = ConcreteMachine(memory)
        machine.registers[:15] = [random.getrandbits(32) for _ in range(15)]
        machine.registers[SP], machine.registers[LR] = 0x7_0000, RETURN
        machine.registers[PC] = address(image, name)
        while machine.registers[PC] != end:
            machine.step(insns[machine.registers[PC]])
        for register in range(2, 8):
            found = values.register(last, register)
            assert machine.registers[register] in found, (name, register)
            known += found.exact is not None
    assert known > 15


CONSTANT = """
main: ldr r0, =copy - 0x20000 + 0x40000
    mov r1, #9
    {store}
    ldr r2, =copy
    ldr r3, [r2]
    b end
end: bx lr
    .ltorg
    .section .rodata
    .balign 4
copy: .word 5
"""


@pytest.mark.parametrize(
    ("store", "memory", "known"),
    [
        ("str r1, [r0]", WINDOWS, 9),
        ("strb r1, [r0, #3]", WINDOWS, None),
        ("str r1, [r0, #4]", WINDOWS, 5),
        ("str r1, [r0]", NO_MAP, 5),
    ],
)
def test_a_constant_that_is_written_by_another_name(
    store: str, memory: MemoryMap, known: int | None
) -> None:
    """Held: a read-only word kept the value of the file when it was stored to by its alias."""
    source = f".syntax unified\n.text\n.global main\n{CONSTANT.format(store=store)}\n"
    elf = build(source, "-Wl,--section-start=.rodata=0x20000", language="asm")
    image = Image.load(elf).mapped(memory)
    values = values_of(image, "main")
    last = next(
        n for n, b in enumerate(values.graph.nodes) if b.block.addr == address(image, "end")
    )
    assert values.register(last, 3).exact == known
    assert (S3 in values.assumptions) == (memory is NO_MAP)
    assert bool(values.changed) == (known != 5)


def test_code_that_is_written_by_another_name_is_refused() -> None:
    memory = MemoryMap((region(TEXT, 0x1000, 0x5000), region(PLAIN, 0x1000, 0x5000)))
    source = (
        ".syntax unified\n.text\n.global main\n"
        f"main: ldr r0, ={PLAIN + 8}; str r1, [r0]; nop; bx lr\n"
    )
    image = Image.load(build(source, language="asm")).mapped(memory)
    with pytest.raises(ControlFlowError, match=r"a store to .*main.* changes this instruction"):
        values_of(image, "main")


@pytest.mark.parametrize(
    ("other", "memory", "assumed"),
    [
        (HOME + 4, NO_MAP, False),  # of the same page
        (0x9_0000, NO_MAP, True),
        (0x9_0004, NO_MAP, False),
        (0x9_0000, WINDOWS, True),
        (PLAIN + 0x400, WINDOWS, False),  # told to be another word
        (PLAIN + 0x400, MemoryMap((region(HOME, 0x1000, 0x5000),)), True),
        (
            PLAIN + 0x400,
            MemoryMap((region(HOME, 0x1000, 0x5000), region(PLAIN, 0x1000, 0x5000, fixed=False))),
            True,
        ),
    ],
)
def test_the_assumption_is_listed_where_it_is_used(
    other: int, memory: MemoryMap, assumed: bool
) -> None:
    source = (
        ".syntax unified\n.data\nword: .word 0\n.text\n.global main\nmain:\n"
        f"mov r1, #5; ldr r0, =word; str r1, [r0]; ldr r2, ={other}; str r3, [r2]; ldr r4, [r0]\n"
        "b end\nend: bx lr\n"
    )
    image = Image.load(build(source, f"-Wl,-Tdata={HOME:#x}", language="asm")).mapped(memory)
    values = values_of(image, "main")
    last = next(
        n for n, b in enumerate(values.graph.nodes) if b.block.addr == address(image, "end")
    )
    assert values.register(last, 4).exact == 5
    assert (S3 in values.assumptions) == assumed
    assert S4 not in values.assumptions


def test_a_stack_of_unknown_place_is_assumed_to_be_elsewhere() -> None:
    source = (
        ".syntax unified\n.data\nword: .word 0\n.text\n.global main\nmain:\n"
        "push {r4, lr}; ldr r0, =word; str r1, [r0]; pop {r4, pc}\n"
    )
    image = Image.load(build(source, f"-Wl,-Tdata={HOME:#x}", language="asm"))
    assert S4 in values_of(image, "main").assumptions
