"""Executions from a hardware trace: a text file of the addresses of executed instructions.

Each line is one of these; ``#`` begins a comment, and numbers are hexadecimal without a prefix,
or with ``0x``:

    80000040                an executed instruction; bit 0 may say that it is Thumb code
    80000044:80000060       all instructions from the first address to before the second one
    cycles 1234             the execution that ends here took so many cycles (decimal), as measured
                            an empty line ends an execution, too

Instructions whose condition failed are among them. There are no registers and no addresses of
accesses: an execution is a path. docs/hardware-traces.md has converters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from quoll.arm.decode import decode
from quoll.errors import InputError
from quoll.image.image import Image
from quoll.input_files import Unreadable, read_input
from quoll.recordings.trace import LARGEST_TRACE, MAGIC, End, Execution, Trace

__all__ = ["parse_addresses", "read_recording"]

LARGEST = 1 << 30  # bytes
LONGEST = 1 << 26  # instructions of an execution
WORD = 4  # bytes
LINE = re.compile(
    r"(?:0x)?(?P<first>[0-9a-f]{1,8})(?:\s*:\s*(?:0x)?(?P<end>[0-9a-f]{1,8}))?"
    r"|cycles\s+(?P<cycles>[0-9]{1,18})",
    re.IGNORECASE,
)


def read_recording(path: Path, image: Image) -> Trace:
    """The recording in a file, of the recorder or of addresses, of the program ``image``.

    Raises InputError if it is damaged, or if an address is no code.
    """
    try:
        data = read_input(path, LARGEST_TRACE)
    except Unreadable as error:
        raise InputError(f"the trace {path} {error}") from error
    if data.startswith(MAGIC) or b"\0" in data[:LARGEST]:
        return Trace.parsed(path, data)
    return parse_addresses(data[:LARGEST].decode("latin-1"), str(path), image)


def parse_addresses(text: str, name: str, image: Image) -> Trace:
    """The executions in ``text``, lines of the file ``name``. Raises InputError with the line."""
    known: dict[tuple[bytes, int | None], Execution] = {}
    executions = []
    for found in _executions(text, name, image):
        key = found.pcs.tobytes(), found.measured
        executions.append(known.setdefault(key, found))
    if not executions:
        raise InputError(f"{name} has no executed address", hint="wcet help hardware-traces")
    return Trace(0, 0, 0, tuple(executions))


@dataclass(slots=True)
class _Path:
    """The execution read so far."""

    pcs: list[int] = field(default_factory=list)

    def ended(self, cycles: int | None = None) -> Iterator[Execution]:
        if self.pcs:
            words = memoryview(np.array(self.pcs, "u4").tobytes()).cast("I")
            empty = np.empty((0, 3), np.uint32)
            self.pcs = []
            yield Execution(words, empty, End.OUTSIDE, path_only=True, measured=cycles)


def _executions(text: str, name: str, image: Image) -> Iterator[Execution]:
    path = _Path()
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            yield from path.ended() if not line.strip() else ()
            continue
        where = f"{name}:{number}"
        match = LINE.fullmatch(content)
        if match is None:
            raise InputError(
                f"{where}: this is no address, no range FIRST:END and no number of cycles",
                hint="wcet help hardware-traces",
            )
        if match["cycles"] is not None:
            yield from path.ended(int(match["cycles"]))
            continue
        first = int(match["first"], 16)
        end = None if match["end"] is None else int(match["end"], 16)
        path.pcs += [first & ~1] if end is None else _range(first, end & ~1, where, image)
        if len(path.pcs) > LONGEST:
            raise InputError(f"{where}: the execution has more than {LONGEST:,} instructions")
    yield from path.ended()


def _range(first: int, end: int, where: str, image: Image) -> Iterator[int]:
    """The addresses of the instructions from ``first`` to before ``end``."""
    at, thumb = first & ~1, bool(first & 1) or image.thumb_at(first & ~1) is True
    while at < end:
        code = image.read(at, WORD) or image.read(at, WORD // 2)
        if code is None or not image.is_executable(at):
            raise InputError(f"{where}: {at:#x} is not code of this program")
        yield at
        at += decode(code, at, thumb).size
