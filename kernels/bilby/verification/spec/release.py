# SPDX-License-Identifier: BSD-2-Clause
"""The release queue: a heap of contexts, the next to be released first (``release.c``).

Each entry is before the four at four times its index and one to four more; of contexts that are due
at one time any may be first, and this is the order of the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernels.bilby.verification.spec.state import Context

CHILDREN = 4


def insert(heap: list[Context], context: Context) -> None:
    heap.append(context)
    _up(heap, len(heap) - 1)


def remove(heap: list[Context], context: Context) -> None:
    """The last entry goes into the hole, and from there to its place."""
    index = heap.index(context)
    last = heap.pop()
    if last is context:
        return
    heap[index] = last
    if index and heap[(index - 1) // CHILDREN].due_at > last.due_at:
        _up(heap, index)
    else:
        _down(heap, index)


def _up(heap: list[Context], index: int) -> None:
    moved = heap[index]
    while index:
        above = (index - 1) // CHILDREN
        if heap[above].due_at <= moved.due_at:
            break
        heap[index] = heap[above]
        index = above
    heap[index] = moved


def _down(heap: list[Context], index: int) -> None:
    moved = heap[index]
    while below := range(len(heap))[CHILDREN * index + 1 : CHILDREN * index + CHILDREN + 1]:
        first = min(below, key=lambda at: heap[at].due_at)
        if heap[first].due_at >= moved.due_at:
            break
        heap[index] = heap[first]
        index = first
    heap[index] = moved
