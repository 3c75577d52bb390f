"""Recordings made from the format's description, as files."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from quoll.recordings.trace import End, RecordedAccess

__all__ = ["CONTINUED", "HEADER", "Run", "chunk", "recording", "repeat", "trailer"]

HEADER = b"QUOLLTRC" + struct.pack("<4I", 2, 0xF0000000, 0xFFFFFFFF, 0xFFFF0000)
CONTINUED = 0


@dataclass(frozen=True)
class Run:
    """An execution as a test states it; ``cuts`` are the instructions where a new chunk starts."""

    pcs: list[int]
    accesses: list[RecordedAccess]
    end: End
    cuts: list[int]

    def chunks(self) -> bytes:
        edges = [0, *self.cuts, len(self.pcs)]
        return b"".join(
            chunk(
                self.pcs[first:last],
                [a for a in self.accesses if first <= a.index < last],
                self.end if last == len(self.pcs) else CONTINUED,
            )
            for first, last in pairwise(edges)
        )


def chunk(pcs: list[int], accesses: list[RecordedAccess], end: int) -> bytes:
    rows = [struct.pack("<3I", a.index, a.addr, a.size | a.store << 8) for a in accesses]
    head = b"EXEC" + struct.pack("<3I", len(pcs), len(accesses), end)
    return head + struct.pack(f"<{len(pcs)}I", *pcs) + b"".join(rows)


def repeat(number: int) -> bytes:
    return b"SAME" + struct.pack("<I", number)


def trailer(runs: list[Run], limit_reached: int = 0) -> bytes:
    instructions = sum(len(run.pcs) for run in runs)
    accesses = sum(len(run.accesses) for run in runs)
    return b"DONE" + struct.pack("<I3Q", limit_reached, len(runs), instructions, accesses)


def recording(runs: list[Run]) -> bytes:
    return HEADER + b"".join(run.chunks() for run in runs) + trailer(runs)
