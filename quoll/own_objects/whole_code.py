"""All code of an image by its mapping symbols: instructions, functions, and edges between them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import LR, PC, SP, AccessKind, Condition, ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.image.image import Image
from quoll.image.memory_map import Span

__all__ = ["WholeCode", "whole_code"]

LONGEST = 4  # bytes of an instruction
CALLEE_SAVED = frozenset((*range(4, 13), LR))  # with r12, which veneers and prologues use
BY_REGISTER = Operation.BRANCH_EXCHANGE, Operation.MOVE


@dataclass(frozen=True)
class WholeCode:
    """``insns`` by address; ``data``: spans of executable sections that hold no code."""

    insns: dict[int, Insn]
    data: tuple[Span, ...]
    starts: tuple[int, ...]  # of functions, ascending
    _members: dict[int, list[int]] = field(default_factory=dict)
    _after: dict[int, list[int]] = field(default_factory=dict)

    def function(self, addr: int) -> int:
        """The start of the function of an instruction; its own address in front of all."""
        at = bisect_right(self.starts, addr) - 1
        return self.starts[at] if at >= 0 else addr

    @cached_property
    def _starts(self) -> frozenset[int]:
        return frozenset(self.starts)

    def is_start(self, addr: int) -> bool:
        """Whether a function starts there."""
        return addr in self._starts

    def members(self, function: int) -> list[int]:
        """The instructions of a function."""
        if not self._members:
            for addr in self.insns:
                self._members.setdefault(self.function(addr), []).append(addr)
        return self._members.get(function, [])

    def successors(self, insn: Insn) -> list[int]:
        """As ``_successors``, computed once."""
        known = self._after.get(insn.addr)
        if known is None:
            known = self._after[insn.addr] = self._successors(insn)
        return known

    def _successors(self, insn: Insn) -> list[int]:
        """The instructions that may follow in the same activation, a call passed over.

        A jump to another function is followed like any other. A computed jump that is no return
        leads to every instruction of its function.
        """
        found: list[int] = []
        if insn.flow is ControlFlow.JUMP and insn.target is not None:
            found.append(insn.target)
        elif insn.flow is ControlFlow.INDIRECT and not self.returns(insn):
            found += self.members(self.function(insn.addr))
        if self.continues(insn):
            found.append(insn.next)
        return [addr for addr in found if addr in self.insns]

    def continues(self, insn: Insn) -> bool:
        """Whether the next instruction in memory may follow."""
        ends = ControlFlow.JUMP, ControlFlow.INDIRECT, ControlFlow.EXCEPTION_RETURN
        if insn.flow is ControlFlow.UNDEFINED:
            return False
        return (
            insn.flow not in ends
            or insn.conditional
            or insn.operation is Operation.COMPARE_AND_BRANCH
        )

    @staticmethod
    def returns(insn: Insn) -> bool:
        """Whether a computed jump has the form of a return: to lr, or to a word at sp."""
        if insn.flow is ControlFlow.EXCEPTION_RETURN:
            return True
        if insn.flow is not ControlFlow.INDIRECT:
            return False
        if insn.memory is not None:
            return insn.memory.base == SP
        return insn.sources == (LR,) and insn.operation in BY_REGISTER

    @staticmethod
    def is_call(insn: Insn) -> bool:
        """Whether control comes back behind the instruction."""
        calls = ControlFlow.CALL, ControlFlow.INDIRECT_CALL, ControlFlow.TRAP
        return insn.flow in calls

    def used(self, insn: Insn) -> frozenset[int]:
        """The registers that it reads, except for words of the caller that it only saves.

        A callee-saved register holds such a word until the function has written it: later, a store
        at sp may hand an argument to a callee.
        """
        memory = insn.memory
        if memory is None or memory.access is not AccessKind.STORE or memory.base != SP:
            return insn.reads - {PC}
        unwritten = self._unwritten.get(insn.addr, frozenset())
        saved = (unwritten & frozenset(insn.transfers)) - {memory.index, SP}
        return insn.reads - saved - {PC}

    @cached_property
    def _unwritten(self) -> dict[int, frozenset[int]]:
        """The registers of the caller that no instruction before has written, since the start."""
        found = dict.fromkeys(self.starts, CALLEE_SAVED)
        pending = list(self.starts)
        while pending:
            insn = self.insns[pending.pop()]
            after = found[insn.addr] - insn.writes
            for addr in self.successors(insn):
                known = found.get(addr)
                if not self.is_start(addr) and (known is None or not known <= after):
                    found[addr] = after if known is None else known & after
                    pending.append(addr)
        return found


def whole_code(image: Image) -> WholeCode | None:
    """The code of all executable sections; None where mapping symbols do not tell it from data."""
    insns: dict[int, Insn] = {}
    data: list[Span] = []
    for section in image.sections:
        if not section.executable or not section.size:
            continue
        end = section.addr + section.size
        marks = [m for m in image.symbols.mappings if section.addr <= m.addr < end]
        if not section.stored or not marks or marks[0].addr != section.addr:
            return None
        ends = [m.addr for m in marks[1:]] + [end]
        for mark, after in zip(marks, ends, strict=True):
            if mark.kind == "d":
                data.append((mark.addr, after - 1))
            elif not _decode(image, mark.addr, after, insns, thumb=mark.kind == "t"):
                return None
    calls = (i.target for i in insns.values() if i.flow is ControlFlow.CALL)
    named = (s.addr for s in image.symbols.symbols if s.kind == "func")
    starts = {addr for addr in (*calls, *named) if addr in insns}
    return WholeCode(insns, tuple(data), tuple(sorted(starts)))


def _decode(image: Image, at: int, end: int, insns: dict[int, Insn], *, thumb: bool) -> bool:
    """Add the instructions of a span to ``insns``; False where its bytes are not loaded."""
    content = image.read(at, end - at)
    if content is None:
        return False
    it: tuple[Condition, ...] = ()
    first = at
    while at + (2 if thumb else 4) <= end:
        chunk = content[at - first : at - first + LONGEST]
        if thumb and len(chunk) < LONGEST and chunk[1] >> 3 >= 0x1D:
            break
        insn = insns[at] = decode(chunk, at, thumb, it)
        it = it[1:] or it_conditions(insn)
        at = insn.next
    return True
