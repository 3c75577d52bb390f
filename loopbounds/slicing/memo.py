"""Values that are reused between rounds, unless they depend on an unbounded loop.

An unbounded loop leaves any word behind. A value that depends on it is *temporary*: it is computed
again when more bounds are known. All other values are final. Dependences are not recorded: a
counter rises at each unbounded loop and at each temporary value that is read, and a value is
temporary if the counter rose during its computation.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["MemoTable", "UnboundedCounter"]

K = TypeVar("K")
V = TypeVar("V")


class UnboundedCounter:
    """``met``: the number of unbounded loops and temporary values read so far."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        self.met = 0


class MemoTable(Generic[K, V]):
    """A table of memoised values, none of which is None."""

    __slots__ = ("_known", "_temporary", "_unbounded")

    def __init__(self, unbounded: UnboundedCounter) -> None:
        self._unbounded = unbounded
        self._known: dict[K, V] = {}
        self._temporary: set[K] = set()

    def get(self, key: K) -> V | None:
        """The value of ``key``, or None."""
        known = self._known.get(key)
        if known is not None and key in self._temporary:
            self._unbounded.met += 1
        return known

    def keep(self, key: K, value: V, since: int) -> V:
        """Store a value computed since ``UnboundedCounter.met`` was ``since``."""
        self._known[key] = value
        if self._unbounded.met == since:
            self._temporary.discard(key)
        else:
            self._temporary.add(key)
        return value

    def presume(self, key: K, value: V) -> None:
        """Presume a value during its own computation; values that depend on it are temporary."""
        self._known[key] = value
        self._temporary.add(key)

    def for_good(self) -> MemoTable[K, V]:
        """A copy with the final values only."""
        memo = MemoTable[K, V](self._unbounded)
        memo._known = dict(self._known)
        for key in self._temporary:
            del memo._known[key]
        return memo
