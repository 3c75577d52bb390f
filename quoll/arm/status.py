"""Effects of an instruction on the processor mode, interrupt masks and status registers.

The status word is described in B1.3.3 of the ARM Architecture Reference Manual.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from quoll.arm.addressing import is_block_transfer
from quoll.arm.insn import AccessKind, Insn
from quoll.arm.operation import Operation

__all__ = [
    "INTERRUPT_MASK",
    "MODE_BITS",
    "StateChange",
    "StatusField",
    "fields_written",
    "leaves_mode",
    "loaded_user_registers",
    "names_a_stack",
    "names_banked_register",
    "reads_current_status",
    "saves_control",
    "state_change",
    "status_mask",
    "status_written",
    "switches_mode",
    "writes_masks",
    "writes_saved_status",
]

INTERRUPT_MASK = 1 << 7  # bit I of the status word
MODE_BITS = 0x1F

_MASKS = (Operation.CHANGE_STATE, Operation.WRITE_STATUS)
_MODE = (*_MASKS, Operation.RETURN_FROM_EXCEPTION, Operation.STORE_RETURN_STATE)
_CALLS = (Operation.EXCEPTION_CALL, Operation.SUPERVISOR_CALL)
_STATE = (*_MODE, *_CALLS, Operation.SET_ENDIANNESS)


class StatusField(IntFlag):
    """Fields of a status register, as the mask of an msr has them."""

    NONE = 0
    CONTROL = 1  # mode and masks
    EXTENSION = 2
    STATUS = 4
    FLAGS = 8


@dataclass(frozen=True, slots=True)
class StateChange:
    """The effect of a cps. ``enables`` is None if the masks are unchanged, ``mode`` if it is."""

    enables: bool | None
    interrupts: bool  # whether the interrupt mask is set or cleared
    mode: int | None


def writes_masks(insn: Insn) -> bool:
    """Whether ``insn`` may unmask interrupts and then continues: cps, msr."""
    return insn.operation in _MASKS


def switches_mode(insn: Insn) -> bool:
    """Whether ``insn`` may write the mode or the registers of another mode."""
    return insn.operation in _MODE


def names_a_stack(insn: Insn) -> bool:
    """Whether ``insn`` stores to the stack of a mode that it names (srs, B9.3.16)."""
    return insn.operation is Operation.STORE_RETURN_STATE


def leaves_mode(insn: Insn) -> bool:
    """Whether ``switches_mode``, or code in another mode runs, or the byte order changes."""
    return insn.operation in _STATE


def status_mask(raw: bytes, thumb: bool) -> int:
    """Fields that an msr writes, f s x c from bit 3 down (A8.8.111, B9.3.11).

    0 for the SPSR and for the banked registers of the virtualization extensions (B9.3.10).
    """
    word = int.from_bytes(raw, "little")
    immediate = not thumb and word & 1 << 25
    banked = not immediate and word & (1 << 21 if thumb else 1 << 9)
    elsewhere = banked or word & (1 << 4 if thumb else 1 << 22)
    return 0 if elsewhere else word >> (24 if thumb else 16) & 15


def status_written(insn: Insn) -> StatusField:
    """Fields of the CPSR that ``insn`` writes if it is an msr; else none."""
    written = insn.operation is Operation.WRITE_STATUS
    return StatusField(status_mask(insn.raw, insn.thumb) if written else 0)


def fields_written(insn: Insn) -> StatusField:
    """Fields of the CPSR or an SPSR that ``insn`` writes if it is an msr; else none."""
    if insn.operation is not Operation.WRITE_STATUS or names_banked_register(insn):
        return StatusField.NONE
    return StatusField(insn.encoding >> (8 if insn.thumb else 16) & 15)


def names_banked_register(insn: Insn) -> bool:
    """Whether ``insn`` is an mrs or msr of another mode's register by name (B9.3.9, B9.3.10)."""
    if insn.operation is Operation.READ_STATUS or insn.operation is Operation.WRITE_STATUS:
        immediate = not insn.thumb and insn.encoding & 1 << 25
        return not immediate and bool(insn.encoding & (1 << 5 if insn.thumb else 1 << 9))
    return False


def loaded_user_registers(insn: Insn) -> tuple[int, ...]:
    """The User registers that ``insn`` loads, in the order of its loads: ldm ^ (B9.3.6)."""
    memory = insn.memory
    if memory is None or not memory.user or not is_block_transfer(insn):
        return ()
    return insn.transfers if memory.access is AccessKind.LOAD else ()


def writes_saved_status(insn: Insn) -> bool:
    """Whether ``insn`` is an msr of an SPSR: bit R (B9.3.10 to B9.3.12)."""
    saved = 1 << (20 if insn.thumb else 22)
    return insn.operation is Operation.WRITE_STATUS and bool(insn.encoding & saved)


def saves_control(insn: Insn) -> bool | None:
    """Whether an msr of an SPSR writes the mode, masks and instruction set in the current mode's.

    None if it writes another mode's SPSR, with the virtualization extensions (B9.3.10).
    """
    word = insn.encoding
    if word & 1 << 5 if insn.thumb else not word & 1 << 25 and word & 1 << 9:
        return None
    return StatusField.CONTROL in StatusField(word >> (8 if insn.thumb else 16) & 15)


def reads_current_status(insn: Insn) -> bool:
    """Whether ``insn`` reads the CPSR; not an SPSR or a banked register (B9.3.8, B9.3.9)."""
    elsewhere = (1 << 20 | 1 << 5) if insn.thumb else (1 << 22 | 1 << 9)
    return insn.operation is Operation.READ_STATUS and not insn.encoding & elsewhere


def state_change(insn: Insn) -> StateChange | None:
    """The effect of ``insn`` if it is a cps (B9.3.2), else None."""
    if insn.operation is not Operation.CHANGE_STATE:
        return None
    word = insn.encoding
    if insn.size == 2:
        return StateChange(not word & 1 << 4, bool(word & 1 << 1), None)
    masks, interrupts, changes = (9, 6, 8) if insn.thumb else (18, 7, 17)
    enables = {2: True, 3: False}.get(word >> masks & 3)
    mode = word & MODE_BITS if word & 1 << changes else None
    return StateChange(enables, bool(word & 1 << interrupts), mode)
