"""Room for the frames of deep recursion.

CPython keeps frames in chunks of 16 KiB, each mapped when a call does not fit into the last one,
and unmapped when that call returns. Calls that go back and forth across the end of a chunk map and
unmap it each time, which took a twentieth of the time of a run. The frame of a function with a
large stack takes a chunk of its own size, rounded up to a power of two, and what is left of it is
room for what that function calls.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import ParamSpec, TypeVar

__all__ = ["with_room"]

WORDS = (1 << 19) + 1  # of the large frame: about as many are left, for thousands of frames

P = ParamSpec("P")
R = TypeVar("R")


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, called where there is room for frames."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    code = call.__code__.replace(co_stacksize=WORDS)
    found: Callable[P, R] = FunctionType(code, call.__globals__, closure=call.__closure__)
    return found
