"""The words of its callers that a function may read: registers, and the stack above its frame.

Registers: liveness at entry, by backward data flow over each function (Aho, Lam, Sethi, Ullman,
"Compilers", section 9.2.5). An instruction that may not execute kills nothing, nor does a call: the
callee may leave any register as it is. Instructions that are no plain operations, jumps or calls
read all registers. The stack: a callee that reads k bytes above its frame reads k less the depth of
our frame above ours. Both are least fixed points over the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Block, Cfg, Program
from quoll.facts.contract import ANY_ARGUMENTS, ReadArguments, contract_of_any
from quoll.indirect.stack_frames import bytes_read_above

__all__ = ["read_arguments"]

NOTHING = ReadArguments(frozenset(), 0)
PLAIN = frozenset(
    {
        ControlFlow.NEXT,
        ControlFlow.JUMP,
        ControlFlow.CALL,
        ControlFlow.INDIRECT,
        ControlFlow.INDIRECT_CALL,
        ControlFlow.WAIT,
    }
)


def read_arguments(program: Program) -> Mapping[int, ReadArguments]:
    """The words of its callers that each function of ``program``, or a callee, may read."""
    read = dict.fromkeys(program.functions, NOTHING)
    functions = [_Function.of(program, entry) for entry in program.functions]
    changed = True
    while changed:
        changed = False
        for function in functions:
            found = function.read(read)
            if found != read[function.cfg.entry]:
                read[function.cfg.entry], changed = found, True
    return read


@dataclass(frozen=True, slots=True)
class _Function:
    """``above``: bytes above its frame that it reads by itself; ``depths``: of its frame."""

    cfg: Cfg
    above: int
    depths: Mapping[int, int]  # by address of the call

    @staticmethod
    def of(program: Program, entry: int) -> _Function:
        cfg, frames = program.functions[entry], program.frames.get(entry, {})
        above = bytes_read_above(cfg, lambda callees: contract_of_any(program.left, callees))
        return _Function(cfg, above, {call: frame.depth for call, frame in frames.items()})

    def read(self, known: Mapping[int, ReadArguments]) -> ReadArguments:
        """The words it reads, under those that its callees do."""
        callees = [_of_callees(block, known) for block in self.cfg.blocks]
        above = [self.above]
        for block, read in zip(self.cfg.blocks, callees, strict=True):
            depth = self.depths.get(block.last.addr)
            above.append(read.stack if depth is None else max(0, read.stack - depth))
        return ReadArguments(_live_at_entry(self.cfg, callees), max(above))


def _of_callees(block: Block, known: Mapping[int, ReadArguments]) -> ReadArguments:
    """The words that the callees of ``block`` may read."""
    if block.passes:
        return ANY_ARGUMENTS
    return ReadArguments.of_any(known.get(callee, ANY_ARGUMENTS) for callee in block.calls)


def _live_at_entry(cfg: Cfg, callees: list[ReadArguments]) -> frozenset[int]:
    live = [frozenset[int]()] * len(cfg.blocks)
    after: list[list[int]] = [[] for _ in cfg.blocks]
    for edge in cfg.edges:
        after[edge.src].append(edge.dst)
    changed = True
    while changed:
        changed = False
        for block in reversed(cfg.blocks):
            later = callees[block.index].registers.union(*(live[b] for b in after[block.index]))
            found = _before(block, later)
            if found != live[block.index]:
                live[block.index], changed = found, True
    return live[0]


def _before(block: Block, live: frozenset[int]) -> frozenset[int]:
    """The registers that are live before ``block``, of ``live`` after it."""
    for insn in reversed(block.insns):
        if insn.flow not in PLAIN:
            return ANY_ARGUMENTS.registers
        live = (live if insn.conditional else live - insn.writes) | insn.reads
    return live
