"""The instructions before an indirect transfer on which its target may depend.

Registers and flags are followed. If memory is unknown, a dependence on memory starts at the load;
else every earlier store is relevant to a load.
"""

from __future__ import annotations

from quoll.arm.insn import PC, AccessKind, Insn
from quoll.arm.operation import Operation

__all__ = ["BackwardSlice"]


class BackwardSlice:
    """The registers and flags on which the transfer depends, going backwards."""

    def __init__(self, transfer: Insn, *, memory: bool) -> None:
        self._memory = memory
        self._loads = transfer.memory is not None
        self._registers = set(transfer.reads) - {PC}
        self._flags = transfer.conditional

    def branch(self, insn: Insn) -> None:
        """Pass the branch ``insn``, whose condition may restrict the target."""
        self._flags |= insn.conditional
        if insn.operation is Operation.COMPARE_AND_BRANCH:
            self._registers |= insn.reads

    def includes(self, insn: Insn) -> bool:
        """Whether the transfer may depend on ``insn``; if so, add the inputs of ``insn``."""
        if self._memory and self._loads and _stores(insn):
            self._registers |= insn.reads - {PC}
            return True
        registers = insn.writes & self._registers
        flags = self._flags and insn.sets_flags
        if not (registers or flags):
            return False
        if not insn.conditional:
            self._registers -= registers
            self._flags &= not insn.sets_flags
        self._flags |= insn.conditional or insn.reads_flags
        self._loads |= insn.memory is not None
        self._registers |= insn.reads - {PC}
        return True


def _stores(insn: Insn) -> bool:
    return insn.memory is not None and insn.memory.access in (AccessKind.STORE, AccessKind.SWAP)
