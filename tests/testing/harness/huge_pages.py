"""Huge pages for the memory of a test process, which forks for each run of a solver.

A fork copies the page table: 10 ms for each 100 MB in pages of 4 KiB, a sixth of that in huge ones.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

__all__ = ["use_huge_pages"]

HUGE = 2 << 20  # bytes of a page
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25  # asm-generic/mman-common.h; the latter from Linux 6.1 on
PRIVATE, HEAP = "rw-p", "[heap]"

_libc = ctypes.CDLL(None)


def use_huge_pages() -> None:
    """Make huge pages of the anonymous memory of this process; a kernel without them ignores it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, _, _, *name = line.split(maxsplit=5)
        if access == PRIVATE and name in ([], [HEAP]):
            first, end = (int(number, 16) for number in span.split("-"))
            first, end = -(-first // HUGE) * HUGE, end // HUGE * HUGE
            for advice in (MADV_HUGEPAGE, MADV_COLLAPSE) if first < end else ():
                _libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), advice)
