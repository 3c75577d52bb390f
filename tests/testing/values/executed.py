"""The values of whole programs, compared with executions by the interpreter."""

from __future__ import annotations

from collections import Counter
from functools import cache

from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.value_analysis.value_results import EntryRegisters, ValueResults, analyse
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.quoll.building import build

STACK = 0x4000_0000
RETURN = 0xF000_0000
STEPS = 60_000


class Recorded:
    """Memory that notes the addresses accessed by the current instruction."""

    def __init__(self, memory: ByteMemory) -> None:
        self.memory = memory
        self.addresses: list[int] = []

    def load(self, addr: int, size: int) -> int:
        self.addresses.append(addr)
        return self.memory.load(addr, size)

    def store(self, addr: int, size: int, value: int) -> None:
        self.addresses.append(addr)
        self.memory.store(addr, size, value)


@cache
def analysed(
    source: str, thumb: bool, optimise: str, known_stack: bool, from_reset: bool = False
) -> tuple[Image, Supergraph, ValueResults]:
    cpu = "cortex-a8" if thumb else "arm1136jf-s"
    elf = build(source, "-w", thumb=thumb, cpu=cpu, optimise=optimise, link=("-lgcc",))
    image = Image.load(elf)
    symbol = image.symbol("main")
    assert symbol is not None
    entry = EntryRegisters(0x13, {13: ValueSet.of(STACK)}) if known_stack else EntryRegisters()
    if from_reset:
        image = image.starting_with(image.loaded_in_place())
    while True:
        program = extract(image, [symbol.addr])
        graph = expand(program, symbol.addr & ~1, image)
        values = analyse(graph, image, entry, starts=from_reset)
        if not from_reset or not values.changed:
            return image, graph, values
        image = image.changing(values.changed)


def walk(
    image: Image, graph: Supergraph, values: ValueResults, arguments: list[int]
) -> Counter[str]:
    """Execute, and compare at every node. Raises AssertionError at the first difference."""
    memory = Recorded(ByteMemory(background=lambda addr: (image.read(addr, 1) or b"\0")[0]))
    machine = ConcreteMachine(memory, lambda op: 0)
    machine.registers[:15] = [*arguments, *range(100, 113)]
    machine.registers[13:15] = [STACK, RETURN]
    machine.thumb = graph.nodes[graph.entry].block.insns[0].thumb
    node = graph.entry
    counts: Counter[str] = Counter()
    while counts["steps"] < STEPS:
        assert values.reached(node), node
        for register in range(15):
            possible = values.register(node, register)
            assert machine.registers[register] in possible, (node, register)
            counts["registers known"] += possible != ANY
        block = graph.nodes[node].block
        for index, insn in enumerate(block.insns):
            memory.addresses.clear()
            machine.step(insn)
            counts["steps"] += 1
            if memory.addresses:
                possible_addresses = values.access(node, index)
                assert possible_addresses is not None, hex(insn.addr)
                assert min(memory.addresses) in possible_addresses, hex(insn.addr)
                counts["accesses"] += 1
                counts["exact"] += possible_addresses.exact is not None
        pc = machine.registers[15]
        if pc == RETURN:
            return counts
        edges = [
            e for e in graph.successors[node] if graph.nodes[graph.edges[e].dst].block.addr == pc
        ]
        assert edges, hex(pc)
        assert not all(edge in values.dead_edges for edge in edges), hex(block.last.addr)
        (node,) = {graph.edges[edge].dst for edge in edges}
        counts["nodes"] += 1
    return counts
