# SPDX-License-Identifier: BSD-2-Clause
"""The cpsr of a user thread: Thumb, and where it is in an IT block."""

from __future__ import annotations

IT, THUMB = 0x0600FC00, 0x20


def holds(condition: int, cpsr: int) -> bool:
    """One of the conditions with an even number, of those flags."""
    n, z, c, v = (bool(cpsr >> bit & 1) for bit in (31, 30, 29, 28))
    return [z, c, n, v, c and not z, n == v, n == v and not z, True][condition >> 1]


def before_svc(cpsr: int) -> int:
    """Of an SVC that was executed: the flags before it, from those after.

    In a block the SVC shifted the state by one; its condition held, which tells the bit.
    """
    after = (cpsr >> 8 & 0xFC) | (cpsr >> 25 & 3)
    if not after:
        return cpsr
    gone = not holds(after >> 4 & 0xE, cpsr)
    before = (after & 0xE0) | gone << 4 | (after >> 1 & 0xF)
    return (cpsr & ~IT) | (before & 0xFC) << 8 | (before & 3) << 25
