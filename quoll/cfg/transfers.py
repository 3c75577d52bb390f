"""The effect of an indirect transfer, by its encoding and the instruction before it.

These forms need no values: a literal, and the return idioms of the ARM procedure call standard. A
return recognised only by its form is an assumption of the result until values confirm it
(``quoll.indirect.returns``).
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.arm.insn import LR, PC, SP, AccessKind, Condition, ControlFlow, Insn, ShiftKind
from quoll.arm.operation import Operation
from quoll.cfg.cfg import Block
from quoll.cfg.growing_function import CalleeEntry
from quoll.image.image import Image

__all__ = ["TransferEffect", "by_form", "callee_at", "is_call", "links", "literal"]

FRAME_POINTER = 11
BY_REGISTER = (Operation.BRANCH_EXCHANGE, Operation.MOVE)


@dataclass(frozen=True, slots=True)
class TransferEffect:
    """The possible targets of an indirect transfer, and whether it ``returns`` to the caller."""

    targets: tuple[CalleeEntry, ...] = ()
    returns: bool = False
    table: int | None = None  # address of the first table entry that the targets come from


def callee_at(value: int, *, thumb: bool, interworks: bool = True) -> CalleeEntry:
    """The code that a branch to ``value`` runs: bit 0 selects Thumb if the branch interworks."""
    return CalleeEntry(value & ~1, bool(value & 1) if interworks else thumb)


def links(before: Insn | None, insn: Insn) -> bool:
    """Whether ``mov lr, pc`` before ``insn`` makes it a call (ARM code before ARMv5T)."""
    return (
        before is not None
        and before.operation is Operation.MOVE
        and not before.thumb
        and before.writes == {LR}
        and before.sources == (PC,)
        and before.cond in (insn.cond, Condition.AL)
        and before.next == insn.addr
    )


def is_call(block: Block) -> bool:
    """Whether the indirect transfer ending ``block`` is a call by its form."""
    before = block.insns[-2] if len(block.insns) > 1 else None
    return block.last.flow is ControlFlow.INDIRECT_CALL or links(before, block.last)


def by_form(
    image: Image, before: Insn | None, insn: Insn, *, preserves_lr: bool
) -> TransferEffect | None:
    """The effect of the indirect transfer ``insn``; ``before`` always runs just before it.

    With ``preserves_lr`` the function computes nothing in lr, so lr is a return address.
    """
    if _is_literal(insn) and insn.transfers == (PC,):
        return _literal(image, insn)
    if insn.flow is ControlFlow.INDIRECT and (
        _is_return(insn, preserves_lr) or _pops_for(before, insn)
    ):
        return TransferEffect(returns=True)
    if insn.operation is Operation.BRANCH_EXCHANGE and insn.sources == (PC,):
        return TransferEffect((CalleeEntry(insn.pc_operand, False),))
    return None


def _is_literal(insn: Insn) -> bool:
    memory = insn.memory
    return (
        memory is not None
        and insn.operation is Operation.LOAD_WORD
        and memory.base == PC
        and memory.index is None
        and memory.size == 4
        and len(insn.transfers) == 1
    )


def _literal_place(insn: Insn) -> int:
    assert insn.memory is not None
    return (insn.pc_operand + insn.memory.displacement) & 0xFFFFFFFF


def literal(image: Image, insn: Insn) -> int | None:
    """The constant that ``insn`` loads from a literal pool; None for other instructions."""
    return image.constant(_literal_place(insn), 4) if _is_literal(insn) else None


def _literal(image: Image, insn: Insn) -> TransferEffect | None:
    value = literal(image, insn)
    if value is None:
        return None
    return TransferEffect((callee_at(value, thumb=insn.thumb),), table=_literal_place(insn))


def _is_return(insn: Insn, preserves_lr: bool) -> bool:
    memory = insn.memory
    if memory is None:
        by_lr = insn.operation in BY_REGISTER and insn.sources == (LR,)
        return by_lr and preserves_lr and insn.shift is ShiftKind.NONE
    if memory.access is not AccessKind.LOAD or PC not in insn.transfers:
        return False
    if memory.base == SP:
        return memory.index is None and (memory.writeback or SP in insn.transfers)
    return memory.base == FRAME_POINTER and SP in insn.transfers


def _pops_for(before: Insn | None, insn: Insn) -> bool:
    """Whether it is ``pop {r3}; bx r3``, a return in Thumb code of ARMv4T."""
    if before is None or before.memory is None or insn.operation not in BY_REGISTER:
        return False
    memory = before.memory
    return (
        memory.access is AccessKind.LOAD
        and memory.base == SP
        and memory.writeback
        and before.next == insn.addr
        and not before.conditional
        and bool(insn.sources)
        and insn.sources[0] in before.transfers
    )
