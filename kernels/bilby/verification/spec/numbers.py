# SPDX-License-Identifier: BSD-2-Clause
"""Numbers of address spaces: pools of them, and who has one (only where spaces have numbers)."""

from __future__ import annotations

from kernels.bilby.verification.spec.invocation import Invocation, Refused, find_empty
from kernels.bilby.verification.spec.layout import LIMITS
from kernels.bilby.verification.spec.state import Cap, Kernel, Pool
from kernels.bilby.verification.spec.tables import POOL_ENTRIES

POOL_BITS = 12


def make_pool(call: Invocation) -> None:
    kernel = call.kernel
    call.require(2, 2)
    free = [index for index in range(LIMITS["ASID_POOLS"]) if index not in kernel.pools]
    if not free:
        raise Refused("NO_NUMBER")
    untyped = call.extra[0]
    cap = untyped.cap
    if cap is None or cap.kind != "untyped" or cap["size_bits"] != POOL_BITS:
        raise Refused("INVALID_CAPABILITY")
    if kernel.has_child(untyped):
        raise Refused("NO_MEMORY")
    to = find_empty(kernel, call.extra[1].cap, call.word(0), call.word(1))
    base = cap["object"]
    cap.fields["free"] = (1 << POOL_BITS) // 16
    kernel.touch(untyped)
    kernel.cleared.append((base, base + (1 << POOL_BITS)))
    add_pool(kernel, base, free[0])
    kernel.insert(to, Cap("asid_pool", {"object": base, "index": free[0]}), untyped, True)


def add_pool(kernel: Kernel, address: int, index: int) -> Pool:
    pool = Pool(address)
    kernel.add(pool)
    kernel.pools[index] = pool
    return pool


def assign(call: Invocation) -> None:
    """A directory without a number gets the first free one."""
    call.require(0, 1)
    slot = call.extra[0]
    cap = slot.cap
    if cap is None or cap.kind != "page_directory" or cap["asid"]:
        raise Refused("INVALID_CAPABILITY")
    index = call.cap["index"]
    pool = call.kernel.pools[index]
    first = 1 if index == 0 else 0  # number 0 says that there is none
    free = [number for number in range(first, POOL_ENTRIES) if number not in pool.spaces]
    if not free:
        raise Refused("NO_NUMBER")
    pool.spaces[free[0]] = cap["object"]
    cap.fields["asid"] = index * POOL_ENTRIES + free[0]
    call.kernel.touch(pool, slot)


def delete_pool(kernel: Kernel, cap: Cap) -> None:
    """All numbers of it are nobody's."""
    pool = kernel.pools.pop(cap["index"])
    kernel.remove_object(pool.address, 1 << POOL_BITS, [])
