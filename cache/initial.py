"""The contents of a cache at the entry: unknown, unless a platform file states them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cache.locked import NOT_LOCKED, LockedLines

__all__ = ["UNKNOWN_CONTENTS", "InitialCache", "InitialContentsKind"]


class InitialContentsKind(Enum):
    """The possible contents besides the lines that are stated to be resident."""

    UNKNOWN = "unknown"  # any line, dirty or clean
    CLEAN = "clean"  # any line; all lines are clean, held ones too
    COLD = "cold"  # no other line, and the held ones are clean


@dataclass(frozen=True, slots=True)
class InitialCache:
    """The state of one cache at the entry. ``held`` lines are in it."""

    contents: InitialContentsKind = InitialContentsKind.UNKNOWN
    held: LockedLines = NOT_LOCKED

    @property
    def clean(self) -> bool:
        """Whether no line is dirty."""
        return self.contents is not InitialContentsKind.UNKNOWN

    def __bool__(self) -> bool:
        return self.clean or bool(self.held)

    def text(self) -> str:
        """The assumption as a predicate whose subject is the cache."""
        spans = ", ".join(
            f"{a * self.held.line_bytes:#x} to {(b + 1) * self.held.line_bytes - 1:#x}"
            for a, b in self.held.spans
        )
        if self.contents is InitialContentsKind.COLD:
            return f"holds {spans or 'nothing'}{' alone' if spans else ''}, and nothing is dirty"
        dirty = "nothing in it is dirty" if self.clean else "every line of it may be dirty"
        return f"holds {spans}, and {dirty}" if spans else f"may hold anything, but {dirty}"


UNKNOWN_CONTENTS = InitialCache()
