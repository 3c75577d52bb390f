"""Addresses with loop bounds, against executions of random nests that pointers walk through."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.value_analysis.bounded_addresses import BoundedAddresses
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.values.executed import RETURN, STACK, Recorded
from tests.testing.values.sketched import analysed

CASES = cases(24)
POINTERS = ("r4", "r5", "r6")
COUNTERS = ("r7", "r8", "r9")


class _Writer:
    """A random nest: pointers advance, are set again, and copied; counters end at 0."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.labels = 0

    def program(self) -> str:
        text = ["main:", "push {r4-r11, lr}", *(f"ldr {p}, =0x2000{i}000" for i, p in
                enumerate(POINTERS)), "mov r10, #0", "mov r11, #0"]  # fmt: skip
        text += self.body(0) + self.loop(0) + self.loop(0)
        return "\n".join([*text, "pop {r4-r11, pc}", ".ltorg"])

    def loop(self, depth: int) -> list[str]:
        counter, label = COUNTERS[depth], self.label()
        start = [f"and {counter}, r{self.random.randrange(3)}, #7", f"add {counter}, {counter}, #1"]
        if self.random.random() < 0.6:
            start = [f"mov {counter}, #{self.random.randint(1, 9)}"]
        body = self.body(depth)
        if depth < 2 and self.random.random() < 0.7:
            body += self.loop(depth + 1) + self.body(depth)
        leave = []
        if self.random.random() < 0.2:
            leave = ["tst r0, #3", f"beq {label}_out"]
        ends = [f"subs {counter}, {counter}, #1", f"bne {label}", f"{label}_out:"]
        return [*start, f"{label}:", *body, *leave, *ends]

    def body(self, depth: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        p, q = self.random.choice(POINTERS), self.random.choice(POINTERS)
        step = 4 * self.random.choice([0, 1, 1, 1, 2, 3, 16, -1, -2])
        sign = "add" if step >= 0 else "sub"
        label = self.label()
        match self.random.randrange(10):
            case 0 | 1:
                return [f"ldr r3, [{p}, #{4 * self.random.randrange(4)}]", "eor r0, r0, r3"]
            case 2 | 3:
                return [f"ldr r3, [{p}], #{step}", "add r0, r0, r3"]
            case 4:
                return [f"{sign} {p}, {p}, #{abs(step)}"]
            case 5:
                return [
                    f"tst r{self.random.randrange(3)}, #1", f"beq {label}",
                    f"{sign} {p}, {p}, #{abs(step)}", f"{label}:",
                ]  # fmt: skip
            case 6:
                return [f"{sign} {p}, {q}, #{abs(step)}"]
            case 7:
                return ["add r10, r10, #1", f"ldr r3, [{p}, r10, lsl #2]"]
            case 8:
                return ["sub r11, r11, #1", f"ldr r3, [{p}, -r11, lsl #2]"]
            case _:
                return [f"ldr {p}, =0x200{depth}0000"]

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"


@dataclass
class Executed:
    """The nodes passed, most executions of headers per entry, and the addresses of accesses."""

    most: Counter[int] = field(default_factory=Counter)
    accesses: set[tuple[int, int, int]] = field(default_factory=set)


def execute(image: Image, graph: Supergraph, arguments: list[int], ran: Executed) -> None:
    memory = Recorded(ByteMemory(background=lambda addr: (image.read(addr, 1) or b"\7")[0]))
    machine = ConcreteMachine(memory, lambda op: 0)
    machine.registers[:15] = [*arguments, *range(100, 112)]
    machine.registers[13:15] = [STACK, RETURN]
    node, source, runs = graph.entry, -1, Counter[int]()
    while True:
        for loop in graph.loops:
            if node == loop.header:
                runs[loop.index] = runs[loop.index] + 1 if source in loop.nodes else 1
                ran.most[loop.index] = max(ran.most[loop.index], runs[loop.index])
        for index, insn in enumerate(graph.nodes[node].block.insns):
            memory.addresses.clear()
            machine.step(insn)
            if memory.addresses:
                ran.accesses.add((node, index, min(memory.addresses)))
        pc = machine.registers[15]
        if pc == RETURN:
            return
        following = {graph.edges[e].dst for e in graph.successors[node]}
        source, (node,) = node, [n for n in following if graph.nodes[n].block.addr == pc]


@pytest.mark.slow("executes random programs")
def test_addresses_are_within_those_of_the_bounds() -> None:
    narrowed = tight = 0
    for seed in range(CASES):
        random = Random(seed)
        image, graph, values = analysed(_Writer(random).program())
        ran = Executed()
        for _ in range(4):
            execute(image, graph, [random.randrange(1 << 32) for _ in range(3)], ran)
        found = BoundedAddresses(graph, values, ran.most)
        seen: dict[tuple[int, int], set[int]] = {}
        for node, insn, address in ran.accesses:
            now, before = found.access(node, insn), values.access(node, insn)
            assert now is not None
            assert before is not None
            assert address in now, (seed, hex(address), str(now))
            if now != before:
                seen.setdefault((node, insn), set()).add(address)
        narrowed += len(seen)
        tight += sum(
            (now := found.access(*at)) is not None and (now.low, now.high) == (min(of), max(of))
            for at, of in seen.items()
        )
    assert narrowed > CASES
    assert tight > CASES // 3


WALK = """
main: ldr r1, =0x20001000
    mov r3, #0
l1: mov r2, r1
l2: ldr r0, [r2], #4
    subs r4, r4, #1
    bne l2
    add r1, r1, #32
    subs r5, r5, #1
    bne l1
    bx lr
    .ltorg
"""


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ({0x20: 5, 0x10: 3}, ValueSet(0x20001000, 0x20001000 + 4 * 4 + 2 * 32, 4)),
        ({0x20: 5}, ANY),
        ({0x10: 3}, ANY),
        ({}, ANY),
    ],
)
def test_a_nest_needs_the_bounds_of_its_loops(rounds: dict[int, int], expected: ValueSet) -> None:
    """0x20: the inner loop."""
    _, graph, values = analysed(WALK)
    inner = min(graph.loops, key=lambda loop: len(loop.nodes))
    named = {loop.index: 0x20 if loop is inner else 0x10 for loop in graph.loops}
    bounds = {loop: rounds[name] for loop, name in named.items() if name in rounds}
    found = BoundedAddresses(graph, values, bounds)
    node = inner.header
    access = found.access(node, 0)
    assert access is not None
    assert found.gain == (expected != ANY)
    if expected != ANY:
        assert access == expected


DOWN = """
main: ldr r2, =0x20001000
    mov r1, #0
l1: ldr r3, [r2, -r1, lsl #2]
    add r3, r3, r0
    str r3, [r2, -r1, lsl #2]
    sub r1, r1, #1
    cmn r1, #12
    bne l1
    bx lr
    .ltorg
"""


def test_a_word_that_counts_down_from_zero() -> None:
    """As Clang walks an array: no interval of unsigned words holds its index."""
    _, graph, values = analysed(DOWN)
    [loop] = graph.loops
    found = BoundedAddresses(graph, values, {loop.index: 12})
    for insn in (0, 2):
        before = values.access(loop.header, insn)
        assert before is not None
        assert before.high - before.low > 1 << 31
        assert found.access(loop.header, insn) == ValueSet(0x20001000, 0x20001000 + 4 * 11, 4)
