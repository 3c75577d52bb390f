"""Two loads of one unknown address: one word, if no store in between may hit it (S7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.effects import LoadEffect
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.pointed_words import differ_by_remainder
from loopbounds.slicing.stacks import StackSpans
from quoll import assumptions
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.image.memory_map import GRANULE
from quoll.inlining.expand import expand
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import analyse
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import address, build

S7 = assumptions.S7.of()
CHECKED = """.global main
main: push {{r4, lr}}
  mov r4, r0
  ldr r3, [r4, #4]
  and r3, r3, #31
  cmp r3, #9
  bhi out
  {between}
  ldr r3, [r4, #4]
  and r3, r3, #31
  mov r0, #1
  lsl r3, r0, r3
1: subs r3, r3, #1
  bne 1b
out: pop {{r4, pc}}
work: push {{r5, r6, r7, lr}}
  str r1, [sp, #-8]!
  add sp, sp, #8
  pop {{r5, r6, r7, pc}}
"""


@pytest.mark.slow("proves bounds")
@pytest.mark.parametrize(("between", "bound"), [("bl work", 512), ("str r1, [r2]", None)])
def test_a_size_that_was_checked_is_the_same_size(between: str, bound: int | None) -> None:
    code = load(build(CHECKED.format(between=between), language="asm"))
    last = code.bounds(options=BoundOptions(Budget(seconds=10)))[-1]
    assert (last.bound, S7 in last.assumed) == (bound, bound is not None)


@pytest.mark.parametrize(
    ("between", "same"),
    [
        ("str r1, [r4, #4]", True),
        ("str r1, [r4]", False),
        ("strb r1, [r4, #3]", False),
        ("str r1, [r2]", False),
        ("mov r2, #4\n2: push {r2}\n pop {r1}\n subs r2, r2, #1\n bne 2b", True),
        ("add r2, r4, #64\n2: str r1, [r2, #-4]!\n subs r1, r1, #1\n bne 2b", False),
        ("2: ldr r3, [r5]\n str r1, [r3]\n subs r2, r2, #1\n bne 2b", False),
        ("cmp r1, #0\n streq r1, [r4, #8]", True),
        ("cmp r1, #0\n beq 2f\n str r1, [r4]\n2:", False),
    ],
)
def test_a_store_in_between_may_hit_the_word(between: str, same: bool) -> None:
    assert is_found(between) is same


State = dict[str, int]
Memory = dict[int, int]
Steps = Callable[[State, Memory], None]
POINTERS = ("r4", "r5", "r6")
NEAR = range(-8, 12, 4)


@dataclass(slots=True)
class Drawn:
    """Random code with its meaning; each store writes a word of its own."""

    random: Random
    count: int = 0

    def steps(self, depth: int) -> tuple[str, Steps]:
        drawn = [self.step(depth) for _ in range(self.random.randint(1, 3))]

        def run(state: State, memory: Memory) -> None:
            for _, step in drawn:
                step(state, memory)

        return "\n".join(text for text, _ in drawn), run

    def step(self, depth: int) -> tuple[str, Steps]:
        kinds = [self.store, self.store, self.frame, self.moved, self.derived]
        kinds += [self.branch, self.loop] if depth else []
        kind = self.random.choice(kinds)
        self.count += 1
        return kind(depth)

    def store(self, depth: int) -> tuple[str, Steps]:
        pointer, offset = self.random.choice(POINTERS), self.random.choice(NEAR)
        word = self.count

        def run(state: State, memory: Memory) -> None:
            memory[state[pointer] + offset] = word

        return f"mov r7, #{word}\nstr r7, [{pointer}, #{offset}]", run

    def frame(self, depth: int) -> tuple[str, Steps]:
        text = self.random.choice(["push {r7, r8}\npop {r7, r10}", "str r7, [sp, #4]"])
        return text, lambda state, memory: None

    def moved(self, depth: int) -> tuple[str, Steps]:
        pointer, offset = self.random.choice(POINTERS[1:]), self.random.choice((-4, 4))

        def run(state: State, memory: Memory) -> None:
            state[pointer] += offset

        return f"add {pointer}, {pointer}, #{offset}", run

    def derived(self, depth: int) -> tuple[str, Steps]:
        pointer, offset = self.random.choice(POINTERS[1:]), self.random.choice(NEAR)

        def run(state: State, memory: Memory) -> None:
            state[pointer] = state["r4"] + offset

        return f"add {pointer}, r4, #{offset}", run

    def branch(self, depth: int) -> tuple[str, Steps]:
        bit, label = 1 << self.random.randrange(2), f"l{self.count}"
        text, inner = self.steps(depth - 1)

        def run(state: State, memory: Memory) -> None:
            if state["r8"] & bit:
                inner(state, memory)

        return f"tst r8, #{bit}\nbeq {label}\n{text}\n{label}:", run

    def loop(self, depth: int) -> tuple[str, Steps]:
        label = f"l{self.count}"
        text, inner = self.steps(0)

        def run(state: State, memory: Memory) -> None:
            for _ in range(2):
                inner(state, memory)

        body = f"{text}\nsubs r9, r9, #1\nbne {label}"
        if self.random.randrange(2):  # the last iteration leaves before the body
            body = f"subs r9, r9, #1\nbmi {label}e\n{text}\nb {label}\n{label}e:"
        return f"mov r9, #2\n{label}:\n{body}", run


def starts() -> Iterator[State]:
    """The pointers at any small distances, with all decisions."""
    for near, other, bits in product(NEAR, NEAR, range(4)):
        yield {"r4": 0, "r5": near, "r6": other, "r8": bits}


def is_same_word(run: Steps) -> bool:
    """Whether no execution changes the word that r4 points to."""
    for state in starts():
        memory: Memory = {}
        run(state, memory)
        if 0 in memory:
            return False
    return True


def is_found(text: str) -> bool:
    """Whether the second load of the program is found to read the word of the first."""
    code = f".global main\nmain: push {{r4-r11, lr}}\nldr r0, [r4]\n{text}\n1: ldr r1, [r4]\npop "
    image = Image.load(build(f"{code}{{r4-r11, pc}}\n", language="asm"))
    entry = address(image, "main")
    graph = expand(extract(image, [entry]), entry, image)
    loops = GraphCode(
        graph,
        AcyclicGraph.of(graph),
        image,
        analyse(graph, image),
        StackSpans.of((node.block for node in graph.nodes), image),
        bounds={loop.index: 2 for loop in graph.loops},
    )
    whole = GatedSsa(replace(loops, pointed=True)).whole
    first, last = (whole.memory.loaded(*found) for found in _loads(loops))
    return first is last


def _loads(code: GraphCode) -> list[tuple[int, LoadEffect]]:
    """The loads through r4, by address."""
    found = [
        (node.block.insns[load.insn].addr, index, load)
        for index, node in enumerate(code.graph.nodes)
        for load in code.effect(index).loads.values()
        if node.block.insns[load.insn].text.endswith("[r4]")
    ]
    return [(index, load) for _, index, load in sorted(found, key=lambda one: one[0])]


@pytest.mark.slow("compiles random programs")
def test_it_is_the_word_of_every_execution() -> None:
    random, found, changed = Random(7), 0, 0
    for _ in range(cases(80)):
        text, run = Drawn(random).steps(2)
        same, claimed = is_same_word(run), is_found(text)
        assert same or not claimed, text
        found, changed = found + claimed, changed + (not same)
    assert min(found, changed) > 3


def offsets(places: ValueSet, size: int) -> set[int]:
    """The offsets in a page of all bytes of accesses to these places."""
    return {(place + byte) % GRANULE for place in places for byte in range(size)}


def test_places_that_differ_by_remainder_have_no_byte_in_common() -> None:
    random, apart = Random(3), 0
    for _ in range(3000):
        stride, other = (random.choice((4, 8, 12, 16, 24, 64, 1024)) for _ in range(2))
        low, beside = random.randrange(64), random.randrange(64)
        places = ValueSet(low, low + stride * random.randrange(1, 40), stride)
        others = ValueSet(beside, beside + other * random.randrange(1, 40), other)
        size, wide = (random.choice((1, 2, 4, 8)) for _ in range(2))
        if differ_by_remainder(places, size, others, wide):
            apart += 1
            assert offsets(places, size).isdisjoint(offsets(others, wide)), (places, others)
    assert apart > 300
