"""Loops whose counters have several addresses, against executions in translated memory."""

from __future__ import annotations

from random import Random

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.arm.insn import LR, PC, SP
from quoll.assumptions import S3
from quoll.extraction.extract import extract
from quoll.facts.located import NO_FACTS
from quoll.image.image import Image
from quoll.image.memory_map import NO_MAP, MemoryMap
from quoll.inlining.expand import expand, without_edges
from quoll.value_analysis.value_results import analyse
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build
from tests.testing.values.windows import HOME, LATER, PLAIN, WINDOWS, Translated

RETURN, STEPS = 0xFFFF0000, 3000
OPTIONS = BoundOptions(Budget(seconds=20), workers=1)


def loaded(code: str, names: list[str]) -> Image:
    source = f".syntax unified\n.data\n.space 64\n.text\n.global {', '.join(names)}\n{code}\n"
    return Image.load(build(source, f"-Wl,-Tdata={HOME:#x}", "-Wl,-e,0x8000", language="asm"))


def bound_of(image: Image, name: str) -> LoopBound:
    entry = address(image, name)
    whole = expand(extract(image, [entry]), entry, image)
    graph = without_edges(whole, analyse(whole, image).dead_edges, image)
    return bound_loops(graph, image, analyse(graph, image), NO_FACTS, OPTIONS)[0]


def executions(image: Image, name: str, arguments: list[int]) -> int | None:
    """Of the instruction at ``name``_loop; None if they do not end."""
    entry, header = address(image, name), address(image, f"{name}_loop")
    graph = expand(extract(image, [entry]), entry, image)
    insns = {i.addr: i for node in graph.nodes for i in node.block.insns}
    machine = ConcreteMachine(
        Translated({s.addr + i: b for s in image.segments for i, b in enumerate(s.data)})
    )
    machine.registers[: len(arguments)] = arguments
    machine.registers[SP], machine.registers[LR], machine.registers[PC] = 0x7_0000, RETURN, entry
    count = 0
    for _ in range(STEPS):
        at = machine.registers[PC]
        if at == RETURN:
            return count
        count += at == header
        machine.step(insns[at])
    return None


COUNT = """
f: mov r1, #5
    ldr r0, ={first}
    str r1, [r0]
    mov r1, #50
    ldr r2, ={second}
    str{size} r1, [r2]
    ldr r1, [r0]
f_loop: subs r1, r1, #1
    bne f_loop
    bx lr
"""


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("first", "second", "size", "memory", "bound", "assumed"),
    [
        (HOME, PLAIN, "", WINDOWS, 50, False),  # 5 was "exact"
        (PLAIN, HOME, "", WINDOWS, 50, False),
        (PLAIN + 12, LATER + 4, "", WINDOWS, 50, False),
        (HOME + 8, LATER, "b", WINDOWS, None, False),  # a part of the word
        (HOME, PLAIN + 4, "", WINDOWS, 5, False),
        (HOME, PLAIN, "", NO_MAP, 5, True),
        (HOME, PLAIN + 4, "", NO_MAP, 5, False),
    ],
)
def test_a_count_that_is_stored_by_another_name(
    first: int, second: int, size: str, memory: MemoryMap, bound: int | None, assumed: bool
) -> None:
    """Held: "exact 5" where 50 turns run."""
    image = loaded(COUNT.format(first=first, second=second, size=size), ["f"]).mapped(memory)
    found = bound_of(image, "f")
    assert found.bound == bound
    assert (S3.of() in found.assumed) == assumed
    assert ("S3" in found.explained) == assumed
    if memory is WINDOWS and bound is not None:
        assert executions(image, "f", []) == bound


def counter(name: str, random: Random) -> str:
    """A loop over a counter in memory or a frame, with stores by other names in it and before."""
    place = random.choice([HOME + 8, PLAIN + 8, LATER])
    stack = random.random() < 0.4
    lines = [f"{name}:"]
    if stack:
        lines.append(f"ldr sp, ={random.choice([HOME, PLAIN]) + 16}; sub sp, sp, #8")
    where = "[sp]" if stack else "[r4]"
    lines += [f"ldr r4, ={place}", f"mov r1, #{random.randrange(2, 9)}", f"str r1, {where}"]

    def store() -> str:
        window = random.choice([HOME, PLAIN, LATER])
        offset = random.choice([4, 8, 8, 12]) - (8 if window == LATER else 0)
        address, value = window + max(offset, 0), random.randrange(2, 30)
        if random.random() < 0.3:
            indexed = f"and r3, r0, #{random.choice([1, 3])}; str r2, [r5, r3, lsl #2]"
            return f"ldr r5, ={address}; mov r2, #{value}; {indexed}"
        return f"ldr r5, ={address}; mov r2, #{value}; str{random.choice(['', '', 'b'])} r2, [r5]"

    lines += [store() for _ in range(random.randrange(2))]
    lines.append(f"{name}_loop: ldr r1, {where}; sub r1, r1, #1; str r1, {where}")
    if random.random() < 0.4:
        lines.append(store())
    lines += ["cmp r1, #0", f"bgt {name}_loop", "bx lr", ".ltorg"]
    return "\n".join(lines)


@pytest.mark.slow("NuSMV proves each bound")
def test_no_bound_is_below_an_execution() -> None:
    """Held: a store by one name did not reach the slice of a loop that loads by another."""
    random = Random(18)
    names = [f"f{i}" for i in range(cases(6))]
    image = loaded("\n".join(counter(name, random) for name in names), names).mapped(WINDOWS)
    bounded = 0
    for name in names:
        found = bound_of(image, name)
        counts = [executions(image, name, [argument]) for argument in range(4)]
        if found.bound is not None:
            assert all(count is not None and count <= found.bound for count in counts), name
            assert not found.exact or found.bound in counts, name
            bounded += 1
    assert bounded > cases(3)
