"""Which instructions before an indirect transfer its target may depend on.

Registers and flags are followed. A dependence on memory starts at the load if memory is unknown
anyway; else every earlier store is relevant to a load.
"""

from __future__ import annotations

from quoll.arm.insn import PC, AccessKind, Insn
from quoll.arm.operation import Operation

__all__ = ["BackwardSlice"]


class BackwardSlice:
    """Going backwards: registers and flags, as far as the transfer depends on them."""

    def __init__(self, transfer: Insn, *, memory: bool) -> None:
        self._memory = memory
        self._loads = transfer.memory is not None
        self._registers = set(transfer.reads) - {PC}
        self._flags = transfer.conditional

    def branch(self, insn: Insn) -> None:
        """The way leads through the branch ``insn``, whose condition says something."""
        self._flags |= insn.conditional
        if insn.operation is Operation.COMPARE_AND_BRANCH:
            self._registers |= insn.reads

    def includes(self, insn: Insn) -> bool:
        """Whether the transfer may depend on what ``insn`` does; then on what it needs, too."""
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
