"""Values that are reused from round to round, unless they depend on a loop without a bound.

A loop without a bound leaves any word behind. A value that depends on one is *temporary*: it is
computed again when more bounds are known, and so is every value made of it. The others are final.
Dependences need not be recorded: who meets a loop without a bound, or a temporary value, counts
that, and all values computed meanwhile are temporary, too.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["MemoTable", "UnboundedCounter"]

K = TypeVar("K")
V = TypeVar("V")


class UnboundedCounter:
    """``met``: how often a loop without a bound, or a temporary value, was met."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        self.met = 0


class MemoTable(Generic[K, V]):
    """Values by key, none of which is None."""

    __slots__ = ("_known", "_temporary", "_unbounded")

    def __init__(self, unbounded: UnboundedCounter) -> None:
        self._unbounded = unbounded
        self._known: dict[K, V] = {}
        self._temporary: set[K] = set()

    def get(self, key: K) -> V | None:
        """The value, if there is one by now."""
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
        """Presume a value while it is being computed: all that depends on that is temporary."""
        self._known[key] = value
        self._temporary.add(key)

    def for_good(self) -> MemoTable[K, V]:
        """A table of the final values."""
        memo = MemoTable[K, V](self._unbounded)
        memo._known = dict(self._known)
        for key in self._temporary:
            del memo._known[key]
        return memo
