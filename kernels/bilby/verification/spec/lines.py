# SPDX-License-Identifier: BSD-2-Clause
"""Interrupt lines: who has one, and which notification it signals."""

from __future__ import annotations

from kernels.bilby.verification.spec.deletion import delete
from kernels.bilby.verification.spec.invocation import Invocation, Refused, find_empty
from kernels.bilby.verification.spec.ipc import copy_to, derive
from kernels.bilby.verification.spec.layout import LIMITS, TICK
from kernels.bilby.verification.spec.state import Cap

LINES = LIMITS["IRQ_LINES"]


def clear_notification(call: Invocation) -> None:
    delete(call.kernel, call.kernel.irq_slots[call.cap["irq"]])


def get_line(call: Invocation) -> None:
    call.require(3, 1)
    line = call.word(0)
    if line >= LINES or line == TICK:
        raise Refused("RANGE")
    if line in call.kernel.issued:
        raise Refused("ILLEGAL_OPERATION")
    to = find_empty(call.kernel, call.extra[0].cap, call.word(1), call.word(2))
    call.kernel.issued.add(line)
    call.kernel.insert(to, Cap("irq_handler", {"irq": line}), call.slot, True)


def set_notification(call: Invocation) -> None:
    line = call.cap["irq"]
    call.require(0, 1)
    source = call.extra[0]
    if source.cap is None or source.cap.kind != "notification":
        raise Refused("INVALID_CAPABILITY")
    if not source.cap["can_send"]:
        raise Refused("NO_RIGHT")
    to = call.kernel.irq_slots[line]
    if to.cap is not None:
        raise Refused("SLOT_OCCUPIED")
    copy_to(call.kernel, to, derive(call.kernel, source.cap), source)


def acknowledge(call: Invocation) -> None:
    call.kernel.masked.discard(call.cap["irq"])
