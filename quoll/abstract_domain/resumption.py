"""The continuation of exception returns that stay in the kernel (rule 49).

An exception return ends a path because it leaves the kernel, or unmasks interrupts. If it surely
does neither, it is a jump: its target is known code of the program, and the restored status word is
known, privileged, masks interrupts and selects ARM code on little-endian data.
"""

from __future__ import annotations

from collections.abc import Callable

from quoll.abstract_domain.banked_registers import RESTORED
from quoll.abstract_domain.terms import Fact, describe
from quoll.abstract_domain.transfer import BlockExit
from quoll.arm.status import INTERRUPT_MASK, MODE_BITS
from quoll.image.image import Image
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["STATUSES", "all_are", "few", "leaves_kernel", "restored", "resumed_code", "unmasks"]

USER = 0x10
# Bits T, E, J and IT of a status word: ARM code on little-endian data has none of them.
OTHER_STATE = 1 << 5 | 1 << 9 | 1 << 24 | 0x0600_FC00
ARM_LENGTH = 4  # bytes
TARGETS = 64  # more possible target words than these count as unknown
STATUSES = 256  # status words that are analysed one by one


def restored(leave: BlockExit) -> tuple[Fact, ValueSet]:
    """The target of an exception return, and the status word that it restores.

    Only the lowest byte of the status counts.
    """
    facts = leave.state.facts
    cell = leave.state.banks.get(RESTORED)
    status = describe(cell, facts) if type(cell) is int else ANY
    return describe(leave.target, facts), status if isinstance(status, ValueSet) else ANY


def resumed_code(image: Image, target: ValueSet, status: ValueSet) -> frozenset[int] | None:
    """The addresses at which an exception return surely continues in this program; None if not."""
    if not all_are(status, _resumes) or target.size > TARGETS:
        return None
    code = frozenset(target)
    whole = all(word % ARM_LENGTH == 0 and image.is_executable(word) for word in code)
    return code if whole else None


def few(target: ValueSet) -> tuple[int, ...]:
    """The members of ``target``; none if they are too many to count as known."""
    return tuple(target) if target.size <= TARGETS else ()


def all_are(status: ValueSet, holds: Callable[[int], bool]) -> bool:
    """Whether ``status`` is known, and ``holds`` for each possible status word."""
    return status.size <= STATUSES and all(map(holds, status))


def leaves_kernel(status: int) -> bool:
    """Whether code in User mode runs after ``status`` is restored."""
    return status & MODE_BITS == USER


def unmasks(status: int) -> bool:
    """Whether an interrupt may be taken after ``status`` is restored."""
    return leaves_kernel(status) or not status & INTERRUPT_MASK


def _resumes(status: int) -> bool:
    return not unmasks(status) and not status & OTHER_STATE
