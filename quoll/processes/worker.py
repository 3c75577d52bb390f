"""A process that serves calls one after another, in parallel with this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from typing import Generic, TypeVar

from quoll.processes.futures import ForkedCall, processors

__all__ = ["ForkedWorker", "worker"]

A = TypeVar("A")
B = TypeVar("B")


class ForkedWorker(Generic[A, B]):
    """Calls of a function that may cache earlier arguments: see ``worker``."""

    def __init__(
        self, function: Callable[[A], B], lines: tuple[Connection, Connection] | None
    ) -> None:
        self._function = function
        self._submitted: list[A] = []  # arguments that this process has not called it with
        self._lines = lines  # to and from another process

    def submit(self, argument: A) -> None:
        """Submit the next call."""
        self._submitted.append(argument)
        if self._lines is not None:
            with suppress(OSError):  # it has died
                self._lines[0].send(argument)

    def result(self) -> B:
        """The result of the last call, which may be requested once."""
        if self._lines is not None:
            with suppress(OSError, EOFError):
                found: B = self._lines[1].recv()
                return found
            self._lines = None
        results = [self._function(argument) for argument in self._submitted]
        self._submitted.clear()
        return results[-1]


@contextmanager
def worker(function: Callable[[A], B], *, worth: bool) -> Iterator[ForkedWorker[A, B]]:
    """Another process that calls ``function``, if it is ``worth`` one and has a processor.

    Inside, the caller submits each argument, and then requests its result. Arguments and results
    are pickled. Without that process, or when it fails, this process calls ``function`` with all
    arguments, in their order.
    """
    if not worth or processors() == 1:
        yield ForkedWorker(function, None)
        return
    (arguments, sending), (receiving, results) = Pipe(duplex=False), Pipe(duplex=False)

    def serve() -> None:
        sending.close()
        with suppress(EOFError):
            while True:
                results.send(function(arguments.recv()))

    call = ForkedCall(serve)
    arguments.close()
    results.close()
    try:
        yield ForkedWorker(function, (sending, receiving))
    finally:
        sending.close()
        receiving.close()
        call.cancel()
