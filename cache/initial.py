"""The contents of a cache at the entry: unknown, unless a platform file states them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cache.locked import NOT_LOCKED, LockedLines

__all__ = ["UNKNOWN_CONTENTS", "InitialCache", "InitialContentsKind"]


class InitialContentsKind(Enum):
    """The possible contents beside the resident lines."""

    UNKNOWN = "unknown"  # any line, any of them dirty
    CLEAN = "clean"  # any line, none of them dirty, nor any that is held
    COLD = "cold"  # no line, and none that is held is dirty


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
        """The assumption, as a sentence with the cache as its subject."""
        spans = ", ".join(
            f"{a * self.held.line_bytes:#x} to {(b + 1) * self.held.line_bytes - 1:#x}"
            for a, b in self.held.spans
        )
        if self.contents is InitialContentsKind.COLD:
            return f"holds {spans or 'nothing'}{' alone' if spans else ''}, and nothing is dirty"
        dirty = "nothing in it is dirty" if self.clean else "every line of it may be dirty"
        return f"holds {spans}, and {dirty}" if spans else f"may hold anything, but {dirty}"


UNKNOWN_CONTENTS = InitialCache()
