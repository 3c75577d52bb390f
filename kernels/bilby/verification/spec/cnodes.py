# SPDX-License-Identifier: BSD-2-Clause
"""CNodes: copying, minting, moving and rotating capabilities; deleting and recycling."""

from __future__ import annotations

from kernels.bilby.verification.spec.deletion import check_recycle, delete, delete_derived, recycle
from kernels.bilby.verification.spec.invocation import Invocation, Refused, find, find_empty
from kernels.bilby.verification.spec.ipc import copy_to, derive
from kernels.bilby.verification.spec.layout import API, LIMITS
from kernels.bilby.verification.spec.state import Cap, Slot

RIGHTS = {
    "endpoint": {"can_send": 1, "can_receive": 2, "can_grant": 4},
    "notification": {"can_send": 1, "can_receive": 2},
    "frame": {"can_write": 2},
}


def restrict(cap: Cap, rights: int) -> None:
    for name, bit in RIGHTS.get(cap.kind, {}).items():
        if not rights & bit:
            cap.fields[name] = 0


def set_guard(cap: Cap, data: int) -> None:
    size, value = data & 31, data >> 5 & (1 << LIMITS["GUARD_BITS"]) - 1
    if size + cap["radix"] > 32 or value >> size:
        raise Refused("RANGE")
    cap.fields |= {"guard_size": size, "guard": value}


def set_data(cap: Cap, data: int) -> None:
    """Mint's last argument. A badge cannot be changed, only given."""
    if cap.kind in ("endpoint", "notification"):
        if data >> API["BADGE_BITS"]:
            raise Refused("RANGE")
        if cap["badge"]:
            raise Refused("ILLEGAL_OPERATION")
        cap.fields["badge"] = data
    elif cap.kind == "cnode":
        set_guard(cap, data)
    else:
        raise Refused("ILLEGAL_OPERATION")


def copy(call: Invocation, mint: bool = False) -> None:
    call.require(6 if mint else 5)
    to = find_empty(call.kernel, call.slot.cap, call.word(0), call.word(1))
    call.require(0, 1)
    source = find(call.kernel, call.extra[0].cap, call.word(2), call.word(3))
    cap = derive(call.kernel, source.cap)
    restrict(cap, call.word(4))
    if mint:
        set_data(cap, call.word(5))
    copy_to(call.kernel, to, cap, source)


def mint(call: Invocation) -> None:
    copy(call, mint=True)


def move(call: Invocation, mutate: bool = False) -> None:
    call.require(5 if mutate else 4, 1)
    to = find_empty(call.kernel, call.slot.cap, call.word(0), call.word(1))
    source = find(call.kernel, call.extra[0].cap, call.word(2), call.word(3))
    if source.cap is None:
        raise Refused("INVALID_CAPABILITY")
    cap = source.cap.copy()
    if mutate:
        if cap.kind != "cnode":
            raise Refused("ILLEGAL_OPERATION")
        set_guard(cap, call.word(4))
    call.kernel.move(to, source)
    to.cap = cap


def mutate(call: Invocation) -> None:
    move(call, mutate=True)


def rotate(call: Invocation) -> None:
    call.require(6, 2)
    kernel = call.kernel
    to = find(kernel, call.slot.cap, call.word(0), call.word(1))
    pivot = find(kernel, call.extra[0].cap, call.word(2), call.word(3))
    source = find(kernel, call.extra[1].cap, call.word(4), call.word(5))
    if pivot in (source, to):
        raise Refused("INVALID_ARGUMENT")
    if to is not source and to.cap is not None:
        raise Refused("SLOT_OCCUPIED")
    if pivot.cap is None or source.cap is None:
        raise Refused("INVALID_CAPABILITY")
    kernel.move(kernel.transit, pivot)
    kernel.move(pivot, source)
    kernel.move(to, kernel.transit)


def one_slot(call: Invocation) -> Slot:
    call.require(2)
    return find(call.kernel, call.slot.cap, call.word(0), call.word(1))


def delete_one(call: Invocation) -> None:
    delete(call.kernel, one_slot(call))


def revoke(call: Invocation) -> None:
    delete_derived(call.kernel, one_slot(call))


def recycle_one(call: Invocation) -> None:
    slot = one_slot(call)
    check_recycle(slot.cap)
    recycle(call.kernel, slot)
