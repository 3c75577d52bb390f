"""Stores of recorded executions that refute assumption S8: no pointer leads to the object."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from quoll.assumptions import S8, Assumption
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.recordings.follow import refuted
from quoll.recordings.observations import insn_at
from quoll.recordings.trace import Execution, RecordedAccess, Trace

__all__ = ["refuse_hits"]

STORE = 1 << 8
SIZE = STORE - 1  # mask of the size in an access word


def refuse_hits(image: Image, assumptions: Collection[Assumption], trace: Trace, name: str) -> None:
    """Raise ``RefutedFact`` for a store that hits an object which S8 among ``assumptions`` names.

    Instructions that store to the object by its own address may do so. All executions are judged,
    of any entry and incomplete ones. ``name``: the recording.
    """
    listed = {one: dict(one.values)["object"] for one in assumptions if one.name == S8.name}
    objects = [(span, s8) for span, of in image.own_objects for s8 in listed if listed[s8] == of]
    if not objects:
        return
    judged: set[Execution] = set()
    for number, execution in enumerate(trace.executions, 1):
        if execution in judged:
            continue
        judged.add(execution)
        for span, s8 in objects:
            for hit in _hits(image, span, execution):
                pc = execution.pcs[hit.index]
                raise refuted(
                    s8,
                    f"{insn_at(image, pc).text} stores to {hit.addr:#x} <{listed[s8]}>",
                    where=f"{name}, execution {number}, instruction {hit.index:,} at "
                    f"{image.place(pc)}",
                    hint=f"let this code access {listed[s8]} by its name, or let other code use "
                    "its address: then S8 is not assumed of it",
                )


def _hits(image: Image, span: Span, execution: Execution) -> Iterator[RecordedAccess]:
    """The stores to a byte of an object by instructions that do not store by its own address."""
    names = image.memory.physical_aliases(*span)
    own = {
        insn for insn, place in image.own_stores if any(low <= place <= high for low, high in names)
    }
    index, low, info = execution.access_words.T
    last = low.astype(np.int64) + (info & SIZE) - 1
    for first, end in names:
        for row in np.flatnonzero((info >= STORE) & (first <= last) & (low <= end)):
            at = int(index[row])
            if execution.pcs[at] not in own:
                yield RecordedAccess(at, int(low[row]), int(info[row]) & SIZE, store=True)
