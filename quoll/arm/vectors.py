"""Tables of exception vectors, found by their form where no symbol names them.

Source: ARM Architecture Reference Manual, ARMv7-A, B1.8.1: eight words, each an instruction that
branches to its handler, by ``b`` or ``ldr pc``; the sixth is unused. The table is aligned to 32
bytes.
"""

from __future__ import annotations

from quoll.arm.decode import decode
from quoll.arm.insn import PC, Condition, ControlFlow
from quoll.errors import InputError

__all__ = ["VECTORS", "WORD", "vector_tables"]

VECTORS = 8  # words
WORD = 4  # bytes
UNUSED = 5


def vector_tables(code: bytes, start: int) -> list[int]:
    """The addresses of all tables in ARM ``code`` loaded at ``start``."""
    size = VECTORS * WORD
    first = -start % size
    return [
        start + at
        for at in range(first, len(code) - size + 1, size)
        if all(
            _goes_to_handler(code[at + WORD * n :], start + at + WORD * n)
            for n in range(VECTORS)
            if n != UNUSED
        )
    ]


def _goes_to_handler(code: bytes, addr: int) -> bool:
    try:
        insn = decode(code[:WORD], addr, thumb=False)
    except InputError:
        return False
    if insn.cond is not Condition.AL:
        return False
    loads = insn.memory is not None and insn.memory.base == PC and insn.flow is ControlFlow.INDIRECT
    return insn.flow is ControlFlow.JUMP or loads
