"""Segments against executions in which an interrupt arrives after any test (rule 21).

Random programs test for interrupts in every way a kernel may. Whenever the interrupt arrives, the
execution from the last start of a path on is a path of that segment.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest

from quoll.abstract_domain.value_domain import ValueDomain
from quoll.errors import ControlFlowError
from quoll.extraction.extract import extract
from quoll.graph.fixpoint import AscendingIteration
from quoll.image.image import Image
from quoll.inlining.expand import expand, without_edges
from quoll.preemption.pending import find_pending_tests
from quoll.preemption.predicate import PendingPredicate, non_zero
from quoll.preemption.segments import PendingSegment, segments
from quoll.value_analysis.context_domain import ContextDomain
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build
from tests.testing.quoll.sketch import assemble
from tests.testing.values.preemptible import HIGH, LEVELS, LOW
from tests.testing.values.preemptible import program as preemptible

STACK, RETURN = 0x4000_0000, 0xF000_0000
STEPS = 20_000
REGISTERS = PendingPredicate((non_zero((LOW, HIGH)),))


@dataclass(frozen=True)
class Analysed:
    image: Image
    values: ValueResults
    segments: tuple[PendingSegment, ...]


def analysed(image: Image) -> Analysed:
    symbol = image.symbol("main")
    assert symbol is not None
    program = extract(image, [symbol.addr])
    plain = expand(program, symbol.addr, image)
    first = analyse(plain, image)
    graph = without_edges(plain, first.dead_edges, image)
    values = first.within(graph) or analyse(graph, image)
    tests = find_pending_tests(values, REGISTERS)
    found = () if tests is None else tuple(segments(values, tests, image))
    return Analysed(image, values, found)


class Controller:
    """Memory with an interrupt controller: an interrupt arrives before read number ``arrives``."""

    def __init__(self, image: Image, arrives: int, line: int) -> None:
        self.memory = ByteMemory(background=lambda addr: (image.read(addr, 1) or b"\0")[0])
        self.arrives, self.line, self.reads = arrives, line, 0

    def load(self, addr: int, size: int) -> int:
        if addr not in (LOW, HIGH):
            return self.memory.load(addr, size)
        self.reads += 1
        return 0x40 if self.reads > self.arrives and addr == self.line else 0

    def store(self, addr: int, size: int, value: int) -> None:
        self.memory.store(addr, size, value)


def run(subject: Analysed, controller: Controller, a: int, b: int) -> tuple[list[int], list[int]]:
    """The nodes executed, and how many reads there were before each."""
    graph = subject.values.graph
    machine = ConcreteMachine(controller, lambda op: 0)
    machine.registers[:2] = [a, b]
    machine.registers[13:15] = [STACK, RETURN]
    node, nodes, before = graph.entry, [graph.entry], [0]
    for _ in range(STEPS):
        for insn in graph.nodes[node].block.insns:
            machine.step(insn)
        if machine.registers[15] == RETURN & ~3:
            return nodes, before
        node = next(
            graph.edges[e].dst
            for e in graph.successors[node]
            if graph.nodes[graph.edges[e].dst].block.addr == machine.registers[15]
        )
        nodes.append(node)
        before.append(controller.reads)
    raise AssertionError("the program does not end")


def is_path(segment: PendingSegment, nodes: list[int]) -> bool:
    graph = segment.graph
    if segment.nodes[graph.entry] != nodes[0]:
        return False
    current = {graph.entry}
    for node in nodes[1:]:
        following = {graph.edges[e].dst for n in current for e in graph.successors[n]}
        current = {n for n in following if segment.nodes[n] == node}
    return bool(current.intersection(graph.exits))


def check(subject: Analysed, rng: random.Random) -> Counter[str]:
    counts: Counter[str] = Counter()
    for arrives in range(8):
        a, b = rng.randrange(32), rng.randrange(32)
        controller = Controller(subject.image, arrives, rng.choice([LOW, HIGH]))
        nodes, before = run(subject, controller, a, b)
        starts = [0] + [i for i in range(len(nodes)) if i + 1 < len(nodes) and
                        before[i] < before[i + 1] and before[i] < arrives]  # fmt: skip
        fitting = [
            (start, segment.start)
            for start in starts
            for segment in subject.segments
            if is_path(segment, nodes[start:])
        ]
        assert fitting, (arrives, a, b)
        counts["starts at the entry"] += fitting == [(0, None)]
        counts["starts at a read"] += any(place is not None for _, place in fitting)
        counts["seen"] += controller.reads > arrives
    return counts


@cache
def program(seed: int) -> Image:
    level = LEVELS[seed % len(LEVELS)]
    return Image.load(build(preemptible(seed), "-w", optimise=level, link=("-lgcc",)))


@pytest.mark.slow("many random programs")
def test_what_runs_from_the_arrival_on_is_a_path_of_a_segment() -> None:
    counts: Counter[str] = Counter()
    for seed in range(cases(8)):
        try:
            subject = analysed(program(seed))
        except ControlFlowError:
            counts["refused"] += 1
            continue
        if subject.segments:
            counts += check(subject, random.Random(seed))
    assert counts["starts at a read"] > cases(6)
    assert counts["starts at the entry"] > cases(3)
    assert counts["seen"] > cases(6)
    assert counts["refused"] < cases(3), counts


@pytest.mark.slow("many random programs")
def test_the_tests_found_are_those_found_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an assumption decides nothing, results without it are reused."""
    used = 0
    for seed in range(cases(6)):
        try:
            subject = analysed(program(seed))
            parallel = find_pending_tests(subject.values, REGISTERS, parallel=True)
            found = find_pending_tests(subject.values, REGISTERS)
            assert found == parallel
            with monkeypatch.context() as patch:
                patch.setattr(ContextDomain, "outcome", ValueDomain.outcome)
                patch.setattr(
                    AscendingIteration, "_recognised", lambda self, node: self.states[node]
                )
                assert find_pending_tests(subject.values, REGISTERS) == found
                fresh = analysed(program(seed))
        except ControlFlowError:
            continue
        assert fresh.segments == subject.segments
        used += bool(subject.segments)
    assert used >= cases(2)


PREEMPTIBLE = f"""
main:   push {{r4, r5, lr}}
        mov  r4, #100
        ldr  r5, ={LOW:#x}
chunk:  subs r4, r4, #1
        beq  done
        bl   clear
test:   ldr  r2, [r5]
        ldr  r3, [r5, #4]
        orrs r2, r2, r3
        beq  chunk
done:   pop  {{r4, r5, pc}}
clear:  mov  r0, #8
word:   subs r0, r0, #1
        bne  word
        bx   lr
"""


def test_a_loop_with_a_preemption_point_does_not_go_round() -> None:
    subject = analysed(assemble(PREEMPTIBLE))
    labels = {name: subject.image.symbol(name) for name in ("test", "word", "chunk")}
    at = {name: symbol.addr for name, symbol in labels.items() if symbol is not None}
    assert [s.start for s in subject.segments] == [None, at["test"]]
    headers = [
        {s.graph.nodes[loop.header].block.addr for loop in s.graph.loops} for s in subject.segments
    ]
    assert headers == [{at["word"]}, {at["word"]}]


def test_a_test_in_a_loop_of_its_own_is_refused() -> None:
    read = "ldr  r3, [r5, #4]"
    polling = PREEMPTIBLE.replace(read, read + "\n mov r1, #2\nagain: subs r1, r1, #1\n bne again")
    with pytest.raises(ControlFlowError, match="runs a loop"):
        analysed(assemble(polling))
