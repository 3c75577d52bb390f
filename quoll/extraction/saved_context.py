"""Detects functions that save a context, to be resumed later.

A routine that switches to another context has stored its own before: the stack pointer, or the
return address outside the stack. An exit to user mode stores neither. If a compiler uses lr as a
scratch register, the code writes lr first.
"""

from __future__ import annotations

from collections.abc import Iterable

from quoll.arm.insn import LR, SP, AccessKind, Insn

__all__ = ["saves_context"]


def saves_context(insns: Iterable[Insn]) -> bool:
    """Whether sp is stored, or lr outside the stack before the first instruction that writes it."""
    written = False
    for insn in sorted(insns, key=lambda insn: insn.addr):
        memory = insn.memory
        if memory is not None and memory.access is AccessKind.STORE and not memory.user:
            other_base = LR in insn.transfers and memory.base != SP
            if SP in insn.transfers or (other_base and not written):
                return True
        written |= LR in insn.writes
    return False
