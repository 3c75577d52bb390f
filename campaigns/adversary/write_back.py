"""The content of memory behind a write-back cache, at its two extremes.

A program does not determine the lines in a cache. In one extreme every store reaches memory at
once. In the other no line is ever evicted: a store stays in the cache until a maintenance operation
cleans its line, and is lost if the line is invalidated before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from campaigns.adversary.program import Board

__all__ = ["DirtyLines", "Maintenance", "maintenance"]

SETS = 128  # of both cores' data caches: four ways, 16 KiB of 32 bytes or 32 KiB of 64


@dataclass(frozen=True, slots=True)
class Maintenance:
    """An operation on the data cache; ``operands`` are numbers of registers."""

    clean: bool
    invalidate: bool
    by: str  # "address", "set", "range" or "all"
    operands: tuple[int, ...]


CLEAN_INVALIDATE = {6: (False, True), 7: (False, True), 10: (True, False), 14: (True, True)}
BY = {0: "all", 1: "address", 2: "set"}
RANGES = {6: (False, True), 12: (True, False), 14: (True, True)}


def maintenance(code: int, board: Board) -> Maintenance | None:
    """The operation of an instruction, its first half word on top; None for any other one.

    ARM DDI 0211, 3.3.17 and DDI 0344, 3.2.59. A Cortex-A8 that cleans its level 1 by set and way,
    or to the point of unification, moves the line to its level 2, where it can still be lost.
    """
    if code & 0x0F1F0F10 == 0x0E070F10 and not code >> 21 & 7:
        crm, opc2 = code & 15, code >> 5 & 7
        if crm not in CLEAN_INVALIDATE or opc2 not in BY or (crm == 7 and opc2):
            return None
        clean, invalidate = CLEAN_INVALIDATE[crm]
        if board.armv7 and (opc2 == 0 or crm == 7):
            return None
        if board.armv7 and opc2 == 2 and clean:
            return None
        return Maintenance(clean, invalidate, BY[opc2], (code >> 12 & 15,))
    if not board.armv7 and code & 0x0FF00FF0 == 0x0C400F00 and code & 15 in RANGES:
        clean, invalidate = RANGES[code & 15]
        return Maintenance(clean, invalidate, "range", (code >> 12 & 15, code >> 16 & 15))
    return None


@dataclass(slots=True)
class DirtyLines:
    """The lines with stores that memory lacks, each with its content in memory."""

    board: Board
    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], None]
    lines: dict[int, bytes] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """Bytes of a line."""
        return 64 if self.board.armv7 else 32

    def stored(self, addr: int, size: int) -> None:
        """Record a store before it happens."""
        for at in range(addr - addr % self.line, addr + size, self.line):
            if at not in self.lines:
                self.lines[at] = self.read(at, self.line)

    def maintain(self, operation: Maintenance, operands: tuple[int, ...]) -> None:
        """Apply an operation to memory as the program sees it."""
        for at in list(self._meant(operation, operands)):
            memory = self.lines.pop(at)
            if not operation.clean:
                self.write(at, memory)

    def _meant(self, operation: Maintenance, operands: tuple[int, ...]) -> Iterator[int]:
        """The dirty lines that the operation affects; of a set one, which may be in that way."""
        if operation.by == "all":
            yield from self.lines
        elif operation.by == "address":
            yield from (a for a in self.lines if a == operands[0] - operands[0] % self.line)
        elif operation.by == "range":
            last, first = operands
            yield from (a for a in self.lines if first - first % self.line <= a <= last)
        else:
            which = operands[0] // self.line % SETS
            found = [a for a in self.lines if a // self.line % SETS == which]
            yield from found[-1:]
