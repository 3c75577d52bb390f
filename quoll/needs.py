"""Which instructions before an indirect transfer its target may depend on.

Only registers and flags are followed. What depends on memory starts at the load: what is known of
the word that it reads is part of the state before it.
"""

from __future__ import annotations

from quoll.arm.insn import PC, Insn

__all__ = ["Needs"]


class Needs:
    """Going backwards: registers and flags, as far as the transfer depends on them."""

    def __init__(self, transfer: Insn) -> None:
        self._registers = set(transfer.reads) - {PC}
        self._flags = transfer.conditional

    def branch(self, insn: Insn) -> None:
        """The way leads through the branch ``insn``, whose condition says something."""
        self._flags |= insn.conditional
        if insn.mnemonic in ("cbz", "cbnz"):
            self._registers |= insn.reads

    def includes(self, insn: Insn) -> bool:
        """Whether the transfer may depend on what ``insn`` does; then on what it needs, too."""
        registers = insn.writes & self._registers
        flags = self._flags and insn.sets_flags
        if not (registers or flags):
            return False
        if not insn.conditional:
            self._registers -= registers
            self._flags &= not insn.sets_flags
        self._flags |= insn.conditional or insn.reads_flags
        self._registers |= insn.reads - {PC}
        return True
