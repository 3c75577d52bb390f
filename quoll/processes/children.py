"""Child processes that end with this one, and that are killed if they hang.

A forked child calls ``die_with`` first: then the kernel ends it when its parent is gone, for any
reason. ``run`` runs programs: in their own process group, with limits on processor time, memory,
output and wall time, with unnamed files (so that there is nothing to clean up), and without
leftovers when this process is stopped. ``apart`` runs Python code that may hang.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import TypeVar

__all__ = [
    "Died",
    "Ended",
    "Stopped",
    "TimedOut",
    "apart",
    "content_of",
    "die_with",
    "fork",
    "path_of",
    "run",
    "stoppable",
    "unnamed",
]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
OUTPUT = 1 << 28  # most bytes of a program's output
BLOCK = 512  # bytes: the unit of ``ulimit -f``
ELF = b"\x7fELF"
DEATH_SIGNAL = ("setpriv", "--pdeathsig", "KILL", "--")
# Arguments: the parent, the largest file, the command. Ends if the parent ended before ``setpriv``.
GUARD = 'test "$PPID" = "$0" || exit 1; ulimit -c 0; ulimit -f "$1"; shift; exec "$@"'
TICK = 0.5  # seconds between checks of a program's progress
WAITING = ("R", "D")  # states of a process that goes on when the machine has time
HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU)
STOPPING = (signal.SIGTERM, signal.SIGHUP)  # and SIGINT, which is KeyboardInterrupt
T = TypeVar("T")

_libc = ctypes.CDLL(None)


class Stopped(BaseException):
    """A signal, ``number``, asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class TimedOut(Exception):
    """A child was killed at its time limit."""


class Died(Exception):
    """A child ended without a result."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program: ``status`` as in ``subprocess``, None if it was killed."""

    status: int | None
    output: str
    errors: str


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``Stopped`` here, unless they are ignored (``nohup``)."""

    def stop(number: int, frame: FrameType | None) -> None:
        for other in (*STOPPING, signal.SIGINT):
            signal.signal(other, signal.SIG_IGN)  # cleaning up is not interrupted
        raise Stopped(number)

    before = {number: signal.getsignal(number) for number in (*STOPPING, signal.SIGINT)}
    for number in STOPPING:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def fork() -> int:
    """``os.fork``; handlers of signals that arrive during the fork are called at its end.

    An exception that they raise in the hooks of a fork, such as the hooks of ``logging``, would be
    lost. One that they raise at the end kills the child, whose number no caller receives.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    child = 0
    try:
        child = os.fork()
    finally:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except BaseException:
            if child:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            raise
    return child


def die_with(parent: int) -> None:
    """End this process, just forked, when ``parent`` ends; at once if it has ended already."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for number in (*STOPPING, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def run(
    command: Sequence[str],
    *,
    seconds: float | None,
    most: float | None = None,
    files: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program without input in ``/``.

    It is killed when none of its processes has used the processor, or waited for it, for
    ``seconds``, and after ``most`` seconds in any case. It inherits the open ``files``. Raises
    OSError for a file that is no program.
    """
    guarded = _guarded(command)
    with unnamed("output") as output, unnamed("errors") as errors:
        process = subprocess.Popen(
            guarded or command,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            pass_fds=tuple(files),
            process_group=0,
            preexec_fn=None if guarded else partial(_limit, os.getpid()),
        )
        try:
            ended = _ends(process, seconds, most)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Ended(process.returncode if ended else None, _text(output), _text(errors))


def _guarded(command: Sequence[str]) -> list[str] | None:
    """``command`` behind programs with the effect of ``_limit``; None where they are missing.

    Without a function that runs in the child, ``subprocess`` does not copy this process: a fork
    takes 10 ms for each 100 MB of memory.
    """
    if not _sets_death_signal() or not _is_program(command[0]):
        return None
    most = str(_least(resource.RLIMIT_FSIZE, OUTPUT) // BLOCK)
    return [*DEATH_SIGNAL, "sh", "-c", GUARD, str(os.getpid()), most, *command]


@cache
def _sets_death_signal() -> bool:
    """Whether ``setpriv`` of util-linux is there."""
    with suppress(OSError):
        tried = subprocess.run([*DEATH_SIGNAL, "true"], capture_output=True, check=False)
        return tried.returncode == 0
    return False


def _is_program(name: str) -> bool:
    """Whether this is a program's file; if not, ``subprocess`` has the error that tells why."""
    with suppress(OSError), open(name, "rb") as file:
        return os.path.isabs(name) and os.access(name, os.X_OK) and file.read(4) == ELF
    return False


def _limit(parent: int) -> None:
    die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    least = _least(resource.RLIMIT_FSIZE, OUTPUT)
    resource.setrlimit(resource.RLIMIT_FSIZE, (least, least))


def _least(what: int, wanted: int) -> int:
    """A limit of this process, lowered to ``wanted``."""
    limits = resource.getrlimit(what)
    return min((n for n in (wanted, *limits) if n != resource.RLIM_INFINITY), default=wanted)


def _ends(process: subprocess.Popen[bytes], seconds: float | None, most: float | None) -> bool:
    """Wait for a program; False if it hangs."""
    start = active = time.monotonic()
    used = -1
    with _waiting(process) as wait:
        while not wait(TICK):
            now = time.monotonic()
            if most is not None and now - start > most:
                return False
            spent, waits = _progress(process.pid)
            if spent != used or waits:
                used, active = spent, now
            elif seconds is not None and now - active > seconds:
                return False
    return True


@contextmanager
def _waiting(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """A function that waits for some seconds and returns whether the process has ended."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield lambda seconds: _polled(process, seconds)
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        yield lambda seconds: bool(poll.poll(1000 * seconds))
    finally:
        os.close(handle)


def _polled(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _progress(group: int) -> tuple[int, bool]:
    """Ticks of all existing processes in a group, and whether one waits for processor or disk.

    A process that ends changes the first, too.
    """
    total, waits = 0, False
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += sum(map(int, fields[11:15])) + int(stat.parent.name)
                waits = waits or fields[0] in WAITING
    return total, waits


@contextmanager
def unnamed(name: str, content: str = "") -> Iterator[int]:
    """An unnamed open file in memory, of which nothing remains in any case."""
    handle = os.memfd_create(name)
    try:
        with open(handle, "w", encoding="utf-8", closefd=False) as file:
            file.write(content)
        yield handle
    finally:
        os.close(handle)


def path_of(handle: int) -> str:
    """The path of an open file for a program that inherits it."""
    return f"/proc/self/fd/{handle}"


def content_of(handle: int) -> bytes:
    """The whole content of an open file."""
    return os.pread(handle, os.fstat(handle).st_size, 0)


def _text(handle: int) -> str:
    return content_of(handle).decode(errors="replace")


def apart(work: Callable[[], T], seconds: float | None) -> T:
    """``work()`` in a separate process; its result is pickled.

    Raises the exceptions of ``work``, TimedOut after ``seconds``, Died if there is no result.
    """
    here = os.getpid()
    reader, writer = os.pipe()
    try:
        child = fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        raise Died(f"no process can be made: {error.strerror}") from error
    if not child:
        die_with(here)
        with suppress(BaseException):
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(_outcome(work))
        os._exit(0)
    os.close(writer)
    try:
        content = _read_all(reader, seconds)
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if content is None:
        raise TimedOut
    if not content:
        number = os.waitstatus_to_exitcode(status)
        raise Died(f"killed by signal {-number}" if number < 0 else "it gave no answer")
    failed, result = pickle.loads(content)
    if failed:
        raise result
    found: T = result
    return found


def _outcome(work: Callable[[], object]) -> bytes:
    try:
        return pickle.dumps((False, work()))
    except Exception as error:  # the caller raises it again
        return pickle.dumps((True, error))


def _read_all(reader: int, seconds: float | None) -> bytes | None:
    """The bytes of a pipe up to its end; None if the end does not arrive in time."""
    deadline = None if seconds is None else time.monotonic() + seconds
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    parts: list[bytes] = []
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not poll.poll(None if left is None else 1000 * left):
            return None
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
