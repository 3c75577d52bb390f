"""A loop without a place: by the lines of its statement, or as the only one of a function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Lines", "LoopStatement", "SingleLoop"]

Lines = tuple[int, int]  # first and last, both included


@dataclass(frozen=True, slots=True)
class LoopStatement:
    """The loop that begins at line ``first`` of the file recorded as ``path``.

    ``inner`` are the loops written in it, ``around`` is the loop that contains it. ``called`` are
    functions that it may call, by path and lines: their lines belong to it if the compiler has
    inlined them into it. In ``assembly`` only the first line counts.
    """

    path: str
    first: int
    last: int
    inner: tuple[Lines, ...] = ()
    around: LoopStatement | None = None
    called: tuple[tuple[str, int, int], ...] = ()
    assembly: bool = False

    def is_called(self, path: str, line: int) -> bool:
        """Whether a line belongs to a function that the loop may call."""
        return any(path == p and low <= line <= high for p, low, high in self.called)

    def is_own(self, lines: Iterable[int]) -> bool:
        """Whether code of these lines belongs to this loop, and not only to an inner one."""
        of = set(lines)
        inside = all(self.first <= line <= self.last for line in of)
        of_one = any(all(low <= line <= high for line in of) for low, high in self.inner)
        return bool(of) and inside and not of_one


@dataclass(frozen=True, slots=True)
class SingleLoop:
    """The only loop of a function."""

    function: str
