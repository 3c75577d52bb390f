"""The process of a command: its streams, its limits, and messages when they fail.

Standard streams may be closed, full, or of an encoding that lacks half of the characters that a
report uses; memory, files, processes and processor time may be limited by the shell.
"""

from __future__ import annotations

import atexit
import codecs
import errno
import io
import os
import resource
import signal
import sys
from types import FrameType
from typing import NoReturn, TextIO

from quoll.errors import ResourceError, UsageError

__all__ = ["discard_output", "encodable", "leave", "prepare", "resource_error", "send_output"]

PLAIN = "wcet-plain"
LEAST_MEMORY = 256 << 20  # bytes of address space
SPELLED = {
    "µ": "u", "×": "x", "·": "*", "–": "-", "—": "-", "−": "-", "≥": ">=", "≤": "<=", "→": "->",
    "…": "...", "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
SHORTAGES = {
    errno.EMFILE: "open files (ulimit -n)",
    errno.ENFILE: "open files of the whole system",
    errno.ENOMEM: "memory (ulimit -v)",
    errno.EAGAIN: "processes (ulimit -u)",
    errno.ENOSPC: "space on a disk",
    errno.EDQUOT: "space of the user's quota",
    errno.EFBIG: "size of files (ulimit -f)",
}


def prepare() -> None:
    """Make the standard streams of this process usable, and its time limit an error.

    Raises UsageError if standard output is closed, as nothing could be printed, and ResourceError
    if there is too little memory to start.
    """
    for descriptor in (0, 1, 2):  # otherwise a file opened later gets their numbers
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = _Unfailing(sys.stderr)
    signal.signal(signal.SIGXCPU, _out_of_time)
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard not in (resource.RLIM_INFINITY, 0) and soft in (resource.RLIM_INFINITY, hard):
        resource.setrlimit(
            resource.RLIMIT_CPU, (max(hard - 1, 1), hard)
        )  # otherwise the signal kills silently
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    if memory != resource.RLIM_INFINITY:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread would take memory
        if memory < LEAST_MEMORY:  # libraries kill the process if memory runs out
            raise ResourceError(
                f"this run may use {memory >> 20} MiB of memory (ulimit -v)",
                hint=f"it needs {LEAST_MEMORY >> 20} MiB at the very least",
            )
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise UsageError("standard output is closed", hint="redirect it, as to /dev/null")


def encodable() -> None:
    """Let the standard streams replace characters that their encoding lacks."""
    codecs.register_error(PLAIN, _spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def send_output(text: str = "") -> None:
    """Print all of ``text``. Raises UsageError, or BrokenPipeError if the reader is gone."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write standard output: {error.strerror}") from error


def discard_output() -> None:
    """Drop output that could not be printed: otherwise Python prints it again at the exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def leave(status: int) -> NoReturn:
    """Exit as ``sys.exit`` does, but without freeing objects in memory.

    Freeing took 0.8 of 10.6 seconds for the shipped kernel.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = status or 120  # as Python does if a stream cannot be flushed
    os._exit(status)


def resource_error(error: BaseException) -> ResourceError | None:
    """The resource that ``error`` reports as exhausted; None if it is another error."""
    if isinstance(error, MemoryError):
        return _short(SHORTAGES[errno.ENOMEM])
    if isinstance(error, RecursionError):
        return ResourceError(
            f"the input nests deeper than this program follows: {sys.getrecursionlimit():,} frames",
            hint="shorter chains of calls or expressions; please report it with the input: "
            "WCET_DEBUG=1 shows where",
        )
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        return _short(SHORTAGES[error.errno])
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):
        return _short("a directory for temporary files that can be written to (TMPDIR)")
    if isinstance(error, ImportError | OSError | RuntimeError):  # from libraries and threads
        for number, what in SHORTAGES.items():
            if os.strerror(number) in str(error):
                return _short(what)
        if "failed to map segment" in str(error):
            return _short(SHORTAGES[errno.ENOMEM])
        if "can't start new thread" in str(error):
            return _short(SHORTAGES[errno.EAGAIN])
    cause = error.__cause__ or error.__context__
    return None if cause is None else resource_error(cause)


def _short(what: str) -> ResourceError:
    return ResourceError(
        f"out of resources: {what}",
        hint="raise the limit, or free some; --share always needs less memory",
    )


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise ResourceError(
        "out of resources: processor time (ulimit -t)",
        hint="raise the limit, or give --time-limit a smaller number",
    )


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(SPELLED.get(c) or ascii(c)[1:-1] for c in text), error.end


class _Unfailing(io.TextIOBase):
    """A stream whose failures are ignored: a full disk or a closed terminal does not end a run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()
