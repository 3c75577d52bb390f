"""Strides of addresses in registers, against executions of random loops."""

from __future__ import annotations

from random import Random

import pytest

from quoll.abstract_domain.terms import MASK
from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.strides import address_stride, multiples
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.cache.graphs import pool
from tests.testing.harness.cases import cases
from tests.testing.values.executed import RETURN, STACK
from tests.testing.values.sketched import analysed

ADDRESS = 3  # the register with the address
INVALIDATE = f"mcr p15, 0, r{ADDRESS}, c7, c5, 1"
STEPS = 400


def loop(random: Random, depth: int) -> list[str]:
    """Words advance, most often once an iteration; an address is computed from them."""
    label, counter = f"l{random.randrange(1 << 30)}", f"r{7 + depth}"
    text = [f"and {counter}, r{random.randrange(3)}, #7", f"add {counter}, {counter}, #1"]
    text += [f"{label}:"]
    for word in random.sample(("r4", "r5", "r6"), 2):
        text += random.choice(
            [
                [f"add {word}, {word}, #{4 * random.randrange(1, 20)}"],
                [f"sub {word}, {word}, #32"],
                [f"tst r0, #1\n addeq {word}, {word}, #32"],
                [f"mov {word}, r{random.randrange(7)}"],
                [f"ldr {word}, [sp]"],
                [],
            ]
        )
    if depth < 1 and random.random() < 0.5:
        text += loop(random, depth + 1)
    a, b, n = random.choice("456"), random.choice("456"), random.randrange(6)
    text += random.choice(
        [
            [f"lsl r3, r{a}, #{n}"],
            [f"mov r3, r{a}"],
            [f"add r3, r{a}, r{b}, lsl #{n}"],
            [f"sub r3, r{a}, r{b}"],
            [f"lsl r12, r{a}, #{n}", "mvn r11, #3", f"sub r3, r12, r{b}", "add r3, r3, r11"],
            [f"movne r3, r{a}"],
            [f"lsr r3, r{a}, #2"],
        ]
    )
    text += [INVALIDATE, *random.choice([[], [f"b {label}n", f"{label}n:"]])]
    return [*text, f"subs {counter}, {counter}, #1", f"bne {label}"]


def innermost(graph: Supergraph, node: int) -> SuperLoop | None:
    around = [one for one in graph.loops if node in one.nodes]
    return min(around, key=lambda one: len(one.nodes), default=None)


@pytest.mark.slow("executes random programs")
def test_addresses_move_by_their_strides() -> None:
    known = several = 0
    number = cases(16)
    for seed in range(number):
        random = Random(seed)
        text = "\n".join(["main:", *loop(random, 0), *loop(random, 0), "bx lr"])
        _, graph, values = analysed(text)
        strides: dict[int, int | None] = {}
        memory = ByteMemory(background=lambda addr: addr * 7 & 255)
        machine = ConcreteMachine(memory, lambda op: 0)
        machine.registers[:15] = [random.randrange(1 << 32) for _ in range(15)]
        machine.registers[13:15] = [STACK, RETURN]
        node, last = graph.entry, dict[int, int]()  # the addresses in the loops around
        for _ in range(STEPS):
            for index, insn in enumerate(graph.nodes[node].block.insns):
                around = innermost(graph, node)
                if insn.mnemonic == "mcr" and around is not None:
                    found = address_stride(values, node, index, around.nodes)
                    strides[insn.addr] = found
                    now = machine.registers[ADDRESS]
                    if found is not None and node in last:
                        assert now - last[node] & MASK == found, (seed, hex(insn.addr))
                        several += 1
                    last[node] = now
                machine.step(insn)
            pc = machine.registers[15]
            if pc == RETURN:
                break
            (target,) = {
                n
                for e in graph.successors[node]
                if graph.nodes[n := graph.edges[e].dst].block.addr == pc
            }
            left = [one for one in graph.loops if node in one.nodes and target not in one.nodes]
            last = {n: a for n, a in last.items() if not any(n in one.nodes for one in left)}
            node = target
        known += sum(stride is not None for stride in strides.values())
    assert known > number // 2
    assert several > number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lsl r3, r4, #5\n", {4: 32}),
        ("add r3, r3, r4, lsl #2\n", {3: 1, 4: 4}),
        ("sub r3, r4, r4\n", {}),
        ("mov r3, #64\n", {}),
        ("rsb r3, r4, #0\n", {4: MASK}),
        ("lsl r3, r4, r5\n", None),
        ("lsleq r3, r4, #5\n", None),
        ("lsr r3, r4, #5\n", None),
        ("ldr r3, [r4]\n", None),
        ("add r4, r4, #32\nmov r3, r4\nldr r4, [r5]\n", {4: 1}),
    ],
)
def test_sums_of_registers(text: str, expected: dict[int, int] | None) -> None:
    assert multiples(pool(text), ADDRESS) == expected


def test_a_constant_word_does_not_move() -> None:
    """Its loop has other words that move."""
    _, graph, values = analysed(
        f"main: mov r3, #64\nl: {INVALIDATE}\nsubs r2, r2, #1\nbne l\nbx lr"
    )
    (around,) = graph.loops
    assert address_stride(values, around.header, 0, around.nodes) == 0
    assert values.register(around.header, ADDRESS) == ValueSet.of(64)
