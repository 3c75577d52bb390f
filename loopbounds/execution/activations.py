"""The depth of calls in one execution of an entry: activations of each function at a time.

The execution follows the blocks of functions, before contexts exist. A tail call adds an
activation, as it adds a context; the next return pops both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopbounds.execution.generated_code import NOWHERE
from loopbounds.execution.machine import ConcreteMachine, longest_execution
from loopbounds.execution.value import Undecided
from quoll.arm.insn import PC
from quoll.assumptions import Assumption
from quoll.cfg.cfg import Block, Cfg, Program
from quoll.cfg.least_instructions import issued
from quoll.image.image import Image

__all__ = ["ActivationCounts", "activated", "deepest"]


@dataclass(frozen=True, slots=True)
class ActivationCounts:
    """``most`` activations at a time, by entry of the function, in so many ``instructions``.

    ``ended``: the execution reached the end of the path. ``issued``: the instructions of whole
    blocks without those that a core may fold.
    """

    most: Mapping[int, int]
    instructions: int
    ended: bool
    assumed: tuple[Assumption, ...]
    issued: int


def activated(program: Program, entry: int, image: Image) -> ActivationCounts | None:
    """The activations of the concrete execution from ``entry``; None if there may be several.

    Raises ControlFlowError for an instruction without semantics.
    """
    if program.guidance.replaced:
        return None
    found = deepest(program, entry, image, (None,) * PC, longest_execution(image))
    return found if found.ended else None


def deepest(
    program: Program,
    entry: int,
    image: Image,
    registers: Sequence[int | None],
    steps: int,
    *,
    forgets: bool = False,
) -> ActivationCounts:
    """The activations of an execution that starts with these general registers; None: any word.

    It stops where an unknown word decides a branch, or after ``steps`` instructions; unless it
    ``forgets`` memory there, also at a store of unknown address. Raises ControlFlowError for an
    instruction without semantics.
    """
    machine = ConcreteMachine(image.changing(image.as_loaded), registers, forgets=forgets)
    calls = _Calls(program, entry, machine)
    return calls.followed(steps)


@dataclass(frozen=True, slots=True)
class _Frame:
    """An activation, with the block to which its call returns; None after a tail call."""

    function: Cfg
    places: tuple[int, ...]


class _Calls:
    def __init__(self, program: Program, entry: int, machine: ConcreteMachine) -> None:
        self._functions = program.functions
        self._machine = machine
        self._frames: list[_Frame] = []
        self._active: Counter[int] = Counter()
        self._most: Counter[int] = Counter()
        self._issued = 0
        self._begin(entry & ~1)

    def followed(self, steps: int) -> ActivationCounts:
        block: Block | None = self._cfg.blocks[0]
        machine = self._machine
        try:
            while block is not None and machine.executed <= steps:
                target = machine.execute(block)
                self._issued += issued(block.insns)
                block = self._after(block, target)
        except Undecided:
            pass
        ended = block is None
        return ActivationCounts(self._most, machine.executed, ended, machine.assumed, self._issued)

    def _begin(self, entry: int) -> Block:
        self._cfg = self._functions[entry]
        self._active[entry] += 1
        self._most[entry] = max(self._most[entry], self._active[entry])
        return self._cfg.blocks[0]

    def _after(self, block: Block, target: int) -> Block | None:
        """The block at ``target``; None where the path ends."""
        if block.passes:
            raise Undecided("a call is passed over")
        if target in block.calls:
            self._frames.append(_Frame(self._cfg, () if block.tail else block.returned_to))
            return self._begin(target)
        inside = [self._cfg.blocks[edge.dst] for edge in self._cfg.successors(block.index)]
        ways = {*block.calls, *(to.addr for to in inside)}
        if target == NOWHERE and not ways <= {block.end}:
            raise Undecided("it may go one of several ways")
        found = [to for to in inside if to.addr == target]
        if len(found) == 1:
            return found[0]
        if block.exits and (target == NOWHERE or not inside):
            return None
        if block.returns:
            return self._return(target)
        raise Undecided("where it goes is not known")

    def _return(self, target: int) -> Block | None:
        while self._frames:
            frame = self._frames.pop()
            self._active[self._cfg.entry] -= 1
            self._cfg = frame.function
            back = [b for b in self._cfg.blocks if b.addr == target and target in frame.places]
            if back:
                return back[0]
            if frame.places:
                raise Undecided("it returns to another place than its call")
        if target != NOWHERE:
            raise Undecided("it returns to a place without a call")
        return None
