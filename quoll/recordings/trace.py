"""Recorded executions of a kernel in QEMU: the reader of the recorder's files.

The recorder is ``kernels/recorder/recorder.c``; its opening comment defines the file and the exact
extent of an execution.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quoll.errors import InputError
from quoll.input_files import Unreadable, read_input

__all__ = ["LARGEST_TRACE", "MAGIC", "End", "Execution", "RecordedAccess", "Trace"]

LARGEST_TRACE = 8 << 30  # bytes
MAGIC = b"QUOLLTRC"
_VERSIONS = (1, 2)  # the first has no repeats
_HEADER = struct.Struct("<8s4I")
_CHUNK = struct.Struct("<4s3I")
_REPEAT = struct.Struct("<4sI")
_TRAILER = struct.Struct("<4sI3Q")
_CONTINUED = 0
_VECTOR_PAGE = 0x1000  # bytes
_STORE = 1 << 8
_WORD = np.dtype("<u4")
_RECORD_AGAIN = "record the execution again"


class End(IntEnum):
    """The reason why an execution ended."""

    OUTSIDE = 1  # an instruction outside the kernel came next: it returned to user
    VECTOR = 2  # an exception vector came next: a fault, or an interrupt before any other code
    STOPPED = 3  # QEMU ended


@dataclass(frozen=True, slots=True)
class RecordedAccess:
    """One completed load or store by the instruction ``Execution.pcs[index]``.

    ``addr`` is virtual, ``size`` in bytes. The accesses of a load-multiple have the same index.
    """

    index: int
    addr: int
    size: int
    store: bool


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """One run through the kernel, from an exception vector on.

    ``pcs`` are the virtual addresses of the instructions in the order they ran, as plain
    integers in four bytes each (``numpy.frombuffer(pcs, "u4")`` makes an array without a copy);
    instructions whose condition failed are among them. ``access_words`` is the recorder's table,
    one row of index, address and ``bytes | store << 8`` per access. A hardware trace is
    ``path_only``: it has no accesses, and perhaps the ``measured`` cycles.
    """

    pcs: memoryview[int]
    access_words: npt.NDArray[np.uint32]
    end: End
    path_only: bool = False
    measured: int | None = None

    @property
    def entry(self) -> int:
        """The exception vector it started from."""
        return self.pcs[0]

    def behind(self, at: int) -> Execution:
        """The execution without its first ``at`` instructions."""
        later = self.access_words[self.access_words[:, 0] >= at]
        words = later - np.array([at, 0, 0], np.uint32)
        return Execution(self.pcs[at:], words, self.end)

    def accesses(self) -> Iterator[RecordedAccess]:
        """All accesses in the order they were made, indices never falling."""
        for index, addr, info in self.access_words.tolist():
            yield RecordedAccess(index, addr, info % _STORE, info >= _STORE)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A recording. The kernel is ``low`` to ``high``, both inclusive, and the ``vectors`` page.

    An execution that the file has as a repeat of another is the same object again.
    """

    low: int
    high: int
    vectors: int
    executions: tuple[Execution, ...]

    def distinct(self) -> tuple[Execution, ...]:
        """The distinct executions, in the order of their first occurrence."""
        return tuple(dict.fromkeys(self.executions))

    def from_entries(self, entries: Collection[int]) -> Trace:
        """The same executions, each from the first of ``entries`` on that it runs.

        A kernel copies its vectors to their page at run time, so that the ELF has no code there,
        and its entries are their targets. Instructions of that page before an entry are left out,
        with their accesses; an execution that runs others first is as it was recorded.
        """
        known: dict[Execution, Execution] = {}
        for execution in self.distinct():
            at = self._begin(execution.pcs, entries)
            known[execution] = execution.behind(at) if at else execution
        return replace(self, executions=tuple(known[one] for one in self.executions))

    def _begin(self, pcs: memoryview[int], entries: Collection[int]) -> int:
        """The index of the first entry; 0 if other code than the vectors comes before it."""
        for at, pc in enumerate(pcs):
            if pc in entries:
                return at
            if not self.vectors <= pc < self.vectors + _VECTOR_PAGE:
                break
        return 0

    @staticmethod
    def read(path: Path) -> Trace:
        """The recording in a file. Raises ``InputError`` unless the file is whole."""
        try:
            data = read_input(path, LARGEST_TRACE)
        except Unreadable as error:
            raise InputError(f"the trace {path} {error}") from error
        return Trace.parsed(path, data)

    @staticmethod
    def parsed(path: Path, data: bytes) -> Trace:
        """The recording ``data`` of the file ``path``. Raises ``InputError`` as above."""
        return _Reader(path, data).trace()


class _Reader:
    """Parses a file from front to back; ``at`` is the offset of the next item."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.data = data
        self.at = 0

    def trace(self) -> Trace:
        if not self.data.startswith(MAGIC):
            raise InputError(
                f"{self.path} is not a recording of a kernel", hint="kernels/recorder writes them"
            )
        _, version, low, high, vectors = self._unpack(_HEADER)
        if version not in _VERSIONS:
            raise InputError(
                f"{self.path} is a recording in version {version} of the format, "
                f"not {_VERSIONS[-1]}",
                hint=_RECORD_AGAIN,
            )
        executions = tuple(self._executions())
        self._trailer(executions)
        return Trace(low, high, vectors, executions)

    def _executions(self) -> list[Execution]:
        """The executions up to the trailer, each joined from its chunks."""
        found: list[Execution] = []
        pcs: list[bytes] = []
        words: list[bytes] = []
        while not self.data.startswith(b"DONE", self.at):
            if self.data.startswith(b"SAME", self.at):
                _, number = self._unpack(_REPEAT)
                if pcs or number >= len(found):
                    raise self._damaged()
                found.append(found[number])
                continue
            tag, n_pcs, n_accesses, end = self._unpack(_CHUNK)
            if tag != b"EXEC" or end not in (_CONTINUED, *End):
                raise self._damaged()
            pcs.append(self._take(4 * n_pcs))
            words.append(self._take(12 * n_accesses))
            if end != _CONTINUED:
                found.append(self._execution(b"".join(pcs), b"".join(words), End(end)))
                pcs.clear()
                words.clear()
        if pcs:
            raise self._damaged()
        return found

    def _execution(self, pcs: bytes, words: bytes, end: End) -> Execution:
        """Checks that every access belongs to an instruction."""
        # Both are views of the file if it has this machine's byte order.
        native = np.frombuffer(pcs, _WORD).astype(np.uint32, copy=False)
        table = np.frombuffer(words, _WORD).astype(np.uint32, copy=False).reshape(-1, 3)
        indices = table[:, 0]
        if len(native) == 0 or (indices >= len(native)).any() or (indices[1:] < indices[:-1]).any():
            raise self._damaged()
        return Execution(native.data, table, end)

    def _trailer(self, executions: tuple[Execution, ...]) -> None:
        """Checks that nothing is missing."""
        _, limit_reached, *totals = self._unpack(_TRAILER)
        if limit_reached:
            raise InputError(
                f"the recording {self.path} reached its limit and stopped early",
                hint="the kernel hangs, or the recorder needs a higher limit=",
            )
        found = [
            len(executions),
            sum(len(execution.pcs) for execution in executions),
            sum(len(execution.access_words) for execution in executions),
        ]
        if self.at != len(self.data) or totals != found:
            raise self._damaged()

    def _unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self._take(layout.size))

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) != size:
            raise InputError(
                f"the recording {self.path} is cut off after {len(self.data)} bytes",
                hint=f"QEMU was killed or the disk was full; {_RECORD_AGAIN}",
            )
        self.at += size
        return taken

    def _damaged(self) -> InputError:
        return InputError(
            f"the recording {self.path} is damaged before byte {self.at}", hint=_RECORD_AGAIN
        )
