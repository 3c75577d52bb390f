"""Calls in forked processes, with the terms of ``concurrent.futures``.

A forked process sees the current memory without a copy; only its result is pickled. If it fails,
this process makes the call. No process outlives this one.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Self, TypeVar

from quoll.processes.children import die_with, fork

__all__ = ["ForkedCall", "Future", "processors", "submit"]

T = TypeVar("T")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


class ForkedCall(Generic[T]):
    """``function()`` in a forked process; None without a process, or if it fails."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._child, self._reader = 0, -1
        here = os.getpid()
        reader, writer = os.pipe()
        try:
            child = fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            return
        if child:
            os.close(writer)
            self._child, self._reader = child, reader
            return
        status = 1
        with suppress(BaseException):
            die_with(here)
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(function(), pipe)
            status = 0
        os._exit(status)

    def result(self) -> T | None:
        """Wait for the result, which may be requested once.

        If an exception ends the wait, such as a time limit, ``cancel`` still ends the process.
        """
        if not self._child:
            return None
        with os.fdopen(self._reader, "rb", closefd=False) as pipe:
            content = pipe.read()
        child, self._child = self._child, 0
        os.close(self._reader)
        _, status = os.waitpid(child, 0)
        found: T | None = None if status else pickle.loads(content)
        return found

    def cancel(self) -> None:
        """End the process, unless its result has arrived."""
        child, self._child = self._child, 0
        if not child:
            return
        os.close(self._reader)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class Future(Generic[T]):
    """The result of a call that ``submit`` gave to another process; cancelled at a block's end."""

    def __init__(self, function: Callable[[], T], *, forks: bool) -> None:
        self._function, self._here = function, os.getpid()
        self._call = ForkedCall(lambda: [function()]) if forks else None

    def result(self) -> T:
        """Wait for the result, which may be requested once.

        A process that was forked after ``submit`` makes the call itself.
        """
        call = self._call if os.getpid() == self._here else None
        found = None if call is None else call.result()
        self._call = None
        return self._function() if found is None else found[0]

    def cancel(self) -> None:
        """End the other process, unless its result has arrived."""
        if self._call is not None and os.getpid() == self._here:
            self._call.cancel()
        self._call = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


def submit(function: Callable[[], T], *, worth: bool = True) -> Future[T]:
    """``function()`` in another process, if it is ``worth`` one and a processor is free.

    Otherwise ``result`` makes the call. Request the result, which is pickled, or cancel the future.
    """
    return Future(function, forks=worth and processors() > 1)
