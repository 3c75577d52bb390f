"""The oracle: run a function under the interpreter, and count header executions per entry."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from loopbounds.bounds import Progress, bound_loops, bounds_by_counting
from loopbounds.budgets.budget import Budget
from loopbounds.execution.concrete import concrete_execution
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.arm.insn import LR, PC, SP
from quoll.extraction.extract import extract
from quoll.facts.located import NO_FACTS, locate
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.image.memory_map import NO_MAP, MemoryMap
from quoll.inlining.expand import expand
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.quoll.building import address

__all__ = ["Program", "load"]

RETURN = 0xFFFF_0000
STACK = 0x0200_0000
STEPS = 20_000


class Program:
    """A function of an ELF: its graph, its loop bounds, and its executions."""

    def __init__(
        self, path: Path, function: str, *, from_reset: bool = False, memory: MemoryMap = NO_MAP
    ) -> None:
        image = Image.load(path).mapped(memory)
        self.entry = address(image, function)
        if from_reset:
            image = image.starting_with(image.loaded_in_place())
        while True:
            whole = expand(extract(image, [self.entry]), self.entry, image)
            self.values: ValueResults = analyse(whole, image, starts=from_reset)
            if not from_reset or not self.values.changed:
                break
            image = image.changing(self.values.changed)
        self.image, self.graph, self._from_reset = image, whole, from_reset
        self._insns = {i.addr: i for n in whole.nodes for i in n.block.insns}
        self._content = {
            segment.addr + offset: byte
            for segment in image.segments
            for offset, byte in enumerate(segment.data)
        }

    def bounds(
        self,
        facts: Facts = NO_FACTS,
        options: BoundOptions | None = None,
        progress: Progress | None = None,
        called: bool = False,
    ) -> tuple[LoopBound, ...]:
        """Of every loop, with value analysis."""
        located = locate(facts, self.image)
        execution = self.execution() if self._from_reset and not called else None
        if execution is not None:
            return bounds_by_counting(self.graph, self.image, located, execution)
        options = options or BoundOptions(Budget(seconds=60), workers=1)
        return bound_loops(
            self.graph, self.image, self.values, located, options, progress, called=called
        )

    def execution(self) -> ExecutionCounts | None:
        """The only one, if memory as loaded decides it."""
        return concrete_execution(self.graph, self.image, self.values, NO_FACTS)

    def counts(
        self,
        arguments: tuple[int, ...],
        background: Callable[[int], int] = lambda addr: 0,
        steps: int = STEPS,
    ) -> Mapping[int, int]:
        """Most header executions per entry, by header address, in the first steps.

        Without calls a context is a function, so that addresses tell nodes apart.
        """
        bodies = self._bodies()
        running = dict.fromkeys(bodies, 0)
        most = dict.fromkeys(bodies, 0)
        for at in self._pcs(arguments, background, steps):
            for header, body in bodies.items():
                if at not in body:
                    running[header] = 0
                elif at == header:
                    running[header] += 1
                    most[header] = max(most[header], running[header])
        return most

    def _bodies(self) -> dict[int, set[int]]:
        """The instructions of each loop, by header address."""
        return {
            self.graph.nodes[loop.header].block.addr: {
                insn.addr for n in loop.nodes for insn in self.graph.nodes[n].block.insns
            }
            for loop in self.graph.loops
        }

    def fewest(
        self, arguments: tuple[int, ...], background: Callable[[int], int] = lambda addr: 0
    ) -> Mapping[int, int]:
        """Fewest header executions of an entry that is left, by header address."""
        bodies, found = self._bodies(), dict[int, int]()
        running = dict.fromkeys(bodies, 0)
        for at in self._pcs(arguments, background):
            for header, body in bodies.items():
                if at in body:
                    running[header] += at == header
                elif running[header]:
                    found[header] = min(found.get(header, running[header]), running[header])
                    running[header] = 0
        return found

    def executed(
        self, arguments: tuple[int, ...], background: Callable[[int], int] = lambda addr: 0
    ) -> Counter[int]:
        """Executions of each instruction, by address."""
        return Counter(self._pcs(arguments, background))

    def totals(
        self, arguments: tuple[int, ...], background: Callable[[int], int] = lambda addr: 0
    ) -> Mapping[int, int]:
        """Most header executions of each inner loop per entry of the loop around it."""
        nodes, found = self.graph.nodes, dict[int, int]()
        around = {
            nodes[loop.header].block.addr: {
                insn.addr
                for n in self.graph.loops[loop.parent].nodes
                for insn in nodes[n].block.insns
            }
            for loop in self.graph.loops
            if loop.parent is not None
        }
        running = dict.fromkeys(around, 0)
        for at in self._pcs(arguments, background):
            for header, body in around.items():
                running[header] = running[header] + (at == header) if at in body else 0
                found[header] = max(found.get(header, 0), running[header])
        return found

    def path(
        self, arguments: tuple[int, ...], background: Callable[[int], int] = lambda addr: 0
    ) -> tuple[int, ...]:
        """The addresses of the executed instructions, in order."""
        return tuple(self._pcs(arguments, background))

    def _pcs(
        self, arguments: tuple[int, ...], background: Callable[[int], int], steps: int = STEPS
    ) -> Iterator[int]:
        chance = random.Random(1)  # unmodelled results are any word
        memory = ByteMemory(self._content, background)
        machine = ConcreteMachine(memory, oracle=lambda _: chance.getrandbits(32))
        machine.registers[: len(arguments)] = arguments
        machine.registers[SP], machine.registers[LR] = STACK, RETURN
        machine.registers[PC] = self.entry
        for _ in range(steps):
            at = machine.registers[PC]
            if at == RETURN:
                break
            yield at
            machine.step(self._insns[at])

    def header(self, bound: LoopBound) -> int:
        """Address of the header that a bound is for."""
        return self.graph.nodes[self.graph.loops[bound.loop].header].block.addr


def load(path: Path, function: str = "main", *, from_reset: bool = False) -> Program:
    """A function of the ELF at ``path``, which begins with memory as loaded if ``from_reset``."""
    return Program(path, function, from_reset=from_reset)
