"""Effects of instructions on caches: coprocessor accesses without a row are unknown or none."""

from __future__ import annotations

import pytest

from cache.maintenance import FLUSH, NOTHING, UNKNOWN, CacheOperation, cache_operation
from quoll.arm.decode import decode


@pytest.mark.parametrize(
    ("word", "effect"),
    [
        (0xE0800001, NOTHING),  # add r0, r0, r1
        (0xF57FF06F, FLUSH),  # isb
        (0xEEF1FA10, NOTHING),  # vmrs apsr_nzcv, fpscr
        (0xEE100E15, NOTHING),  # mrc p14, 0, r0, c0, c5, 0: of the debug unit
        (0xEE100110, UNKNOWN),  # mrc p1, 0, r0, c0, c0, 0: of a device that nobody knows
        (0xEE110F10, NOTHING),  # mrc p15, 0, r0, c1, c0, 0: the control register, read
        (0xEE170F10, UNKNOWN),  # mrc p15, 0, r0, c7, c0, 0: a read among cache operations
        (0xEE190F10, UNKNOWN),  # mrc p15, 0, r0, c9, c0, 0: a read among lockdown registers
        (0xEC510F00, NOTHING),  # mrrc p15, 0, r0, r1, c0
    ],
)
def test_effects(word: int, effect: CacheOperation) -> None:
    assert cache_operation(decode(word.to_bytes(4, "little"), 0x8000, False)) == effect
