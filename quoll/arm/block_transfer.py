"""Lists of registers that are loaded and stored together, upwards or downwards from a base."""

from __future__ import annotations

from quoll.arm.insn import Insn, MemoryAccess

__all__ = ["base_change", "is_block_transfer", "list_change"]

LISTS = ("ldm", "stm", "vldm", "vstm")
UP = 1 << 23  # A5.5, A6.3.5


def is_block_transfer(insn: Insn) -> bool:
    """Whether ``insn`` loads or stores a list; push and pop do."""
    return insn.mnemonic in LISTS


def list_change(insn: Insn, memory: MemoryAccess) -> int:
    """What write-back adds to the base of a list: its size, or less that."""
    up = memory.displacement >= 0 if insn.size == 2 else insn.encoding & UP
    size = memory.size * memory.count
    return size if up else -size


def base_change(insn: Insn, memory: MemoryAccess) -> int:
    """What write-back adds to the base of an access without an index register."""
    return list_change(insn, memory) if is_block_transfer(insn) else memory.displacement
