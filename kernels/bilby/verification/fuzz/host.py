# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's host build, one operation at a time: ``verification/check/host/serve.h``."""

from __future__ import annotations

import os
import select
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kernels.bilby.verification.spec.layout import API
from tests.testing.harness import build

SYSCALL, INTERRUPT, FAULT, WRITE, READ, RESET, PUBLISHED, EXIT, ATTEMPT = range(1, 10)
STORE, DEVICE, CLEAN, FORGOTTEN, START = range(10, 15)
GOOD, FAILED, PANIC, NO = range(4)
FORCE_EACH = 1
HEAD = 20  # bytes of an answer before its changes
AT_ONCE = 30_000  # bytes that a pipe takes while nobody reads
QUIET_SECONDS = 30  # without an answer, until it is looked whether anything is done at all
REPLAYED = 100  # operations, until the first answer that differs is looked for

ARGUMENTS = 11  # words, of every operation; the last two are the time
WORD = 0xFFFFFFFF
SECOND = (API["SYS_SIGNAL_RECEIVE"], API["SYS_NB_SEND_RECEIVE"])  # have an address in r6
PAGE = 4096
PC = 0x00101004  # after the SVC of every system call that is driven


class CheckFailure(AssertionError):
    """An invariant does not hold, a sanitizer stopped the kernel, or it panicked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The effect of one operation on the kernel window."""

    changes: dict[int, int]  # word by address
    tests: int  # how often pending interrupts were tested
    current: int  # address of the current thread


class Host:
    """A running host build and a mirror of its memory, read on demand.

    ``seconds``: of processor time for one operation, after which it is stopped.
    """

    def __init__(self, program: Path, seconds: int = 20) -> None:
        self._process = subprocess.Popen(
            [str(program), str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._unread = bytearray()
        self._pages: dict[int, list[int]] = {}
        self._pages_at_start: dict[int, list[int]] = {}
        self._replaced: dict[int, int] = {}
        self._is_busy = False
        self.recording: list[tuple[bytes, bytes]] | None = None  # operations, and their answers
        self.current = 0
        self.now = 0  # ticks since boot, at the next operation

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):  # unread input of a process that ended by itself
                    pipe.close()

    def is_alive(self) -> bool:
        """Whether it waits for an operation; False after its end, or in the middle of one."""
        return not self._is_busy and self._process.poll() is None

    def finish(self) -> None:
        """Let the host build end by itself, so that it writes down its coverage."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        while len(self._unread) < count:
            if self._is_stuck():
                raise CheckFailure("the host build waits for more than it was sent")
            piece = os.read(self._process.stdout.fileno(), AT_ONCE)
            if not piece:
                assert self._process.stderr is not None
                said = self._process.stderr.read().decode(errors="replace")
                raise CheckFailure(f"the host build ended:\n{said[:4000]}")
            self._unread += piece
        data = bytes(self._unread[:count])
        del self._unread[:count]
        return data

    def _is_stuck(self) -> bool:
        """It says nothing and does nothing: it waits for more than it was sent."""
        assert self._process.stdout is not None
        answers = self._process.stdout.fileno()
        used = -1.0
        while not select.select([answers], [], [], QUIET_SECONDS)[0]:
            before, used = used, self._processor_seconds()
            if used == before:
                return True
        return False

    def _processor_seconds(self) -> float:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def request(
        self, operation: int, *arguments: int, writes: Mapping[int, int] | None = None
    ) -> tuple[int, Answer]:
        """One operation; its status (GOOD or NO) and effect. Raises CheckFailure.

        ``writes``: words by address, written before as a user would.
        """
        assert self._process.stdin is not None
        pairs = [word for pair in (writes or {}).items() for word in pair]
        unused = [0] * (ARGUMENTS - 2 - len(arguments))
        padded = [operation, *arguments, *unused, self.now & WORD, self.now >> 32,
                  len(pairs) // 2, *pairs]  # fmt: skip
        for address, value in (writes or {}).items():
            self._note(address, value)
        asked = struct.pack(f"<{len(padded)}I", *padded)
        self._send(asked)
        told = self._receive()
        self._is_busy = False
        if self.recording is not None:
            self.recording.append((asked, told))
        status, count, tests, current = struct.unpack_from("<4I", told)
        if status in (FAILED, PANIC):
            raise CheckFailure(text_of(told))
        words = struct.unpack_from(f"<{2 * count}I", told, HEAD)
        changes = dict(zip(words[::2], words[1::2], strict=True))
        self.current = current
        return status, Answer(changes, tests, current)

    def _send(self, asked: bytes) -> None:
        assert self._process.stdin is not None
        self._is_busy = True
        try:
            self._process.stdin.write(asked)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._read(1)  # raises with the output of the host build

    def _receive(self) -> bytes:
        head = self._read(HEAD)
        _, count, _, _, length = struct.unpack("<5I", head)
        return head + self._read(8 * count + length)

    def answers(self, asked: Sequence[bytes]) -> list[bytes]:
        """Of operations that are recorded, many at once."""
        told: list[bytes] = []
        at = 0
        while at < len(asked):
            end, size = at, 0
            while end < len(asked) and (end == at or size + len(asked[end]) < AT_ONCE):
                size += len(asked[end])
                end += 1
            self._send(b"".join(asked[at:end]))
            told += [self._receive() for _ in asked[at:end]]
            self._is_busy = False
            at = end
        self._pages.clear()
        return told

    def replay(self, recording: Sequence[tuple[bytes, bytes]]) -> bytes | None:
        """The first answer that is another than in a recording, if one is."""
        for at in range(0, len(recording), REPLAYED):
            piece = recording[at : at + REPLAYED]
            told = self.answers([asked for asked, _ in piece])
            for (_, expected), answer in zip(piece, told, strict=True):
                if answer != expected:
                    return answer
        return None

    def _perform(
        self, operation: int, *arguments: int, writes: Mapping[int, int] | None = None
    ) -> Answer:
        _, answer = self.request(operation, *arguments, writes=writes)
        self._replaced = {}
        for address, value in answer.changes.items():
            page = self._pages.get(address // PAGE)
            if page is not None:
                at = address % PAGE // 4
                self._replaced[address], page[at] = page[at], value
        return answer

    def word_before(self, address: int) -> int:
        """Memory before the last operation, of a page that was read before it."""
        return self._replaced[address] if address in self._replaced else self.word(address)

    def _note(self, address: int, value: int) -> None:
        page = self._pages.get(address // PAGE)
        if page is not None:
            page[address % PAGE // 4] = value

    def syscall(
        self,
        number: int,
        registers: list[int],
        force: bool = False,
        writes: Mapping[int, int] | None = None,
        second: int = 0,
    ) -> Answer:
        """``registers``: r0 to r5; ``second``: r6, of a call that sends and receives.

        They and the pc are set first, and are not among the changes.
        """
        self._note_registers(number, registers, second)
        arguments = [*registers, number, FORCE_EACH if force else 0, second]
        return self._perform(SYSCALL, *arguments, writes=writes)

    def attempt(
        self,
        number: int,
        registers: list[int],
        test: int,
        line: int = 0,
        writes: Mapping[int, int] | None = None,
        second: int = 0,
    ) -> Answer:
        """A system call that is preempted at a test of pending interrupts, and left so.

        ``line``: the interrupting line; 0 for one without a waiting thread.
        """
        self._note_registers(number, registers, second)
        arguments = [*registers, number, test | line << 16, second]
        return self._perform(ATTEMPT, *arguments, writes=writes)

    def _note_registers(self, number: int, registers: list[int], second: int) -> None:
        words = [*enumerate(registers), (7, number), (15, PC)]
        if number in SECOND:
            words.append((6, second))
        for index, value in words:
            self._note(self.current + 4 * index, value)

    def interrupt(self, line: int) -> Answer:
        return self._perform(INTERRUPT, line)

    def fault(self, kind: int, address: int, status: int) -> Answer:
        return self._perform(FAULT, kind, address, status)

    def write(self, address: int, value: int) -> None:
        self._perform(WRITE, writes={address: value})

    def start_here(self) -> None:
        """From now on, ``reset`` goes back to this state."""
        self.request(START)
        self._pages_at_start = {number: list(page) for number, page in self._pages.items()}

    def reset(self) -> None:
        """Return to the state after boot, or to the state of ``start_here``."""
        self._pages = {number: list(page) for number, page in self._pages_at_start.items()}
        self.request(RESET)

    def is_published(self, address: int, size: int) -> bool:
        """New memory is clean in the data cache and nothing older of it can be executed."""
        return self.request(PUBLISHED, address, size)[0] == GOOD

    def store(self, address: int, value: int) -> None:
        """A user's, through the data cache."""
        self._note(address, value)
        self.request(STORE, address, value)

    def device_writes(self, address: int, value: int) -> None:
        """To memory; the data cache does not see it."""
        self.request(DEVICE, address, value)

    def is_clean(self, address: int, size: int) -> bool:
        """The data cache and memory agree."""
        return self.request(CLEAN, address, size)[0] == GOOD

    def is_forgotten(self, address: int, size: int) -> bool:
        """Nothing is in the instruction cache."""
        return self.request(FORGOTTEN, address, size)[0] == GOOD

    def word(self, address: int) -> int:
        page = self._pages.get(address // PAGE)
        if page is None:
            base = address // PAGE * PAGE
            _, answer = self.request(READ, base, PAGE // 4)
            page = list(answer.changes.values())
            self._pages[address // PAGE] = page
        return page[address % PAGE // 4]

    def words(self, address: int, count: int) -> list[int]:
        return [self.word(address + 4 * i) for i in range(count)]


def text_of(answer: bytes) -> str:
    """The failure; empty if there was none."""
    count, length = struct.unpack_from("<I8xI", answer, 4)
    return answer[HEAD + 8 * count :][:length].decode()


def program(preset: str = "after", kind: str = "sanitized", pin: str = "") -> Path:
    """The host build of a preset, up to date; ``pin``: the locked lines, as in the Makefile."""
    build.make("kernels/bilby/verification/check", f"PRESET={preset}", f"KIND={kind}", f"PIN={pin}")
    return build.ROOT / "build" / "bilby" / folder(preset, kind, pin) / "serve"


def folder(preset: str, kind: str, pin: str) -> str:
    return "-".join(part for part in ("host", preset, pin, kind) if part not in ("", "sanitized"))


@contextmanager
def running(path: Path, seconds: int = 20) -> Iterator[Host]:
    host = Host(path, seconds)
    try:
        yield host
    finally:
        host.close()
