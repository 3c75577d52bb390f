"""What was found out about the code, remembered as long as it is all that can be known.

A value may rest on a loop that has no bound yet: what that leaves behind is any word until it has
one. Such a value *passes*: it is found out again when more bounds are known, and so is whatever was
made of it. The others are for good. Nothing has to be told which values those are: who comes upon a
loop without a bound, or upon a value that passes, counts that, and what was found out meanwhile
passes too.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Memo", "Unbounded"]

K = TypeVar("K")
V = TypeVar("V")


class Unbounded:
    """``met``: how often a loop without a bound, or what rests on one, was come upon."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        self.met = 0


class Memo(Generic[K, V]):
    """Answers by question, none of which is None."""

    __slots__ = ("_known", "_passing", "_unbounded")

    def __init__(self, unbounded: Unbounded) -> None:
        self._unbounded = unbounded
        self._known: dict[K, V] = {}
        self._passing: set[K] = set()

    def get(self, key: K) -> V | None:
        """What is known by now."""
        known = self._known.get(key)
        if known is not None and key in self._passing:
            self._unbounded.met += 1
        return known

    def keep(self, key: K, value: V, since: int) -> V:
        """Remember what was found out since ``Unbounded.met`` was that."""
        self._known[key] = value
        if self._unbounded.met == since:
            self._passing.discard(key)
        else:
            self._passing.add(key)
        return value

    def presume(self, key: K, value: V) -> None:
        """Answer so while the answer is being found: what comes to rest on that passes."""
        self._known[key] = value
        self._passing.add(key)

    def for_good(self) -> Memo[K, V]:
        """A memo with what does not pass."""
        memo = Memo[K, V](self._unbounded)
        memo._known = dict(self._known)
        for key in self._passing:
            del memo._known[key]
        return memo
