"""Recordings made from the format's description, as files."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from quoll.recordings.trace import End, Execution, RecordedAccess

__all__ = ["CONTINUED", "HEADER", "Run", "chunk", "recording", "repeat", "trailer", "written"]

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
    return _trailer(limit_reached, len(runs), instructions, accesses)


def _trailer(limit_reached: int, *totals: int) -> bytes:
    return b"DONE" + struct.pack("<I3Q", limit_reached, *totals)


def recording(runs: list[Run]) -> bytes:
    return HEADER + b"".join(run.chunks() for run in runs) + trailer(runs)


def written(executions: list[Execution]) -> bytes:
    """The file of executions that were read, with repeats where an object is there again."""
    parts, numbers = [HEADER], dict[Execution, int]()
    for number, one in enumerate(executions):
        words = one.access_words
        if one in numbers:
            parts.append(repeat(numbers[one]))
        else:
            numbers[one] = number
            head = struct.pack("<4s3I", b"EXEC", len(one.pcs), len(words), one.end)
            parts += [head, one.pcs.tobytes(), words.tobytes()]
    instructions = sum(len(one.pcs) for one in executions)
    accesses = sum(len(one.access_words) for one in executions)
    return b"".join([*parts, _trailer(0, len(executions), instructions, accesses)])
